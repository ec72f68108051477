"""SWEEP: complete consistency, one update at a time, errors corrected at the warehouse.

Agrawal, El Abbadi, Singh, Yurek, SIGMOD 1997, section 5; no keys needed, rows have counts.
Assumes: what `events` assumes.
Invariant, when the answer of position j for update k arrives:
    answer - sum{ TempView |x| dR_j(s) : s received, s > k }  ==  TempView |x| R_j(k)
and for j > i, i being the position the sweep started from, k's own change of j is taken out too, so
that a transaction over several positions is the telescoping sum of one sweep per changed position.
A lookup is sent also when TempView is empty: n-1 for each changed position.

Three ways to walk:
- one position after another, to the left first (`Sweep`);
- every branch of the start position in parallel (`parallel=True`; left and right of a chain). The
  printed merge dV_left |x| dV_right squares the counts of dR: only one branch starts from dR, the
  others from its rows at count 1;
- over several updates at once (`pipelined=True`): every update starts at once, changes are kept
  until no earlier sweep needs them, installs are in order.
`whole=True`, the transaction form: parts of a global transaction are admitted together
(`admission`), and the view is complete in that order; otherwise every part is an update of its own:
weak.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from steadyview.maintenance.admission import Admission
from steadyview.maintenance.events import Action, Algorithm, Ask, Change, Install, Part, Update
from steadyview.maintenance.net_effect import at_positions, net_rows
from steadyview.maintenance.positions import Positions
from steadyview.maintenance.view_algebra import ViewAlgebra

H = TypeVar("H")


@dataclass(eq=False)
class Walk(Generic[H]):
    """One branch of one sweep: what is known, and the positions it has to visit."""

    start: int
    known: H
    bound: frozenset[int]
    within: frozenset[int]


@dataclass(eq=False)
class ViewChange(Generic[H]):
    """The change of the view by one update: a sweep for each changed position."""

    number: int
    changed: Mapping[int, H]
    todo: list[int]
    open: list[Walk[H]] = field(default_factory=list)
    merged: list[H] = field(default_factory=list)
    """Finished branches of the sweep at hand."""
    parts: list[H] = field(default_factory=list)
    """Finished sweeps."""
    install: Install[H] | None = None


class Sweep(Algorithm[H]):
    """One view under SWEEP."""

    def __init__(
        self,
        positions: Positions,
        algebra: ViewAlgebra[H],
        *,
        parallel: bool = False,
        pipelined: bool = False,
        whole: bool = False,
    ) -> None:
        self.positions, self.algebra = positions, algebra
        self._parallel, self._pipelined = parallel, pipelined
        self._admission: Admission[H] | None = Admission() if whole else None
        self._admitted = 0
        self.UpdateMessageQueue: list[ViewChange[H]] = []
        """Updates that are not installed yet, in order; the first ones are being swept."""
        self._walks: dict[int, tuple[ViewChange[H], Walk[H]]] = {}
        self._queries = 0

    def received(self, update: Update[H]) -> Sequence[Action[H]]:
        """Queue it; sweep if nothing is being swept, or in a pipeline."""
        if self._admission is None:
            return self._queued(update.number, update.changes)
        actions: list[Action[H]] = []
        for parts in self._admission.arrived(update):
            self._admitted += 1
            actions += self._queued(self._admitted, [c for part in parts for c in part.changes])
        return actions

    def answered(self, query: int, answer: Sequence[H]) -> Sequence[Action[H]]:
        """Take out what the answer shows of later updates, and go on."""
        change, walk = self._walks.pop(query)
        position = self.positions.next(walk.bound, walk.within)
        assert position is not None
        known = answer[0]
        later = self._later(change, position, own=position > walk.start)
        if later:
            error = self.algebra.join(walk.known, position, self._sum(later))
            known = self.algebra.add([known, self.algebra.negate(error)])
        walk.known = self.algebra.materialized(known)
        walk.bound |= {position}
        return [*self._walked(change, walk), *self._installed()]

    def _queued(self, number: int, changes: Sequence[Change[H]]) -> Sequence[Action[H]]:
        net = at_positions(net_rows(changes, self.positions, self.algebra), self.positions)
        change = ViewChange(number, net, sorted(net, reverse=True))
        self.UpdateMessageQueue.append(change)
        if self._pipelined or len(self.UpdateMessageQueue) == 1:
            return [*self._swept(change), *self._installed()]
        return []

    def _later(self, change: ViewChange[H], position: int, *, own: bool) -> list[H]:
        """The changes of a position that an answer shows and that update k must not see."""
        at = self.UpdateMessageQueue.index(change)
        later = self.UpdateMessageQueue[at if own else at + 1 :]
        found = [other.changed[position] for other in later if position in other.changed]
        if self._admission is not None:
            relation = self.positions.relations[position]
            for update in self._admission.held():
                rows = net_rows(update.changes, self.positions, self.algebra)
                found += [rows[relation]] if relation in rows else []
        return found

    def _sum(self, handles: Sequence[H]) -> H:
        return handles[0] if len(handles) == 1 else self.algebra.add(handles)

    def _swept(self, change: ViewChange[H]) -> Sequence[Action[H]]:
        """Begin with the next changed position; with none left, the view's change is there."""
        if not change.todo:
            if change.parts:
                view = self.algebra.project(self._sum(change.parts))
                change.install = Install(self.algebra.materialized(view), change.number)
            return []
        start = change.todo.pop()
        change.merged = []
        change.open = self._branches(start, change.changed[start])
        return [action for walk in list(change.open) for action in self._walked(change, walk)]

    def _branches(self, start: int, rows: H) -> list[Walk[H]]:
        """One walk over everything; in parallel, one per branch, dR's counts in the first only."""
        alone = frozenset({start})
        if not self._parallel or self.positions.size == 1:
            return [Walk(start, self.algebra.seed(start, rows), alone, self.positions.all)]
        once = self.algebra.distinct(rows)
        return [
            Walk(start, self.algebra.seed(start, once if i else rows), alone, within)
            for i, within in enumerate(self.positions.branches(start))
        ]

    def _walked(self, change: ViewChange[H], walk: Walk[H]) -> Sequence[Action[H]]:
        """The walk's next lookup; at its end merge, and after the last walk go on."""
        position = self.positions.next(walk.bound, walk.within)
        if position is not None:
            self._queries += 1
            self._walks[self._queries] = change, walk
            source = self.positions.relations[position].source
            return [Ask(self._queries, source, (Part(walk.known, ((position, None),)),))]
        change.open.remove(walk)
        change.merged.append(walk.known)
        if change.open:
            return []
        first, *others = change.merged
        for other in others:
            first = self.algebra.merge(first, other, walk.start)
        change.parts.append(first)
        return self._swept(change)

    def _installed(self) -> Sequence[Action[H]]:
        """Install in order; in sequence, begin the next update then."""
        actions: list[Action[H]] = []
        while self.UpdateMessageQueue and self._finished(self.UpdateMessageQueue[0]):
            change = self.UpdateMessageQueue.pop(0)
            if change.install is not None:
                actions.append(change.install)
            if not self._pipelined and self.UpdateMessageQueue:
                actions += self._swept(self.UpdateMessageQueue[0])
        return actions

    def _finished(self, change: ViewChange[H]) -> bool:
        return not change.todo and not change.open
