"""One scale factor: two databases, a warehouse with two views, and the steps that are measured.

The loop of `run` does not turn here. Captures run; a batch is committed at the sources, captured to
the last transaction, and then refreshed by one call of the product's own `Maintainer.cycle` per
view. That is why this module reaches behind the warehouse's public side; no other one does.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from pyspark.sql import SparkSession

import steadyview
from benchmarks.tpch import Databases
from benchmarks.tracing import Trace
from benchmarks.workload import Workload
from steadyview.engine.frames import Frames
from steadyview.query.moment import open_moment
from steadyview.runtime.keeping import Keeping
from steadyview.runtime.maintainer import Maintainer
from steadyview.runtime.planning import Planned
from steadyview.runtime.recompute import Recomputing
from steadyview.runtime.warehouse import Warehouse
from steadyview.warehouse.apply import Applier
from steadyview.warehouse.view_store import Shape, ViewStore

AGGREGATE, ROWS = "revenue_by_nation_and_day", "lines_of_customers"
VIEWS = {
    AGGREGATE: """SELECT c.c_nationkey, o.o_orderdate, COUNT(*) AS line_count,
       SUM(l.l_extendedprice * (1 - l.l_discount)) AS revenue
FROM sales.lineitem l JOIN sales.orders o ON l.l_orderkey = o.o_orderkey
     JOIN crm.customer c ON o.o_custkey = c.c_custkey
GROUP BY c.c_nationkey, o.o_orderdate
""",
    ROWS: """SELECT l.l_orderkey, l.l_linenumber, l.l_extendedprice, l.l_shipdate, o.o_orderdate,
       c.c_custkey, c.c_nationkey
FROM sales.lineitem l JOIN sales.orders o ON l.l_orderkey = o.o_orderkey
     JOIN crm.customer c ON o.o_custkey = c.c_custkey
""",
}
SHORT = {AGGREGATE: "join + aggregate", ROWS: "select-project-join"}
_PROJECT = """[project]
name = "bench"
warehouse = "warehouse"

[sources.sales]
type = "postgresql"
url = "{sales}"
slot = "{slot}_sales"
tables = ["public.orders", "public.lineitem"]

[sources.crm]
type = "postgresql"
url = "{crm}"
slot = "{slot}_crm"
tables = ["public.customer"]
"""


def write_project(folder: Path, databases: Databases) -> Path:
    """A project over the two databases with both views."""
    (folder / "views").mkdir(parents=True)
    urls = {role: databases.url(role) for role in ("sales", "crm")}
    slot = databases.name("bench").replace("-", "_")
    (folder / "steadyview.toml").write_text(_PROJECT.format(slot=slot, **urls))
    for name, text in VIEWS.items():
        (folder / "views" / f"{name}.sql").write_text(text)
    return folder


def indexes_wanted(folder: Path, spark: SparkSession) -> list[tuple[str, str, str]]:
    """What `explain` asks for, over both views."""
    with steadyview.open(folder, spark=spark) as warehouse:
        wanted = [w for v in VIEWS for w in warehouse.explain(v).to_dict()["indexes_wanted"]]
    return sorted({(w["source"], w["table"], w["column"]) for w in wanted})


class Site:
    """An open warehouse whose views stand at the newest cn between batches."""

    def __init__(self, warehouse: Warehouse, keeping: Keeping, databases: Databases) -> None:
        self.databases = databases
        self.workload = Workload(databases)
        self.trace = Trace()
        self._parts = warehouse._parts
        self._captures = keeping.captures
        plans = warehouse._plans(keeping._relations)
        self._plans = {p.name: p for p in plans if isinstance(p, Planned)}
        assert self._plans.keys() == VIEWS.keys(), plans
        wait_for = keeping.captures.wait_for
        self._all = Maintainer(self._parts, plans, wait_for)
        self._one = {n: Maintainer(self._parts, [p], wait_for) for n, p in self._plans.items()}
        self._everything = frozenset(self._parts.sources)

    def build(self) -> float:
        """First states; seconds."""
        started = time.perf_counter()
        self._captures.start()
        self._all.cycle(self._everything, building=True)
        return time.perf_counter() - started

    def capture(self) -> float:
        """Until everything committed is admitted; seconds."""
        started = time.perf_counter()
        for name, source in self._parts.sources.items():
            snapshot = source.snapshot()
            try:
                self._captures.wait_for(name, snapshot.horizon)
            finally:
                snapshot.close()
        return time.perf_counter() - started

    def refresh(self, view: str) -> tuple[float, dict[str, float]]:
        """Propagate and publish one view; seconds, and the parts."""
        with self.trace.installed(list(self._parts.sources.values())):
            maintainer = self._one[view]
            found = self.trace.watch(lambda: maintainer.cycle(self._everything, building=False))
        self._check(view)
        return found

    def refresh_both(self) -> float:
        """Both views in one batch."""
        started = time.perf_counter()
        self._all.cycle(self._everything, building=False)
        took = time.perf_counter() - started
        for view in VIEWS:
            self._check(view)
        return took

    def apply(self, view: str) -> float:
        """Roll the view's base to its cn; seconds."""
        started = time.perf_counter()
        self._one[view].apply(everything=True)
        return time.perf_counter() - started

    def recompute(self, view: str) -> float:
        """The view anew, as a recomputed view is kept: sources read, SQL text run, base written."""
        started = time.perf_counter()
        parts, plan = self._parts, self._plans[view]
        frames = Frames(parts.spark)
        sources = [parts.sources[s] for s in sorted(plan.sources)]
        try:
            with (
                open_moment(sources, self._captures.wait_for, parts.catalog) as moment,
                parts.work_folder("recompute") as folder,
            ):
                again = Recomputing(parts, frames, self._plans, moment, moment.upto, folder)
                rows = f"SELECT * FROM {frames.frame('recomputed', again.rows(plan))}"
                Applier(parts.spark, self._twin(plan)).replace(rows, moment.upto)
        finally:
            frames.drop()
        return time.perf_counter() - started

    def _twin(self, plan: Planned) -> ViewStore:
        """Where the recomputed twin of a view is kept, beside the warehouse's own tables."""
        row = self._parts.catalog.views.get(plan.name)
        shape = Shape(plan.columns, incremental=False)
        twin = ViewStore(self._parts.root, replace(row, name=f"{row.name}_recomputed"), shape)
        twin.create()
        return twin

    def _check(self, view: str) -> None:
        row = self._parts.catalog.views.get(view)
        if row.state != "active" or row.cn != self._parts.catalog.commits.last_cn():
            raise RuntimeError(f'view "{view}" is {row.state} at cn {row.cn}: {row.error}')


@contextmanager
def opened(folder: Path, databases: Databases, spark: SparkSession) -> Iterator[Site]:
    """A site over a fresh project in `folder`."""
    with steadyview.open(write_project(folder, databases), spark=spark) as warehouse:
        keeping = Keeping(warehouse._parts, warehouse._plans)
        try:
            yield Site(warehouse, keeping, databases)
        finally:
            keeping.stop()
