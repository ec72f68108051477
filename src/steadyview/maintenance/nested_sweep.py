"""Nested SWEEP: strong consistency; updates met on the way are absorbed into one change.

Agrawal, El Abbadi, Singh, Yurek, SIGMOD 1997, section 6. No keys needed, rows have counts.
Assumes: what `events` assumes.

    ViewChange(dR, i, within)   the change of the join over `within` by dR at i, and by every update
                                of these positions that is met on the way

The answer of j is corrected for all queued updates of j (as in SWEEP); these are then absorbed, all
of them merged: taking only one would leave the others' errors in. What they change among the
positions bound so far is a ViewChange of its own, evaluated before going on.

Invariant: every install is a prefix of the order of arrival. An update of b that arrives after the
answer of b, but before an absorbed update of j, is met when the ViewChange of j visits b again.
Forced termination ("easily modified", section 6.2): after `most` absorbed updates the largest
number absorbed, h, is frozen; queued updates up to h are still absorbed, later ones only
compensated. Simply stopping would install states that are no prefix, and so have no cn (law 5).
Promise: strong for single updates and source-local transactions, weak for global ones.
Not promised, without `most`: an end, while two sources keep interfering with each other.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from steadyview.maintenance.events import Action, Algorithm, Ask, Install, Part, Update
from steadyview.maintenance.net_effect import at_positions, net_rows
from steadyview.maintenance.positions import Positions
from steadyview.maintenance.view_algebra import ViewAlgebra

H = TypeVar("H")


@dataclass(eq=False)
class PartialChange(Generic[H]):
    """One level of the recursion: joined rows that bind `bound`, on the way to all of `within`."""

    known: H
    bound: frozenset[int]
    within: frozenset[int]


class NestedSweep(Algorithm[H]):
    """One view under Nested SWEEP; `most` updates are absorbed before it is forced to end."""

    def __init__(
        self, positions: Positions, algebra: ViewAlgebra[H], *, most: int | None = None
    ) -> None:
        self.positions, self.algebra = positions, algebra
        self.UpdateMessageQueue: list[tuple[int, int, H]] = []
        """(number, position, dR) of what is neither installed nor absorbed."""
        self.depth = 0
        """How deep the recursion has ever gone."""
        self._most = most
        self._absorbed: set[int] = set()
        self._horizon: int | None = None
        self._received = 0
        self._query = 0
        self._running: Generator[tuple[H, int], H, H] | None = None

    def received(self, update: Update[H]) -> Sequence[Action[H]]:
        """Queue it, position by position; begin if nothing is being swept."""
        self._received = update.number
        net = at_positions(net_rows(update.changes, self.positions, self.algebra), self.positions)
        self.UpdateMessageQueue += [(update.number, p, rows) for p, rows in net.items()]
        return [] if self._running else self._begin()

    def answered(self, query: int, answer: Sequence[H]) -> Sequence[Action[H]]:
        """Go on where the answer was awaited."""
        assert self._running is not None
        return self._resumed(answer[0])

    def _begin(self) -> Sequence[Action[H]]:
        if not self.UpdateMessageQueue:
            return []
        number, position, rows = self.UpdateMessageQueue.pop(0)
        self._absorbed, self._horizon = set(), None
        self._absorb(number)
        self._running = self._view_change(rows, position)
        return self._resumed(None)

    def _resumed(self, answer: H | None) -> Sequence[Action[H]]:
        """Run to the next lookup, or to the end: install, and begin with what came meanwhile."""
        assert self._running is not None
        try:
            known, position = next(self._running) if answer is None else self._running.send(answer)
        except StopIteration as ended:
            self._running = None
            change = self.algebra.materialized(self.algebra.project(ended.value))
            return [Install(change, max(self._absorbed)), *self._begin()]
        self._query += 1
        source = self.positions.relations[position].source
        return [Ask(self._query, source, (Part(known, ((position, None),)),))]

    def _view_change(self, rows: H, start: int) -> Generator[tuple[H, int], H, H]:
        """Yields lookups (known rows, position), is sent the answers, returns the joined change.

        The recursion has a stack of its own: how deep it goes is up to the sources.
        """
        stack = [self._begun(rows, start, self.positions.all)]
        while True:
            self.depth = max(self.depth, len(stack))
            change = stack[-1]
            position = self.positions.next(change.bound, change.within)
            if position is not None:
                answer = yield change.known, position
                absorbed = self._answered(change, position, answer)
                if absorbed is not None:
                    stack.append(self._begun(absorbed, position, change.bound))
                continue
            stack.pop()
            if not stack:
                return change.known
            stack[-1].known = self._sum(stack[-1].known, change.known)

    def _begun(self, rows: H, start: int, within: frozenset[int]) -> PartialChange[H]:
        return PartialChange(self.algebra.seed(start, rows), frozenset({start}), within)

    def _answered(self, change: PartialChange[H], position: int, answer: H) -> H | None:
        """Correct the answer for what is queued of the position; of that, what is absorbed now."""
        temp_view, change.known = change.known, answer
        change.bound |= {position}
        queued = self._queued(position)
        if queued is None:
            return None
        error = self.algebra.join(temp_view, position, queued)
        change.known = self._sum(answer, self.algebra.negate(error))
        return self._absorbed_of(position)

    def _sum(self, one: H, other: H) -> H:
        return self.algebra.materialized(self.algebra.add([one, other]))

    def _queued(self, position: int) -> H | None:
        """Everything queued of a position, merged."""
        return self._merged([rows for _, p, rows in self.UpdateMessageQueue if p == position])

    def _absorbed_of(self, position: int) -> H | None:
        """Take the updates of a position out of the queue that may still be absorbed, merged."""
        queue, self.UpdateMessageQueue = self.UpdateMessageQueue, []
        taken: list[tuple[int, int, H]] = []
        for entry in queue:
            absorbed = entry[1] == position and self._may(entry[0])
            (taken if absorbed else self.UpdateMessageQueue).append(entry)
        self._absorb(*(number for number, _, _ in taken))
        return self._merged([rows for _, _, rows in taken])

    def _may(self, number: int) -> bool:
        return self._horizon is None or number <= self._horizon

    def _absorb(self, *numbers: int) -> None:
        self._absorbed.update(numbers)
        if self._most is not None and self._horizon is None and len(self._absorbed) >= self._most:
            self._horizon = max(self._absorbed)

    def _merged(self, handles: Sequence[H]) -> H | None:
        if not handles:
            return None
        return handles[0] if len(handles) == 1 else self.algebra.add(handles)
