"""A warehouse whose batches are called one by one.

The loop of `run` does not turn here. Captures run; a batch is committed at the sources, captured to
the last transaction, and then refreshed by one call of the product's own `Maintainer.cycle`, for
one view (with the hidden nodes that it reads) or for all. That is why this module reaches behind
the warehouse's public side; no other one of the speed tables does.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

from pyspark.sql import SparkSession

import steadyview
from steadyview.catalog import ViewRow
from steadyview.engine.frames import Frames
from steadyview.query.moment import open_moment
from steadyview.runtime.keeping import Keeping
from steadyview.runtime.maintainer import Maintainer
from steadyview.runtime.planning import Planned, Refused
from steadyview.runtime.recompute import Recomputing
from steadyview.runtime.refreshing import RefreshWanted
from steadyview.runtime.warehouse import Warehouse
from steadyview.warehouse.apply import RESIDUAL_FILES, RESIDUAL_ROWS, RESIDUAL_SHARE, Applier
from steadyview.warehouse.view_store import Shape, ViewStore


class ByHand:
    """An open warehouse whose views stand at the newest cn between batches."""

    def __init__(self, warehouse: Warehouse, keeping: Keeping) -> None:
        self.warehouse = warehouse
        self.parts = warehouse._parts
        self._captures = keeping.captures
        plans = warehouse._plans(keeping._relations)
        self.plans = {p.name: p for p in plans if isinstance(p, Planned)}
        self.refused = {p.name: p.refusal for p in plans if isinstance(p, Refused)}
        self.views = [name for name, plan in self.plans.items() if not plan.hidden]
        wait_for = keeping.captures.wait_for
        self._all = Maintainer(self.parts, plans, wait_for)
        self._all.reconcile()
        self._one = {v: Maintainer(self.parts, [self.plans[v]], wait_for) for v in self.views}
        self._everything = frozenset(self.parts.sources)
        self._captures.start()

    def build(self) -> float:
        """First states; seconds."""
        started = time.perf_counter()
        for _ in self.plans:
            if self._all.waiting(self._everything, building=True):
                self._all.cycle(self._everything, building=True)
        return time.perf_counter() - started

    def capture(self) -> float:
        """Until everything committed is admitted; seconds."""
        started = time.perf_counter()
        for name, source in self.parts.sources.items():
            with closing(source.snapshot()) as snapshot:
                self._captures.wait_for(name, snapshot.horizon)
        return time.perf_counter() - started

    def refresh(self, view: str) -> float:
        """Propagate and publish one view; seconds."""
        started = time.perf_counter()
        self._one[view].cycle(self._everything, building=False)
        took = time.perf_counter() - started
        self._check(view)
        return took

    def propagate(self, view: str) -> None:
        """A batch with the view alone, shown or not, as its policy says; then apply as `run`."""
        self._one[view].cycle(self._everything, building=False)
        self._one[view].apply()

    def refresh_deferred(self, view: str) -> None:
        """Bring a deferred view to everything that is committed, and show it; then apply."""
        self._one[view].refresh(RefreshWanted((view,)))
        self._one[view].apply()
        self._check(view)

    def refresh_all(self) -> float:
        """All views in one batch; seconds."""
        started = time.perf_counter()
        self._all.cycle(self._everything, building=False)
        took = time.perf_counter() - started
        for view in self.views:
            self._check(view)
        return took

    def apply(self, view: str) -> float:
        """Roll the view's base to its cn; seconds."""
        started = time.perf_counter()
        self._one[view].apply(everything=True)
        return time.perf_counter() - started

    def apply_if_due(self, view: str) -> float:
        """Roll the view's base and state as `run` does it after a batch; seconds."""
        started = time.perf_counter()
        self._one[view].apply()
        return time.perf_counter() - started

    def owed(self, view: str) -> float:
        """How much of what makes a roll of the base due has come together; 1: it is due."""
        row = self._row(view)
        store = ViewStore(self.parts.root, row, self.plans[view].shape)
        residual = store.delta_files(row.delta_version or 0, row.base_cn or 0, row.cn or 0)
        rows = sum(f.rows for f in store.base.files(row.base_version))
        most = max(rows * RESIDUAL_SHARE, RESIDUAL_ROWS)
        return max(sum(f.rows for f in residual) / most, len(residual) / RESIDUAL_FILES)

    def recompute(self, view: str) -> float:
        """The view anew, as a recomputed view is kept: sources read, SQL text run, base written."""
        started = time.perf_counter()
        parts, plan = self.parts, self.plans[view]
        frames = Frames(parts.spark)
        sources = [parts.sources[s] for s in sorted(parts.sources)]
        try:
            with (
                open_moment(sources, self._captures.wait_for, parts.catalog) as moment,
                parts.work_folder("recompute") as folder,
            ):
                again = Recomputing(parts, frames, self.plans, moment, moment.upto, folder)
                rows = f"SELECT * FROM {frames.frame('recomputed', again.rows(plan))}"
                Applier(parts.spark, self._twin(plan)).replace(rows, moment.upto)
        finally:
            frames.drop()
        return time.perf_counter() - started

    def _twin(self, plan: Planned) -> ViewStore:
        """Where the recomputed twin of a view is kept, beside the warehouse's own tables."""
        row = self._row(plan.name)
        shape = Shape(plan.columns)
        twin = ViewStore(self.parts.root, replace(row, name=f"{row.name}_recomputed"), shape)
        twin.create()
        return twin

    def _row(self, view: str) -> ViewRow:
        return self.parts.catalog.views.get(view)

    def _check(self, view: str) -> None:
        row = self._row(view)
        if row.state != "active" or row.cn != self.parts.catalog.commits.last_cn():
            raise RuntimeError(f'view "{view}" is {row.state} at cn {row.cn}: {row.error}')


@contextmanager
def opened(folder: Path, spark: SparkSession | None = None) -> Iterator[ByHand]:
    """The project in `folder`, captured and planned."""
    with steadyview.open(folder, spark=spark) as warehouse:
        warehouse._lasting = True
        keeping = Keeping(warehouse._parts, warehouse._plans)
        try:
            yield ByHand(warehouse, keeping)
        finally:
            keeping.stop()
