"""Batched two-way sweep: complete consistency for a whole batch at once, with 2(n-1) lookups.

Extends SWEEP (Agrawal, El Abbadi, Singh, Yurek, SIGMOD 1997, section 5), which handles one update
at a time, to all transactions k of a batch (a, b] together. With R_j(k) for relation j after
transactions 1..k of the warehouse order,

    dV(k) = sum over i of  R_1(k) x ... x R_{i-1}(k) x dR_i(k) x R_{i+1}(k-1) x ... x R_n(k-1)

Every term starts at one changed occurrence i and sweeps outward along a spanning tree of the join
graph. All starts share the lookups: one per directed edge u -> v, sent when the answers of all
other edges into u are there, for every value of the join column that a row at u can have.

Assumes: one frozen state per source for the whole batch, and that the algebra knows which
transactions each state reflects (any set; not even a prefix is needed).
Invariant, when edge u -> v is asked: the keys sent contain the join value of every row that any
partial from u's side can hold at u, at any time of the batch. So each partner is exact for every
row it will be joined with.
Promise: the recorded change, restricted to tag k, is exactly dV(k).
Not promised: any order in which lookups of one round are answered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from steadyview.maintenance.relation_algebra import RelationAlgebra
from steadyview.views.definition import Definition, Occurrence
from steadyview.views.join_tree import Edge, JoinTree

H = TypeVar("H")


@dataclass(frozen=True)
class EdgeLookup(Generic[H]):
    """Look up the relation of `occurrence` by `keys` of the edge's column; without keys, whole."""

    edge: Edge
    occurrence: Occurrence
    keys: H | None


@dataclass(frozen=True)
class Record(Generic[H]):
    """The batch's change of the view's join, every row tagged with its cn. The sweep is over."""

    change: H


class BatchedSweep(Generic[H]):
    """One view's sweep over one batch in which the `changed` occurrences have logged changes."""

    def __init__(
        self,
        definition: Definition,
        tree: JoinTree,
        algebra: RelationAlgebra[H],
        changed: frozenset[int],
    ) -> None:
        self._occurrences = definition.occurrences
        self._tree = tree
        self._algebra = algebra
        self._changed = changed
        self._steps = {i: tree.steps(i) for i in sorted(changed)}
        self._needed = self._edges_swept()
        self._feeding = {edge: self._into(edge) for edge in self._needed}
        self._asked: set[Edge] = set()
        self._partners: dict[Edge, H] = {}

    def begin(self) -> Sequence[EdgeLookup[H] | Record[H]]:
        """The first round of lookups; at once the result where no lookup is needed."""
        return self._advance()

    def answered(self, edge: Edge, answer: H) -> Sequence[EdgeLookup[H] | Record[H]]:
        """Take the answer of one edge; what can be asked next, or the result after the last one."""
        self._partners[edge] = self._algebra.partner(self._occurrences[edge.v], answer)
        return self._advance()

    def _edges_swept(self) -> frozenset[Edge]:
        """The directed edges that lead away from a changed occurrence."""
        return frozenset(step.edge for steps in self._steps.values() for step in steps)

    def _advance(self) -> Sequence[EdgeLookup[H] | Record[H]]:
        unasked = self._needed - self._asked
        ready = [e for e in self._tree.edges if e in unasked and self._fed(e)]
        self._asked.update(ready)
        if not ready and len(self._partners) == len(self._needed):
            return [Record(self._change())]
        return [self._ask(e) for e in ready]

    def _into(self, edge: Edge) -> list[Edge]:
        """The swept edges that bring rows to `edge.u` from anywhere but `edge.v`."""
        into = [e for e in self._tree.edges if e.v == edge.u and e.u != edge.v]
        return [e for e in into if e in self._needed]

    def _fed(self, edge: Edge) -> bool:
        return all(e in self._partners for e in self._feeding[edge])

    def _ask(self, edge: Edge) -> EdgeLookup[H]:
        target = self._occurrences[edge.v]
        if edge.key is None:
            return EdgeLookup(edge, target, None)
        here = self._occurrences[edge.u]
        rows = [self._partners[e] for e in self._feeding[edge]]
        if edge.u in self._changed:
            rows.append(self._algebra.seed(here, ()))
        return EdgeLookup(edge, target, self._algebra.keys(rows, here, edge.key.from_column))

    def _change(self) -> H:
        return self._algebra.add([self._sweep(i) for i in self._steps])

    def _sweep(self, start: int) -> H:
        """The term of dV that starts at one occurrence: outward, one join a step."""
        partial = self._algebra.seed(self._occurrences[start], self._tree.start_conditions(start))
        for step in self._steps[start]:
            v = step.edge.v
            partial = self._algebra.extend(
                partial,
                self._occurrences[v],
                self._partners[step.edge],
                step.conditions,
                own=v < start,
            )
        return partial
