"""Who is due: the rows that wait for a first state, or for admitted transactions.

A row is kept in one of two ways: by batches, many rows together, or alone, transaction by
transaction (`one_by_one`). First states are all alike. Who may not go on for now is left out: one
whose source is away, that reads a table which cannot be read, or that is tried again later.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from steadyview.runtime.kept import Kept
from steadyview.runtime.losses import Losses
from steadyview.runtime.parts import Parts
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
        """The rows that batches keep."""
        return [k for k in self._running() if k.row.cn is not None and not k.plan.forced]

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
        running = {k.id: k for k in self._running()}
        return any((k.row.cn or 0) < self._reach(k, running, upto) for k in rows)

    def _reach(self, kept: Kept, running: Mapping[int, Kept], last: int) -> int:
        """How far a node can come: no further than one that it reads and that stands still."""
        reach = [last]
        for i in kept.inputs.values():
            if i in running:
                reach.append(self._reach(running[i], running, last))
            else:
                cn = self._views.row(i).cn
                reach.append(-1 if cn is None else cn)
        return min(reach)

    def far_behind(self) -> set[int]:
        """The ids of the rows of batches that hold the others up."""
        reached = {k.id: k.row.cn for k in self.batched() if k.row.cn is not None}
        foremost = max(reached.values(), default=0)
        return {i for i, cn in reached.items() if foremost - cn > FAR_BEHIND}

    def with_parents(self, found: Sequence[Kept]) -> list[Kept]:
        """Of rows to be built, those whose parents have a state and go on, or get one with them."""
        going = {k.id for k in self._running() if k.row.cn is not None}
        kept = list(found)
        while True:
            known = going | {k.id for k in kept}
            found, kept = kept, [k for k in kept if known >= {*k.inputs.values()}]
            if len(kept) == len(found):
                return kept

    def _running(self) -> list[Kept]:
        return self._project.running()
