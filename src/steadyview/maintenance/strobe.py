"""Strobe: strong consistency for single updates, by an action list that waits for quiescence.

Zhuge, Garcia-Molina, Wiener, PDIS 1996, section 5.2, appendix A.
Assumes: what `events` assumes; the view holds a key of every relation, so its rows form a set. A
key is one after every single change, not only at commit: a deferrable key that two rows swap would
make key_delete of the one row take the other (`RelationSchema.key` is no such key).
Invariant, when UQS is empty: MV with AL applied is the view over the updates received so far.
    A deletion that arrives while Q is open is in pending(Q) and is applied to its answer; rows that
    two queries both deliver are one row of the set.
Not promised: that MV ever changes while updates keep coming; a transaction of several changes is
seen in its middle (the changes of one message are handled one by one).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeAlias, TypeVar

from steadyview.maintenance.events import Action, Algorithm, Change, Install, Update
from steadyview.maintenance.positions import Positions
from steadyview.maintenance.queries import SourceEvaluate, Term, of_view
from steadyview.maintenance.view_algebra import ViewAlgebra

H = TypeVar("H")


@dataclass
class Query(Generic[H]):
    """An unanswered query, and the deletions received since it was generated."""

    evaluation: SourceEvaluate[H]
    pending: list[Change[H]] = field(default_factory=list)


@dataclass(frozen=True)
class KeyDelete(Generic[H]):
    """key_delete(MV, U)."""

    deletion: Change[H]


@dataclass(frozen=True)
class Insert(Generic[H]):
    """insert(MV, A), without duplicates."""

    answer: H


ActionOnView: TypeAlias = KeyDelete[H] | Insert[H]


class Strobe(Algorithm[H]):
    """One view under Strobe; `mv` are its rows when the first update comes."""

    def __init__(self, positions: Positions, algebra: ViewAlgebra[H], mv: H) -> None:
        self.positions, self.algebra = positions, algebra
        self.MV = mv
        self.AL: list[ActionOnView[H]] = []
        self.UQS: dict[int, Query[H]] = {}
        self._queries = 0
        self._received = 0
        self._whole = True
        """Whether the last message was handled to its end."""

    def received(self, update: Update[H]) -> Sequence[Action[H]]:
        """Every change of the message is an update of its own."""
        self._received = update.number
        actions: list[Action[H]] = []
        used = [c for c in update.changes if self.positions.of(c.relation)]
        for left, change in zip(reversed(range(len(used))), used, strict=True):
            self._whole = not left
            actions += self.inserted([change]) if change.inserted else self.deleted(change)
            actions += self.applied()
        return actions

    def answered(self, query: int, answer: Sequence[H]) -> Sequence[Action[H]]:
        """WQ<A>; after the last subquery, the answer goes to AL."""
        self.UQS[query].evaluation.answered(answer[0])
        return [*self.evaluated(query), *self.applied()]

    def deleted(self, change: Change[H]) -> Sequence[Action[H]]:
        """A deletion is known to every open query, and to the view."""
        for query in self.UQS.values():
            query.pending.append(change)
        self.AL.append(KeyDelete(change))
        return []

    def inserted(self, changes: Sequence[Change[H]]) -> Sequence[Action[H]]:
        """One query for the insertions: the union of V<U>."""
        terms: list[Term[H]] = []
        for change in changes:
            terms += of_view(self.positions, change.relation, change.rows)
        if not terms:
            return []
        self._queries += 1
        self.UQS[self._queries] = Query(SourceEvaluate(terms, self.positions, self.algebra))
        return self.evaluated(self._queries)

    def evaluated(self, number: int) -> Sequence[Action[H]]:
        """The query's next subquery; none left, its compensated answer is an action on the view."""
        query = self.UQS[number]
        ask = query.evaluation.next_source(number)
        if ask is not None:
            return [ask]
        del self.UQS[number]
        if query.evaluation.answers:
            answer = self.algebra.project(self.algebra.add(query.evaluation.answers))
            for deletion in query.pending:
                answer = key_deleted(answer, deletion, self.positions, self.algebra)
            self.AL.append(Insert(answer))
        return []

    def applied(self) -> Sequence[Action[H]]:
        """When UQS is empty, AL becomes one transaction on the view."""
        if self.UQS or not self.AL:
            return []
        old, AL, self.AL = self.MV, self.AL, []  # noqa: N806 - the paper's name
        for action in AL:
            if isinstance(action, KeyDelete):
                self.MV = key_deleted(self.MV, action.deletion, self.positions, self.algebra)
            else:
                self.MV = self.algebra.distinct(self.algebra.add([self.MV, action.answer]))
        self.MV = self.algebra.materialized(self.MV)
        change = self.algebra.add([self.MV, self.algebra.negate(old)])
        return [Install(change, self._received, self._whole)]


def key_deleted(view: H, deletion: Change[H], positions: Positions, algebra: ViewAlgebra[H]) -> H:
    """key_delete(R, U) at every position of U's relation."""
    for position in positions.of(deletion.relation):
        view = algebra.key_delete(view, position, deletion.rows)
    return view
