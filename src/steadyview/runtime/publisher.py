"""Publication: what is ready of a batch becomes current, in one catalog transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from steadyview.catalog import Base, Published, ViewRow
from steadyview.crash_points import crash_point
from steadyview.engine.tagged_log import Admitted
from steadyview.query.moment import settled_upto
from steadyview.runtime.losses import Losses, LossMark
from steadyview.runtime.outcomes import Outcomes
from steadyview.runtime.parts import Parts
from steadyview.runtime.work import Done


class Publisher:
    """Publishes the work of batches, then tells how it ended for each view.

    Used by the thread of batches and by the one of first states: each call is one transaction of
    the catalog, which has one at a time.
    """

    def __init__(self, parts: Parts, outcomes: Outcomes, losses: Losses) -> None:
        self._views, self._sources = parts.catalog.views, parts.catalog.sources
        self._outcomes = outcomes
        self._losses = losses

    def first_state(self, done: Done, admitted: Mapping[str, Admitted], mark: LossMark) -> None:
        """Publish a first state, unless it was spoilt since the mark: then it is built again."""
        if not self._losses.publish_unless_lost(
            done.work.plan, mark, lambda: self.publish([done], admitted)
        ):
            done.work.store.remove()

    def publish(self, done: Sequence[Done], admitted: Mapping[str, Admitted]) -> None:
        """Make all of it current together; views that failed stop or wait behind it."""
        self._show(done)
        crash_point("published")
        for d in done:
            kept = d.work.kept
            if d.error is not None:
                self._outcomes.changed(kept, d.changes)
                self._outcomes.stop(kept, d.error, d.upto + 1, mendable=d.mendable)
            elif d.fault is not None:
                self._outcomes.fault(kept, d.fault)
            else:
                self._outcomes.went_on(kept, d.changes)
        for source, seen in admitted.items():
            self._sources.settle(source, settled_upto(seen))
        crash_point("settled")

    def _show(self, done: Sequence[Done]) -> None:
        """Make what is ready current. What was given up meanwhile is left alone."""
        while True:
            rows = {row.id: row for row in (*self._views.all(), *self._views.replacements())}
            there = [(d, rows[d.work.kept.id]) for d in done if d.work.kept.id in rows]
            ready = {row.id: p for d, row in there if (p := _published(d, row))}
            for d in done:
                if d.work.kept.row.cn is None and d.work.kept.id in ready:
                    self._views.started(d.work.kept.id, d.upto)
            try:
                self._views.publish(list(ready.values()))
            except KeyError:
                continue
            return


def _published(done: Done, row: ViewRow) -> Published | None:
    """What of a view's part can be shown; None if it has no state.

    `row` is as it is now: its base may have been rolled since the batch began.
    """
    base = done.base or (
        Base(row.base_cn, row.base_version)
        if row.base_cn is not None and row.base_version is not None
        else None
    )
    if base is None or done.fault is not None or (row.cn is None and done.failed):
        return None
    found = Published(row.id, done.upto, done.delta_version, base.cn, base.version)
    if not done.work.held or row.cn is None:
        return found
    return replace(found, cn=row.cn, propagated=done.upto)
