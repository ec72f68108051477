"""The first state of a view at an exact cn, while its sources keep changing.

Every source is read whole, at its own moment, and compensated to the batch's end b:

    V(b)  =  R_0(b) x R_1(b) x ... x R_{n-1}(b),     each R_j(b) as in `relation_algebra`

Promise: exactly V(b); one lookup per occurrence.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar

from steadyview.maintenance.batched_sweep import EdgeLookup, Record
from steadyview.maintenance.relation_algebra import RelationAlgebra
from steadyview.views.definition import Definition, Occurrence
from steadyview.views.join_tree import Edge, JoinTree

H = TypeVar("H")


class StateAlgebra(RelationAlgebra[H], Protocol[H]):
    """The algebra of the sweep, and a partner at the batch's end."""

    def state(self, occurrence: Occurrence, partner: H, conditions: Sequence[str]) -> H:
        """R(b) as a partial that binds `occurrence` alone, every row tagged with b."""


class FirstState(Generic[H]):
    """One view's first state at the end of one batch. Same events and actions as `BatchedSweep`."""

    def __init__(self, definition: Definition, tree: JoinTree, algebra: StateAlgebra[H]) -> None:
        self._occurrences = definition.occurrences
        self._tree = tree
        self._algebra = algebra
        self._partners: dict[int, H] = {}

    def begin(self) -> Sequence[EdgeLookup[H] | Record[H]]:
        """Ask for every occurrence, whole."""
        return [EdgeLookup(Edge(o.number, o.number), o, None) for o in self._occurrences]

    def answered(self, edge: Edge, answer: H) -> Sequence[EdgeLookup[H] | Record[H]]:
        """Take one whole relation; the view's state after the last one."""
        self._partners[edge.v] = self._algebra.partner(self._occurrences[edge.v], answer)
        if len(self._partners) < len(self._occurrences):
            return []
        return [Record(self._algebra.add([self._joined()]))]

    def _joined(self) -> H:
        partial = self._algebra.state(
            self._occurrences[0], self._partners[0], self._tree.start_conditions(0)
        )
        for step in self._tree.steps(0):
            v = step.edge.v
            partial = self._algebra.extend(
                partial, self._occurrences[v], self._partners[v], step.conditions, own=True
            )
        return partial
