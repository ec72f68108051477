"""What is recorded of deferred views: transactions that committed, and apply steps.

    A(i)      the rows applied to the view of step i, by it and by all its steps before: a multiset
    X(A)      the transactions of these rows
    aff(v)    the transactions with rows in the delta of v

Beyer et al., sections 2 and 3. Assumes: begin <= commit time <= end; transactions that share an
item are held apart by locks, so that the later one commits after the earlier one's end; steps are
in the order in which they took place, a view's targets ascending; row ids are unique in a view's
delta. Transactions that were rolled back are not in it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from steadyview.checking.deferred.precedence import ONE_DATABASE


@dataclass(frozen=True)
class DeferredTransaction:
    """A transaction, and the ids of the rows that it put into each view's delta.

    `commit_time`: when its commit became official, after its last lock and before its end. `seq`:
    its place among the commits of its source. `items`: what it locked.
    """

    id: str
    begin: int
    commit_time: int
    end: int
    rows: Mapping[str, Sequence[int]]
    items: frozenset[str] = frozenset()
    source: str = ""
    seq: int = 0


@dataclass(frozen=True)
class ApplyStep:
    """A view was rolled to a target time by these rows of its delta."""

    view: str
    target: int
    rows: Sequence[int]


@dataclass(frozen=True)
class DeferredHistory:
    """`order` says which transactions must not be shown the other way round (`precedence`)."""

    transactions: Sequence[DeferredTransaction]
    steps: Sequence[ApplyStep]
    order: str = ONE_DATABASE

    @cached_property
    def owners(self) -> Mapping[tuple[str, int], DeferredTransaction]:
        """By view and row id, whose row it is."""
        found = [(v, row, x) for x in self.transactions for v in x.rows for row in x.rows[v]]
        return {(view, row): x for view, row, x in found}

    @cached_property
    def views(self) -> tuple[str, ...]:
        """Those that were ever refreshed."""
        return tuple(dict.fromkeys(step.view for step in self.steps))

    @cached_property
    def affecting(self) -> Mapping[str, Sequence[DeferredTransaction]]:
        """aff(v) of every view that was refreshed."""
        return {v: [x for x in self.transactions if x.rows.get(v)] for v in self.views}

    @cached_property
    def applied(self) -> Sequence[Counter[int]]:
        """A(i) of every step."""
        so_far: dict[str, Counter[int]] = {view: Counter() for view in self.views}
        found = []
        for step in self.steps:
            so_far[step.view] = so_far[step.view] + Counter(step.rows)
            found.append(so_far[step.view])
        return found

    @cached_property
    def shown(self) -> Sequence[frozenset[str]]:
        """X(A(i)) of every step."""
        pairs = zip(self.steps, self.applied, strict=True)
        return [
            frozenset(self.owners[s.view, row].id for row in rows if (s.view, row) in self.owners)
            for s, rows in pairs
        ]
