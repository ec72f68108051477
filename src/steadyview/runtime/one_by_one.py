"""Views kept by an algorithm of the papers: each has its turn, alone.

All that the product knows of the room `papers`: who is due and what becomes of a view that fails is
decided here as for any other; how such a view is kept, there. What readers see of it, its first
state and its base are like any other view's.
"""

from __future__ import annotations

from steadyview.engine.failures import spark_told
from steadyview.errors import ColumnLost, ConfigError, ViewStopped
from steadyview.papers.forced import Effort, ForcedViews, adopt
from steadyview.papers.live import ForcedPlan, ShownView
from steadyview.papers.recording import Recordings
from steadyview.query.moment import WaitFor, open_moment
from steadyview.runtime.kept import Kept
from steadyview.runtime.outcomes import Outcomes
from steadyview.runtime.parts import Parts
from steadyview.runtime.planning import Planned
from steadyview.runtime.schedule import WorkSchedule


class OneByOne:
    """Works on these views; used by the thread of the loop alone."""

    def __init__(
        self,
        parts: Parts,
        schedule: WorkSchedule,
        outcomes: Outcomes,
        wait_for: WaitFor,
        recordings: Recordings,
    ) -> None:
        self._parts = parts
        self._schedule = schedule
        self._outcomes = outcomes
        self._wait_for = wait_for
        self._recordings = recordings
        self._views = ForcedViews(parts, wait_for)

    def begin(self) -> None:
        """Publish what the life before left durable and unpublished; then recordings begin."""
        for kept in self._schedule.alone():
            if not kept.row.replacement:
                adopt(self._parts, _forced(kept))
        self._recordings.begin(self._parts.catalog)

    def waiting(self, available: frozenset[str]) -> bool:
        """Whether there are admitted transactions for one of these views."""
        return self._schedule.waits(self._schedule.alone(), available)

    def turn(self, available: frozenset[str], seconds: float | None) -> None:
        """So many seconds for each view or (None) until it has all that its sources had by now."""
        with spark_told(self._parts.root):
            rows = self._schedule.alone()
            self._views.forget_others({kept.id for kept in rows})
            for kept in self._schedule.ready(rows, available):
                self._keep(kept, seconds)

    def close(self) -> None:
        """Forget the algorithms' objects: they start again from what is published."""
        self._views.close()

    def _keep(self, kept: Kept, seconds: float | None) -> None:
        try:
            done = self._kept(kept, seconds)
        except ColumnLost as lost:
            self._outcomes.lost(kept, lost)
        except ViewStopped as stopped:
            self._outcomes.stopped(kept, stopped)
        except Exception as error:  # noqa: BLE001 - sorted by `trouble`
            self._outcomes.failed(kept, error)
        else:
            self._outcomes.asked(done.messages)
            self._outcomes.went_on(kept, done.changes)

    def _kept(self, kept: Kept, seconds: float | None) -> Effort:
        target = self._parts.catalog.commits.last_cn()
        if seconds is None:
            sources = [self._parts.sources[s] for s in sorted(kept.plan.sources)]
            with open_moment(sources, self._wait_for, self._parts.catalog) as moment:
                target = moment.upto
        recording = None if kept.row.replacement else self._recordings.of(kept.name)
        return self._views.work(_forced(kept), recording, target, seconds)


def shown_view(plan: Planned) -> ShownView:
    """The view as a recording needs it; ConfigError if it is not kept incrementally."""
    if plan.node is None or plan.text is None:
        raise ConfigError(
            f'view "{plan.name}" is recomputed as a whole, and cannot be recorded',
            hint="force an algorithm that fits it, or record another view",
        )
    uses = {r.name: plan.uses(r.name) for r in plan.relations}
    return ShownView(plan.name, plan.text.select, plan.relations, uses, plan.shape)


def _forced(kept: Kept) -> ForcedPlan:
    """The view as its algorithm needs it."""
    plan, shown = kept.plan, shown_view(kept.plan)
    assert plan.algorithm is not None
    assert plan.algorithm.make is not None
    assert plan.definition is not None
    assert plan.tree is not None
    return ForcedPlan(
        shown.name,
        shown.select,
        shown.relations,
        shown.uses,
        shown.shape,
        kept.id,
        plan.definition,
        plan.tree,
        plan.algorithm.make,
        plan.algorithm.holds_view,
    )
