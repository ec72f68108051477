"""Views that are recomputed as a whole: one state a batch, whenever a source of theirs changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from steadyview.engine.frames import Frames
from steadyview.query.moment import Moment
from steadyview.runtime.kept import Kept
from steadyview.runtime.parts import Parts
from steadyview.runtime.planning import Planned
from steadyview.runtime.recompute import Recomputing
from steadyview.runtime.reconciling import Reconciling
from steadyview.runtime.trouble import trouble
from steadyview.runtime.work import Done, Work
from steadyview.warehouse.apply import Applier


class WholeViews:
    """Computes their parts of a batch; it keeps nothing, so any thread may use it."""

    def __init__(self, parts: Parts, project: Reconciling) -> None:
        self._parts = parts
        self._project = project

    def done(
        self, found: Sequence[Kept], moment: Moment, folder: Path, frames: Frames
    ) -> Iterator[Done]:
        """The state of each at the moment's cn, as it gets ready."""
        for kept in found:
            work = Work(kept, self._project.store(kept), kept.row.cn)
            if work.after is None:
                work.store.create()
            if work.after is not None and not self._changed(work.plan, work.after, moment.upto):
                yield Done(work, moment.upto, 0, work.store.newest_base())
            else:
                yield self._recomputed(work, moment, folder, frames)

    def _recomputed(self, work: Work, moment: Moment, folder: Path, frames: Frames) -> Done:
        replacement = work.kept.row.replacement
        try:
            texts = self._project.files if replacement else self._project.shown()
            again = Recomputing(self._parts, frames, texts, moment, moment.upto, folder)
            sql = f"SELECT * FROM {frames.frame('recomputed', again.rows(work.plan))}"
            base = Applier(self._parts.spark, work.store).replace(sql, moment.upto)
        except Exception as error:  # noqa: BLE001 - sorted by `trouble`
            wrong = trouble(error, self._parts.spark, self._parts.root)
            upto = moment.upto - 1 if work.after is None else work.after
            return Done(
                work, upto, 0, error=wrong.error, fault=wrong.fault, mendable=wrong.mendable
            )
        return Done(work, moment.upto, 0, base)

    def _changed(self, plan: Planned, after: int, upto: int) -> bool:
        runs = self._parts.catalog.commits.runs(after + 1, upto)
        return any(run.source in plan.sources for run in runs)
