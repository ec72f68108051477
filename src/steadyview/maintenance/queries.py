"""Queries as the papers write them: V<U>, Q<U>, and `source_evaluate` step by step.

A term binds changes to some positions and leaves base relations at the others; a query is a signed
sum of terms. Substitution is symbolic: nothing is joined before a source is asked.

    V<U>     U at every position of its relation, one term each
    Q<U>     U at one more position; empty where that position is bound already

Zhuge et al., PDIS 1996, section 5.1. All columns of every bound position are carried to the end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from typing import Generic, TypeVar

from steadyview.changes import RelationName
from steadyview.maintenance.events import Ask, Part
from steadyview.maintenance.positions import Positions
from steadyview.maintenance.view_algebra import ViewAlgebra

H = TypeVar("H")


@dataclass(frozen=True, slots=True)
class Term(Generic[H]):
    """The view's join with changes in place of some base relations."""

    bound: Mapping[int, H]
    sign: int = 1


def of_view(positions: Positions, relation: RelationName, rows: H) -> list[Term[H]]:
    """V<U> for rows of one relation, at every position of it."""
    return [Term({position: rows}) for position in positions.of(relation)]


def of_transaction(term: Term[H], changed: Mapping[int, H]) -> list[Term[H]]:
    """X<T> for a transaction over several positions, evaluated after T, by inclusion and exclusion.

    The sum of (-1)^(|S|+1) X<dR_S> over the non-empty sets S of changed positions that X leaves to
    base relations.
    """
    free = [p for p in changed if p not in term.bound]
    subsets = chain.from_iterable(combinations(free, k) for k in range(1, len(free) + 1))
    return [
        Term(
            {**term.bound, **{p: changed[p] for p in subset}},
            term.sign * (-1) ** (len(subset) + 1),
        )
        for subset in subsets
    ]


class SourceEvaluate(Generic[H]):
    """The procedure `source_evaluate(Q)` for a union of terms: one term, one lookup after another.

    Asks nobody when nothing is known that could be joined: an empty partial answer ends its term.
    """

    def __init__(
        self, terms: Sequence[Term[H]], positions: Positions, algebra: ViewAlgebra[H]
    ) -> None:
        self.terms = tuple(terms)
        self.answers: list[H] = []
        """The answers that are not empty; each binds every position."""
        self._positions = positions
        self._algebra = algebra
        self._todo = [dict(term.bound) for term in reversed(self.terms)]
        self._bound: frozenset[int] = frozenset()
        self._begin()

    def next_source(self, query: int) -> Ask[H] | None:
        """The next subquery, one position at one source; None when all answers are there."""
        while self._waiting is not None:
            if not self._algebra.is_empty(self._answer):
                position = self._positions.next(self._bound)
                if position is not None:
                    source = self._positions.relations[position].source
                    return Ask(query, source, (Part(self._answer, ((position, None),)),))
                self.answers.append(self._answer)
            self._begin()
        return None

    def answered(self, answer: H) -> None:
        """WQ<A>: the answer takes the place of what was known and of the relation just asked."""
        position = self._positions.next(self._bound)
        assert position is not None
        self._bound |= {position}
        self._answer = answer
        self._join_known()

    def _begin(self) -> None:
        """Start with the next term, or be at the end."""
        self._waiting: dict[int, H] | None = self._todo.pop() if self._todo else None
        if self._waiting is not None:
            start = min(self._waiting)
            self._answer = self._algebra.seed(start, self._waiting.pop(start))
            self._bound = frozenset({start})
            self._join_known()

    def _join_known(self) -> None:
        """Join the changes that can be reached without asking."""
        while (near := self._reachable()) is not None:
            assert self._waiting is not None
            self._bound |= {near}
            self._answer = self._algebra.join(self._answer, near, self._waiting.pop(near))

    def _reachable(self) -> int | None:
        neighbours = self._positions.neighbours
        near = [p for p in self._waiting or () if not self._bound.isdisjoint(neighbours[p])]
        return min(near, default=None)


def signed(parts: Sequence[tuple[int, H]], algebra: ViewAlgebra[H]) -> H:
    """The sum of answers, each with the sign of its term."""
    return algebra.add([h if sign > 0 else algebra.negate(h) for sign, h in parts])
