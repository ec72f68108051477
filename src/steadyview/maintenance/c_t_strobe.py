"""C-TStrobe: C-Strobe for transactions, acting after every k of them.

Named, not described, at the end of section 6 of Zhuge, Garcia-Molina, Wiener, PDIS 1996.
Assumes: as Strobe. A unit is the next k transactions, or fewer when a tick closes it.
Invariant, when the queries of the unit L[:e] are answered: Delta, less the rows that L[e:] inserts,
holds the rows that the unit's net insertions make in the state that the unit made. It is cut off L
then, as no later unit looks back.
L holds single changes, also those of a unit that is not closed yet; deletions of a later
transaction are substituted relation by relation, each compensated for those behind it, never only
together.
Promise: complete for k = 1, strong for k > 1 (single updates and source-local transactions); weak
where transactions span sources, since each part is a transaction of its own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple, TypeVar

from steadyview.maintenance.c_strobe import Delta
from steadyview.maintenance.events import Action, Change, Update
from steadyview.maintenance.net_effect import net_changes
from steadyview.maintenance.positions import Positions
from steadyview.maintenance.queries import Term, of_view
from steadyview.maintenance.strobe import key_deleted
from steadyview.maintenance.view_algebra import ViewAlgebra

H = TypeVar("H")


class Unit(NamedTuple):
    """So many changes, of transactions up to number `upto`; those of the first unit begin L."""

    size: int
    upto: int


class CTStrobe(Delta[H]):
    """One view under C-TStrobe, acting every `k` transactions."""

    def __init__(self, positions: Positions, algebra: ViewAlgebra[H], mv: H, *, k: int = 1) -> None:
        super().__init__(positions, algebra, mv)
        self._k = k
        self._units: deque[Unit] = deque()
        self._begin = 0
        """Where in L the unit begins that is not closed."""
        self._collected = 0
        self._received = 0
        self._deletions_of_unit: list[Change[H]] = []

    def received(self, update: Update[H]) -> Sequence[Action[H]]:
        """Close the unit if this is its k-th transaction."""
        self.append(update)
        self._received = update.number
        self._collected += 1
        return self._closed() if self._collected == self._k else []

    def ticked(self) -> Sequence[Action[H]]:
        """Close the unit with what there is."""
        return self._closed() if self._collected else []

    def answered(self, query: int, answer: Sequence[H]) -> Sequence[Action[H]]:
        """Compensate, or finish the unit and go on."""
        self.UQS[query][0].answered(answer[0])
        actions = self.evaluated(query)
        return actions if self.UQS else [*actions, *self._finished(), *self._processed()]

    def _closed(self) -> Sequence[Action[H]]:
        self._units.append(Unit(len(self.L) - self._begin, self._received))
        self._begin, self._collected = len(self.L), 0
        return self._processed() if len(self._units) == 1 else []

    def _processed(self) -> Sequence[Action[H]]:
        """Handle unit after unit until one has to wait for answers."""
        actions: list[Action[H]] = []
        while self._units and not self.UQS:
            actions += self._issued(self._units[0])
            if not self.UQS:
                actions += self._finished()
        return actions

    def _issued(self, unit: Unit) -> Sequence[Action[H]]:
        changes = self.L[: unit.size]
        self._deletions_of_unit, insertions = net_changes(changes, self.positions, self.algebra)
        terms: list[Term[H]] = []
        for change in insertions:
            terms += of_view(self.positions, change.relation, change.rows)
        self.compensating = 0
        return self.issue(terms, unit.size)

    def _finished(self) -> Sequence[Action[H]]:
        unit = self._units.popleft()
        mv = self.MV
        for deletion in self._deletions_of_unit:
            mv = key_deleted(mv, deletion, self.positions, self.algebra)
        mv = self.with_delta(mv, unit.size)
        del self.L[: unit.size]
        self._begin -= unit.size
        return self.installed(mv, unit.upto)
