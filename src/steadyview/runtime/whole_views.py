"""Views that are recomputed as a whole: one change a batch or refresh, from state to state.

    change (a, b]  =  the view's text at b  -  its state at a,      one gap from a to b

It is stored like any other change, so that such a view is read, applied, subscribed to and read by
other views as all are. It has no states in between; what a gap begins with is the first commit of a
source that it reads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from steadyview.catalog import Gap
from steadyview.crash_points import crash_point
from steadyview.engine.frames import Frames
from steadyview.query.moment import Moment
from steadyview.runtime.kept import Kept
from steadyview.runtime.parts import Parts
from steadyview.runtime.recompute import Recomputing
from steadyview.runtime.reconciling import Reconciling
from steadyview.runtime.trouble import trouble
from steadyview.runtime.work import Done, Standing, Work
from steadyview.warehouse.apply import Applier
from steadyview.warehouse.states import States
from steadyview.warehouse.view_store import DELTA, NodeChange, ViewStore, quoted


class WholeViews:
    """Their parts of one batch, up to its end; computed once, when they are first needed."""

    def __init__(
        self,
        parts: Parts,
        project: Reconciling,
        found: Sequence[Kept],
        moment: Moment,
        folder: Path,
        frames: Frames,
    ) -> None:
        self._parts = parts
        self._project = project
        self._found = found
        self._moment = moment
        self._folder = folder
        self._frames = frames
        self._done: dict[int, Done] | None = None

    def done(self) -> list[Done]:
        """What each of them can publish."""
        if self._done is None:
            self._done = {kept.id: self._tried(kept) for kept in self._found}
        return list(self._done.values())

    def standing(self, others: Standing) -> Standing:
        """Where nodes stand: those that are done here at the batch's end, `others` as they say."""

        def stands(node: int) -> tuple[ViewStore, int]:
            done = (self._done or {}).get(node)
            return others(node) if done is None or done.failed else (done.work.store, done.upto)

        return stands

    def _tried(self, kept: Kept) -> Done:
        store, cn = self._project.store(kept), kept.row.cn
        if cn is None:
            store.create()
            return self._for(Work(kept, store, None), self._first)
        return self._for(Work(kept, store, max(cn, store.propagated())), self._next)

    def _for(self, work: Work, step: Callable[[Work], Done]) -> Done:
        try:
            return step(work)
        except Exception as error:  # noqa: BLE001 - sorted by `trouble`
            wrong = trouble(error, self._parts.spark, self._parts.root)
            row = work.kept.row
            upto, version = row.cn, row.delta_version or 0
            upto = self._moment.upto - 1 if upto is None else upto
            return Done(
                work, upto, version, error=wrong.error, fault=wrong.fault, mendable=wrong.mendable
            )

    def _first(self, work: Work) -> Done:
        shape = work.store.shape
        columns = zip(shape.stored, shape.visible, strict=True)
        named = ", ".join(f"CAST({o} AS {t}) AS {quoted(n)}" for (o, t), (n, _) in columns)
        sql = f"SELECT {named} FROM {self._rows(work)}"
        base = Applier(self._parts.spark, work.store).replace(sql, self._moment.upto)
        return Done(work, self._moment.upto, work.store.delta.version(), base)

    def _next(self, work: Work) -> Done:
        upto, store = self._moment.upto, work.store
        assert work.after is not None
        committed = self._first_commit(work, work.after)
        if committed is None or committed > upto:
            return Done(work, max(upto, work.after), store.delta.version())
        gap = Gap(work.kept.id, committed - 1, upto)
        between = [gap] if upto > committed else []
        self._parts.catalog.gaps.begin({work.kept.id: work.after}, between)
        crash_point("gap-recorded")
        added = store.append(NodeChange(self._difference(work, work.after)), upto)
        return Done(work, upto, added.version, changes=added.rows)

    def _first_commit(self, work: Work, after: int) -> int | None:
        """The first commit after a cn of a source that the view reads."""
        commits = self._parts.catalog.commits
        found = (commits.first_after(source, after) for source in work.plan.sources)
        return min((cn for cn in found if cn is not None), default=None)

    def _difference(self, work: Work, after: int) -> Path:
        """What leads from the state at `after` to that at the end, as files below the delta."""
        store, upto = work.store, self._moment.upto
        version, folder = store.delta.version(), store.delta.unused_folder(DELTA, upto)
        states = States(self._parts.spark, store)
        try:
            rows = self._rows(work)
            sql = states.difference_sql(rows, upto, store.newest_base(), after, version)
            self._parts.spark.sql(sql).write.mode("overwrite").parquet(str(folder))
        finally:
            states.drop()
        return folder

    def _rows(self, work: Work) -> str:
        """The rows of the view's text at the end, as `c0`, `c1`, ..., under a name."""
        replacement = work.kept.row.replacement
        texts = self._project.files if replacement else self._project.shown()
        end, moment = self._moment.upto, self._moment
        again = Recomputing(self._parts, self._frames, texts, moment, end, self._folder)
        names = [name for name, _ in work.store.shape.stored]
        return self._frames.frame("recomputed", again.rows(work.plan).toDF(*names))
