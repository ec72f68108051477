"""C-Strobe: complete consistency for single updates, by queries that compensate queries.

Zhuge, Garcia-Molina, Wiener, PDIS 1996, section 6, appendix B.
Assumes: as Strobe. Updates are handled one by one in the order of arrival.
Invariant, when the queries for insertion U_i are answered: Delta, less the rows of insertions that
came after U_i, is V<U_i> over the state that U_1..U_i made. A deletion U_p that may have hidden
rows from the answer of Q is made up for by Q<U_p>, itself compensated for deletions after U_p.
Where we read the paper: "U_j < U_k" means U_i < U_j < U_k; "the same tuple" means equal in all
columns, not only in the key; insertions are subtracted once, after the last answer, up to the last
update received then. Compensating queries are grouped by relation.
Bound: at most sum over k = 1..n-2 of (n-1)!/(n-1-k)! compensating queries for an insertion; the
printed (n-1)! is exceeded.
Not promised: anything but convergence where a transaction has several changes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TypeVar

from steadyview.changes import RelationName
from steadyview.maintenance.events import Action, Algorithm, Change, Install, Update
from steadyview.maintenance.positions import Positions
from steadyview.maintenance.queries import SourceEvaluate, Term, of_transaction, of_view
from steadyview.maintenance.strobe import key_deleted
from steadyview.maintenance.view_algebra import ViewAlgebra

H = TypeVar("H")


class Delta(Algorithm[H]):
    """What C-Strobe and C-TStrobe share: the compensated answer to some insertions.

    `L` is the list of the single changes received, from the first one at hand on. Queries are
    issued "from" an index of L: the deletions at and after it may have hidden rows from the answer.
    Invariant: every open query, and every one to come, is issued from behind the changes at hand,
    and so are the insertions that Delta is rid of. Whatever is handled is therefore cut off, and L
    is as long as what waits.
    """

    def __init__(self, positions: Positions, algebra: ViewAlgebra[H], mv: H) -> None:
        self.positions, self.algebra = positions, algebra
        self.MV = mv
        self.L: list[Change[H]] = []
        self.UQS: dict[int, tuple[SourceEvaluate[H], int]] = {}
        self.delta: H | None = None
        self.compensating = 0
        """How many compensating queries were issued for the insertions at hand."""
        self._queries = 0

    def append(self, update: Update[H]) -> int:
        """Put the message's changes to the end of L; how many there are."""
        used = [c for c in update.changes if self.positions.of(c.relation)]
        self.L += used
        return len(used)

    def issue(self, terms: Sequence[Term[H]], since: int) -> Sequence[Action[H]]:
        """Evaluate a query; deletions L[since:] are compensated for when its answer is there."""
        if not terms:
            return []
        self._queries += 1
        self.UQS[self._queries] = SourceEvaluate(terms, self.positions, self.algebra), since
        return self.evaluated(self._queries)

    def evaluated(self, query: int) -> Sequence[Action[H]]:
        """The next subquery; or the answer goes to Delta and is compensated for deletions."""
        evaluation, since = self.UQS[query]
        ask = evaluation.next_source(query)
        if ask is not None:
            return [ask]
        del self.UQS[query]
        if evaluation.answers:
            known = [] if self.delta is None else [self.delta]
            self.delta = self.algebra.distinct(self.algebra.add([*known, *evaluation.answers]))
        return self.compensated(evaluation.terms, since)

    def compensated(self, terms: Sequence[Term[H]], since: int) -> Sequence[Action[H]]:
        """One query per relation with deletions in L[since:], for what they may have hidden."""
        actions: list[Action[H]] = []
        for relation, (first, rows) in self._deletions(since).items():
            # a self-join may have lost a row at several positions at once
            at = dict.fromkeys(self.positions.of(relation), rows)
            hidden = [lost for term in terms for lost in of_transaction(term, at)]
            self.compensating += any(len(t.bound) < self.positions.size for t in hidden)
            actions += self.issue(hidden, first + 1)
        return actions

    def _deletions(self, since: int) -> dict[RelationName, tuple[int, H]]:
        """Per relation, where its first deletion stands in L[since:], and all deleted rows."""
        found: dict[RelationName, tuple[int, list[H]]] = {}
        for index in range(since, len(self.L)):
            change = self.L[index]
            if not change.inserted:
                found.setdefault(change.relation, (index, []))[1].append(change.rows)
        return {r: (first, self._distinct(rows)) for r, (first, rows) in found.items()}

    def _distinct(self, rows: Sequence[H]) -> H:
        return rows[0] if len(rows) == 1 else self.algebra.distinct(self.algebra.add(rows))

    def subtracted(self, delta: H, since: int) -> H:
        """Delta without the rows that L[since:] inserted, unless it had deleted them before."""
        deleted: dict[RelationName, list[H]] = {}
        for change in self.L[since:]:
            rows = change.rows
            if not change.inserted:
                deleted.setdefault(change.relation, []).append(rows)
                continue
            for old in deleted.get(change.relation, ()):
                rows = self.algebra.without(rows, old)
            for position in self.positions.of(change.relation):
                delta = self.algebra.row_delete(delta, position, rows)
        return delta

    def installed(self, mv: H, upto: int, *, whole: bool = True) -> Sequence[Action[H]]:
        """MV = mv, as one transaction."""
        old, self.MV = self.MV, self.algebra.materialized(mv)
        return [Install(self.algebra.add([self.MV, self.algebra.negate(old)]), upto, whole)]

    def with_delta(self, mv: H, since: int) -> H:
        """MV + Delta, once all queries are answered; Delta is empty again."""
        delta, self.delta = self.delta, None
        if delta is None:
            return mv
        answer = self.algebra.project(self.subtracted(delta, since))
        return self.algebra.distinct(self.algebra.add([mv, answer]))


class CStrobe(Delta[H]):
    """One view under C-Strobe."""

    def __init__(self, positions: Positions, algebra: ViewAlgebra[H], mv: H) -> None:
        super().__init__(positions, algebra, mv)
        self._ends: deque[tuple[int, bool]] = deque()
        """Per change of L, the last update that is whole once it is processed; is it its own?"""

    def received(self, update: Update[H]) -> Sequence[Action[H]]:
        """Into the holding queue; on with it if it was empty."""
        idle = not self.L
        for left in reversed(range(self.append(update))):
            self._ends.append((update.number - bool(left), not left))
        return self._processed() if idle else []

    def answered(self, query: int, answer: Sequence[H]) -> Sequence[Action[H]]:
        """Compensate, or finish the insertion and go on."""
        self.UQS[query][0].answered(answer[0])
        actions = self.evaluated(query)
        return actions if self.UQS else [*actions, *self._finished(), *self._processed()]

    def _processed(self) -> Sequence[Action[H]]:
        """Handle change after change until one has to wait for answers."""
        actions: list[Action[H]] = []
        while not self.UQS and self.L:
            change = self.L[0]
            if not change.inserted:
                mv = key_deleted(self.MV, change, self.positions, self.algebra)
                actions += self._handled(mv)
                continue
            self.compensating = 0
            terms = of_view(self.positions, change.relation, change.rows)
            actions += self.issue(terms, 1)
            if not self.UQS:
                actions += self._finished()
        return actions

    def _finished(self) -> Sequence[Action[H]]:
        """Every query for the insertion is answered."""
        return self._handled(self.with_delta(self.MV, 1))

    def _handled(self, mv: H) -> Sequence[Action[H]]:
        """MV = mv after the first change of L, which nobody needs any more."""
        del self.L[0]
        upto, whole = self._ends.popleft()
        return self.installed(mv, upto, whole=whole)
