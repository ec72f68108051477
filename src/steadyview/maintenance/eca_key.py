"""ECA-key: one source, keys in the view, no compensating queries. Kept with its published error.

Zhuge, Garcia-Molina, Hammer, Widom, SIGMOD 1995; its error is named in Zhuge et al., PDIS 1996,
section 5.2: a row that is deleted while the query of its own insertion is unanswered comes back
with the answer, for ever.
Assumes: all relations at one source, a key of each in the view.
Promise: none. (Strong where no row is deleted before the query of its insertion was answered.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from steadyview.maintenance.events import Action, Algorithm, Ask, Change, Install, Part, Update
from steadyview.maintenance.positions import Positions
from steadyview.maintenance.queries import of_view
from steadyview.maintenance.strobe import key_deleted
from steadyview.maintenance.view_algebra import ViewAlgebra

H = TypeVar("H")


class EcaKey(Algorithm[H]):
    """One view under ECA-key; COLLECT is the copy of MV that the next install will show."""

    def __init__(self, positions: Positions, algebra: ViewAlgebra[H], mv: H) -> None:
        self.positions, self.algebra = positions, algebra
        self.MV = mv
        self.COLLECT = mv
        self.UQS: set[int] = set()
        self._queries = 0
        self._received = 0

    def received(self, update: Update[H]) -> Sequence[Action[H]]:
        """Deletions at once in COLLECT, insertions by an uncompensated query."""
        self._received = update.number
        actions: list[Action[H]] = []
        for change in update.changes:
            if not change.inserted:
                self.COLLECT = key_deleted(self.COLLECT, change, self.positions, self.algebra)
            elif self.positions.of(change.relation):
                actions += self._asked(change)
        return [*actions, *self._installed()]

    def answered(self, query: int, answer: Sequence[H]) -> Sequence[Action[H]]:
        """COLLECT gets what it lacks."""
        self.UQS.remove(query)
        self._collected(answer)
        return self._installed()

    def _asked(self, change: Change[H]) -> Sequence[Action[H]]:
        (source,) = self.positions.sources
        parts = [
            Part(
                self.algebra.seed(start, rows),
                tuple((p, None) for p in self.positions.outward(start)),
            )
            for term in of_view(self.positions, change.relation, change.rows)
            for start, rows in term.bound.items()
        ]
        if self.positions.size == 1:
            self._collected([part.known for part in parts])
            return []
        self._queries += 1
        self.UQS.add(self._queries)
        return [Ask(self._queries, source, tuple(parts))]

    def _collected(self, answers: Sequence[H]) -> None:
        found = [self.algebra.project(answer) for answer in answers]
        self.COLLECT = self.algebra.distinct(self.algebra.add([self.COLLECT, *found]))

    def _installed(self) -> Sequence[Action[H]]:
        if self.UQS or self.COLLECT is self.MV:
            return []
        old, self.MV = self.MV, self.algebra.materialized(self.COLLECT)
        self.COLLECT = self.MV
        return [Install(self.algebra.add([self.MV, self.algebra.negate(old)]), self._received)]
