"""Recomputation: read every source, one after another, and replace the view.

Zhuge et al., PDIS 1996, section 1 (one sentence): what several products do.
Assumes: what `events` assumes; a source shows all its relations in one state.
Invariant, when the last source is read: MV becomes the view over a vector (k_1, ..., k_n), source x
being seen after its first k_x updates, no fewer than in the reading before and than had arrived
when this one began. If nothing has arrived since it began, these are all: the install is `whole`.
Promise: strong, for single updates and source-local transactions (each source is read at a moment
no earlier than before, and the last reading follows the last update); weak where transactions span
sources, because sources are read at different moments.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from steadyview.maintenance.events import Action, Algorithm, Install, Read, Update
from steadyview.maintenance.positions import Positions
from steadyview.maintenance.view_algebra import ViewAlgebra

H = TypeVar("H")


class Recompute(Algorithm[H]):
    """One view, computed anew whenever something changed and nothing is being read."""

    def __init__(self, positions: Positions, algebra: ViewAlgebra[H], mv: H) -> None:
        self.positions, self.algebra = positions, algebra
        self.MV = mv
        self._sources = sorted(positions.sources)
        self._dirty = False
        self._reading: dict[int, H] | None = None
        self._unread: list[str] = []
        self._query = 0
        self._received = 0
        self._reflected = 0

    def received(self, update: Update[H]) -> Sequence[Action[H]]:
        """Read if idle; otherwise once more, later."""
        self._received = update.number
        self._dirty = True
        return [] if self._reading is not None else self._begin()

    def answered(self, query: int, answer: Sequence[H]) -> Sequence[Action[H]]:
        """The next source, or the view."""
        assert self._reading is not None
        read = self._sources[len(self._sources) - len(self._unread)]
        self._reading |= dict(zip(self.positions.at(read), answer, strict=True))
        self._unread = self._unread[1:]
        if self._unread:
            return [self._read()]
        return [*self._installed(), *(self._begin() if self._dirty else ())]

    def _begin(self) -> Sequence[Action[H]]:
        self._dirty, self._reading, self._unread = False, {}, list(self._sources)
        self._reflected = self._received
        return [self._read()]

    def _read(self) -> Read:
        self._query += 1
        return Read(self._query, self._unread[0], self.positions.at(self._unread[0]))

    def _installed(self) -> Sequence[Action[H]]:
        rows, self._reading = self._reading or {}, None
        joined = self.algebra.seed(0, rows[0])
        for position in self.positions.outward(0):
            joined = self.algebra.join(joined, position, rows[position])
        old, self.MV = self.MV, self.algebra.materialized(self.algebra.project(joined))
        change = self.algebra.add([self.MV, self.algebra.negate(old)])
        return [Install(change, self._reflected, whole=self._reflected == self._received)]
