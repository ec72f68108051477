"""Conventional maintenance: every answer is taken as if nothing had happened meanwhile.

Blakeley, Larson, Tompa, SIGMOD 1986, as Zhuge et al., PDIS 1996, use it in Example 1: deletions are
applied at once, insertions when their answer arrives, and no update is compensated.
Assumes: what `events` assumes. With keys in the view rows form a set; without, changes of both
signs are asked for, and added.
Invariant: none. It takes for granted that the answer to V<U> is over the state that U made, which
is so only where nothing else happens between U and the answer; then MV is the view over the updates
received.
Promise: none; with several sources, or with one. Kept as the culprit that a checker must convict.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from steadyview.maintenance.events import Action, Algorithm, Change, Install, Update
from steadyview.maintenance.positions import Positions
from steadyview.maintenance.queries import SourceEvaluate, of_view
from steadyview.maintenance.strobe import key_deleted
from steadyview.maintenance.view_algebra import ViewAlgebra

H = TypeVar("H")


class Conventional(Algorithm[H]):
    """One view; `keyed`: it holds a key of every relation."""

    def __init__(
        self, positions: Positions, algebra: ViewAlgebra[H], mv: H, *, keyed: bool = True
    ) -> None:
        self.positions, self.algebra = positions, algebra
        self.MV = mv
        self._keyed = keyed
        self._open: dict[int, SourceEvaluate[H]] = {}
        self._queries = 0
        self._received = 0
        self._unhandled = 0
        """Changes of the message at hand that come after the present one."""

    def received(self, update: Update[H]) -> Sequence[Action[H]]:
        """Every change by itself."""
        self._received = update.number
        used = [c for c in update.changes if self.positions.of(c.relation)]
        actions: list[Action[H]] = []
        for left, change in zip(reversed(range(len(used))), used, strict=True):
            self._unhandled = left
            actions += self._handled(change)
        return actions

    def answered(self, query: int, answer: Sequence[H]) -> Sequence[Action[H]]:
        """The final answer goes into the view as it is."""
        self._open[query].answered(answer[0])
        return self._evaluated(query)

    def _handled(self, change: Change[H]) -> Sequence[Action[H]]:
        if self._keyed and not change.inserted:
            return self._installed(key_deleted(self.MV, change, self.positions, self.algebra))
        rows = change.rows if change.inserted else self.algebra.negate(change.rows)
        terms = of_view(self.positions, change.relation, rows)
        self._queries += 1
        self._open[self._queries] = SourceEvaluate(terms, self.positions, self.algebra)
        return self._evaluated(self._queries)

    def _evaluated(self, query: int) -> Sequence[Action[H]]:
        ask = self._open[query].next_source(query)
        if ask is not None:
            return [ask]
        answers = self._open.pop(query).answers
        if not answers:
            return []
        answer = self.algebra.project(self.algebra.add(answers))
        mv = self.algebra.add([self.MV, answer])
        return self._installed(self.algebra.distinct(mv) if self._keyed else mv)

    def _installed(self, mv: H) -> Sequence[Action[H]]:
        old, self.MV = self.MV, self.algebra.materialized(mv)
        change = self.algebra.add([self.MV, self.algebra.negate(old)])
        whole = not self._unhandled and not self._open
        return [Install(change, self._received, whole)]
