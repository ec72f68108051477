"""One scale factor: two databases, a warehouse with two views, and the steps that are measured."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

import steadyview
from benchmarks import by_hand, tpch
from benchmarks.by_hand import ByHand
from benchmarks.plain_spark import PlainSpark, from_postgres
from benchmarks.tpch import Databases, Told
from benchmarks.tracing import Trace
from benchmarks.workload import Workload
from examples.embedded_postgres import EmbeddedPostgres

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
USED = {
    "sales.lineitem": (
        "l_orderkey",
        "l_linenumber",
        "l_extendedprice",
        "l_discount",
        "l_shipdate",
    ),
    "sales.orders": ("o_orderkey", "o_custkey", "o_orderdate"),
    "crm.customer": ("c_custkey", "c_nationkey"),
}
"""The columns that the views read."""
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


def write_project(
    folder: Path, databases: Databases, views: Iterable[str] = tuple(VIEWS), who: str = "bench"
) -> Path:
    """A project over the two databases with some of the views; `who` names its slots."""
    (folder / "views").mkdir(parents=True)
    urls = {role: databases.url(role) for role in ("sales", "crm")}
    slot = databases.name(who).replace("-", "_")
    (folder / "steadyview.toml").write_text(_PROJECT.format(slot=slot, **urls))
    for name in views:
        (folder / "views" / f"{name}.sql").write_text(VIEWS[name])
    return folder


def template(
    server: EmbeddedPostgres,
    scale: float,
    folder: Path,
    told: Told,
    spark: SparkSession | None = None,
) -> Databases:
    """The loaded databases of a scale, with the indexes that `explain` asks for; kept for ever."""
    found = Databases(server, "template", scale)
    if not tpch.complete(found):
        tpch.load(found, told)
        told(f"SF {scale:g}: indexes that explain asks for")
        project = write_project(folder / f"explain-{scale:g}", found)
        tpch.seal(found, indexes_wanted(project, spark))
    return found


def indexes_wanted(folder: Path, spark: SparkSession | None) -> list[tuple[str, str, str]]:
    """What `explain` asks for, over both views."""
    with steadyview.open(folder, spark=spark) as warehouse:
        wanted = [w for v in VIEWS for w in warehouse.explain(v).to_dict()["indexes_wanted"]]
    return sorted({(w["source"], w["table"], w["column"]) for w in wanted})


class Site:
    """An open warehouse over the two databases, and the changes made to them."""

    def __init__(self, views: ByHand, databases: Databases) -> None:
        assert {*views.views} == VIEWS.keys(), views.refused
        self.views, self.databases = views, databases
        self.workload = Workload(databases)
        self._trace = Trace()
        self._plain = PlainSpark(views.parts.spark, views.parts.project.root / "plain")

    def refresh(self, view: str) -> tuple[float, dict[str, float]]:
        """Propagate and publish one view; seconds, and the parts."""
        with self._trace.installed(list(self.views.parts.sources.values())):
            return self._trace.watch(lambda: self.views.refresh(view))

    def export(self) -> float:
        """The columns that the views use as Parquet files, for `plain`; seconds."""
        took = 0.0
        for relation, columns in USED.items():
            role, table = relation.split(".")
            with self.databases.connect(role) as connection:
                took += self._plain.export(relation, from_postgres(connection, table, columns))
        return took

    def plain(self, view: str) -> float:
        """The view anew from those files, by Spark as it comes; seconds."""
        return self._plain.refresh(VIEWS[view])


@contextmanager
def opened(folder: Path, databases: Databases, spark: SparkSession) -> Iterator[Site]:
    """A site over a fresh project in `folder`."""
    with by_hand.opened(write_project(folder, databases), spark) as views:
        yield Site(views, databases)
