"""ECA: strong consistency over one source, by queries that carry their own compensation.

Zhuge, Garcia-Molina, Hammer, Widom, SIGMOD 1995; its idea in Agrawal et al., SIGMOD 1997, section
3.
Assumes: all relations at one source; needs no keys, rows have signed counts.
    Q_i  =  V<U_i>  -  sum{ Q_j<U_i> : Q_j in UQS }       as ONE query, evaluated in one state
Invariant: COLLECT plus the answers still to come is the change of the view by all updates received.
A transaction over several positions is substituted by inclusion and exclusion (`of_transaction`).
Not promised: an install while updates keep coming; a size of queries that is less than quadratic.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from steadyview.maintenance.events import Action, Algorithm, Ask, Install, Part, Update
from steadyview.maintenance.net_effect import at_positions, net_rows
from steadyview.maintenance.positions import Positions
from steadyview.maintenance.queries import Term, of_transaction, signed
from steadyview.maintenance.view_algebra import ViewAlgebra

H = TypeVar("H")


class Eca(Algorithm[H]):
    """One view under ECA."""

    def __init__(self, positions: Positions, algebra: ViewAlgebra[H]) -> None:
        self.positions, self.algebra = positions, algebra
        self.UQS: dict[int, list[Term[H]]] = {}
        self.COLLECT: list[H] = []
        self._received = 0

    def received(self, update: Update[H]) -> Sequence[Action[H]]:
        """Ask for V<U>, less what the open queries will see of U."""
        self._received = update.number
        net = at_positions(net_rows(update.changes, self.positions, self.algebra), self.positions)
        if not net:
            return []
        query = of_transaction(Term({}), net)
        for open_query in self.UQS.values():
            query += [
                Term(term.bound, -term.sign)
                for open_term in open_query
                for term in of_transaction(open_term, net)
            ]
        remote = self._collected_local(query)
        if not remote:
            return self._installed()
        self.UQS[update.number] = remote
        (source,) = self.positions.sources
        return [Ask(update.number, source, tuple(self._part(term) for term in remote))]

    def answered(self, query: int, answer: Sequence[H]) -> Sequence[Action[H]]:
        """Collect; install when nothing is unanswered."""
        terms = self.UQS.pop(query)
        signs = [term.sign for term in terms]
        self.COLLECT.append(signed(list(zip(signs, answer, strict=True)), self.algebra))
        return self._installed()

    def _collected_local(self, query: Sequence[Term[H]]) -> list[Term[H]]:
        """Evaluate here the terms without a base relation; the others are left."""
        local = [term for term in query if len(term.bound) == self.positions.size]
        for term in local:
            joined = self.algebra.seed(0, term.bound[0])
            for position in self.positions.outward(0):
                joined = self.algebra.join(joined, position, term.bound[position])
            self.COLLECT.append(signed([(term.sign, joined)], self.algebra))
        return [term for term in query if len(term.bound) < self.positions.size]

    def _part(self, term: Term[H]) -> Part[H]:
        start = min(term.bound)
        steps = tuple((p, term.bound.get(p)) for p in self.positions.outward(start))
        return Part(self.algebra.seed(start, term.bound[start]), steps)

    def _installed(self) -> Sequence[Action[H]]:
        if self.UQS or not self.COLLECT:
            return []
        change = self.algebra.project(self.algebra.add(self.COLLECT))
        self.COLLECT = []
        return [Install(self.algebra.materialized(change), self._received)]
