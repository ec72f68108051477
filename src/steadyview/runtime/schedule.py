"""Who is due: the rows that wait for a first state, or for admitted transactions.

A row is kept in one of two ways: by batches, many rows together, or alone, transaction by
transaction (`one_by_one`). First states are all alike. Of the rows of batches, those that are
propagated at once take part in every batch, the others when they are refreshed. Who may not go on
for now is left out: one whose source is away, that reads a table which cannot be read, or that is
tried again later.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from steadyview.catalog import ViewRow
from steadyview.runtime.gaps import newest_state
from steadyview.runtime.kept import Kept
from steadyview.runtime.losses import Losses
from steadyview.runtime.parts import Parts
from steadyview.runtime.policies import Policy, policies
from steadyview.runtime.reconciling import Reconciling
from steadyview.runtime.trouble import Faults

FAR_BEHIND = 1_000
"""Transactions; a row that is further behind the foremost one catches up in turns of its own."""


class WorkSchedule:
    """The rows of one warehouse's views, as the catalog has them at each call.

    It keeps nothing of its own, so any thread may ask it.
    """

    def __init__(
        self, parts: Parts, project: Reconciling, losses: Losses, faults: Faults
    ) -> None:
        self._parts = parts
        self._views = parts.catalog.views
        self._project = project
        self._losses = losses
        self._faults = faults

    def batched(self) -> list[Kept]:
        """The rows that every batch takes along."""
        return self.of_batches(lambda policy: policy.propagates)

    def of_batches(self, which: Callable[[Policy], bool]) -> list[Kept]:
        """The rows that batches keep, of some policies."""
        running = [k for k in self._running() if k.row.cn is not None and not k.plan.forced]
        known = self.policies()
        return [k for k in running if which(known[k.id])]

    def policies(self) -> dict[int, Policy]:
        """Of all rows, by their ids."""
        return policies([*self._views.all(), *self._views.replacements()])

    def alone(self) -> list[Kept]:
        """The rows that are kept transaction by transaction, each for itself."""
        return [k for k in self._running() if k.row.cn is not None and k.plan.forced]

    def unbuilt(self) -> list[Kept]:
        """The rows without a first state."""
        return [k for k in self._running() if k.row.cn is None]

    def ready(self, rows: Iterable[Kept], available: frozenset[str]) -> list[Kept]:
        """Those whose sources answer and that need not wait."""
        return [
            k
            for k in rows
            if k.plan.sources <= available and not self._faults.waits(k.label)
            if not self._losses.waits(k.plan)
        ]

    def waits(self, rows: Iterable[Kept], available: frozenset[str]) -> bool:
        """Whether there are admitted transactions for some of these rows."""
        last = self._parts.catalog.commits.last_cn()
        return self.behind(self.ready(rows, available), last)

    def behind(self, rows: Iterable[Kept], upto: int) -> bool:
        """Whether one of them is not where it can come to by cn `upto`."""
        shown = self.policies()
        going = {k.id: k for k in self._running() if shown[k.id].shows}
        return any(_stands(k, shown[k.id]) < self._reach(k, going, upto) for k in rows)

    def _reach(self, kept: Kept, running: Mapping[int, Kept], last: int) -> int:
        """How far a node can come: no further than one that it reads and that stands still."""
        reach: dict[int, int] = {}
        for i in kept.inputs.values():
            if i in running:
                reach[i] = self._reach(running[i], running, last)
            else:
                cn = self._views.row(i).cn
                reach[i] = -1 if cn is None else cn
        if min(reach.values(), default=last) >= last:
            return last
        return newest_state(self._parts.catalog.gaps, reach, last)

    def far_behind(self) -> set[int]:
        """The ids of the rows of batches that hold the others up."""
        reached = {k.id: k.propagated for k in self.batched() if k.propagated is not None}
        foremost = max(reached.values(), default=0)
        return {i for i, cn in reached.items() if foremost - cn > FAR_BEHIND}

    def with_parents(self, found: Sequence[Kept]) -> list[Kept]:
        """Of rows to be built, those that can be: see `level`."""
        return self.level(found, self._parts.catalog.commits.last_cn())[1]

    def level(self, found: Sequence[Kept], upto: int) -> tuple[int, list[Kept]]:
        """At which cn, `upto` at most, rows can get their first states, and which of them can.

        These are rows whose parents get one with them, or go on and have a state there. If what one
        reads has none where another parent stands, it is built when both are level again.
        """
        going = {k.id: k.row for k in self._running() if k.row.cn is not None}
        kept = _whole(found, going)
        while True:
            read = {k.id: self._outside(k, kept) for k in kept}
            stand = {i: going[i].cn or 0 for ids in read.values() for i in ids}
            at = self._common(stand, upto)
            fit = [k for k in kept if all(self._has_state(going[i], at) for i in read[k.id])]
            if len(fit) == len(kept):
                return at, kept
            # whoever fits goes first; if nobody does, without those that stand behind
            next_ = fit or [k for k in kept if all(stand[i] > at for i in read[k.id])]
            if len(next_) == len(kept):
                return at, []
            kept = _whole(next_, going)

    def _outside(self, kept: Kept, found: Sequence[Kept]) -> list[int]:
        """The nodes that it reads, and that do not get their first states with it."""
        ids = {k.id for k in found}
        return [i for i in kept.inputs.values() if i not in ids]

    def _common(self, stand: Mapping[int, int], upto: int) -> int:
        """Where the one stands that stands behind; where they all were, if they have gone on."""
        lowest = min(stand.values(), default=upto)
        return lowest if lowest <= upto else newest_state(self._parts.catalog.gaps, stand, upto)

    def _has_state(self, row: ViewRow, cn: int) -> bool:
        if row.cn == cn:
            return True
        return row.oldest_cn <= cn and self._parts.catalog.gaps.around(row.id, cn) is None

    def _running(self) -> list[Kept]:
        return self._project.running()


def _stands(kept: Kept, policy: Policy) -> int:
    """How far a row is: what is to be shown at once is not there before it is shown."""
    return (kept.row.cn if policy.shows else kept.propagated) or 0


def _whole(found: Iterable[Kept], going: Collection[int]) -> list[Kept]:
    """The rows whose parents go on, or are among them as well."""
    kept = list(found)
    while True:
        known = {*going, *(k.id for k in kept)}
        whole = [k for k in kept if known >= {*k.inputs.values()}]
        if len(whole) == len(kept):
            return kept
        kept = whole
