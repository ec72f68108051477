"""A source: a database that executes transactions, evaluates queries, and tells the warehouse.

Executing a transaction and sending it is one event; so is evaluating a query and sending the
answer. Everything leaves through one channel, first in, first out; queries come in by another
(Zhuge et al., PDIS 1996, section 3.3). Of a global transaction every source executes and sends its
own part, in an order that agrees with one serial schedule of all but in its own time: one source
may have executed its part long before another.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

from steadyview.algebra import Bag, Row, Value
from steadyview.maintenance.bag_view_algebra import BagViewAlgebra, Handle
from steadyview.maintenance.events import Ask, Read
from steadyview.simulation.worlds import RowChange, World

EXECUTE, EVALUATE, DELIVER, TICK, CRASH = "execute", "evaluate", "deliver", "tick", "crash"


class Choice(NamedTuple):
    """What happens next: one of the five words above, and where, if at a source."""

    what: str
    source: str = ""


@lru_cache
def _choices(source: str) -> tuple[Choice, Choice, Choice]:
    return Choice(EXECUTE, source), Choice(EVALUATE, source), Choice(DELIVER, source)


@dataclass(frozen=True, slots=True)
class Freeze:
    """Keep the state of this moment until the next freeze.

    The answer is the names of the executed transactions that this state does not show yet.
    """

    query: int
    source: str


@dataclass(frozen=True, slots=True)
class Lookup:
    """The rows of a relation in the frozen state, those whose column is among `keys`.

    Without a column all of them.
    """

    query: int
    source: str
    relation: int
    column: int | None
    keys: frozenset[Value]


Query: TypeAlias = Ask[Handle] | Read | Freeze | Lookup


class Report(NamedTuple):
    """An update on its way: a transaction, or this source's part of one of several parts.

    `late`: how many frozen states do not show it, once it is executed.
    """

    transaction: str
    changes: tuple[RowChange, ...]
    parts: int
    late: int = 0


class Asked(NamedTuple):
    """A query on its way. `label` counts queries; `executed`: what the source had done by then."""

    label: int
    query: Query
    executed: int


class Reply(NamedTuple):
    """An answer on its way; `delivered`: how many updates had arrived when it was sent."""

    label: int
    query: int
    answer: tuple[Any, ...]
    delivered: int


class Source:
    """One database."""

    def __init__(self, name: str, uses: Sequence[int], algebra: BagViewAlgebra) -> None:
        self.name = name
        self.schedule: list[Report] = []
        """Everything it executes, in order; the first so many are `executed`."""
        self.todo: deque[Report] = deque()
        self.executed = 0
        self.rows: dict[int, Bag[Row]] = {}
        self.inbox: deque[Asked] = deque()
        self.outbox: deque[Report | Reply] = deque()
        self.execute_choice, self.evaluate_choice, self.deliver_choice = _choices(name)
        self._uses = uses
        self._algebra = algebra
        self._hidden: list[tuple[int, Report]] = []
        """Executed, but to be shown only by a later frozen state; which one, from 1 on."""
        self._freezes = 0
        self._frozen: dict[int, Bag[Row]] = {}

    def execute(self) -> Report:
        """The next transaction of the schedule."""
        report = self.todo.popleft()
        self.executed += 1
        for relation, row, sign in report.changes:
            self.rows[relation] += Bag([(row, sign)])
        # whoever changes a row again has waited until the change before was to be seen
        touched = _touched(report)
        self._hidden = [h for h in self._hidden if touched.isdisjoint(_touched(h[1]))]
        if report.late:
            self._hidden.append((self._freezes + report.late + 1, report))
        self.outbox.append(report)
        return report

    def evaluate(self, delivered: int) -> tuple[Query, Reply]:
        """The next query, in the state of now."""
        label, query, _ = self.inbox.popleft()
        reply = Reply(label, query.query, tuple(self._answer(query)), delivered)
        self.outbox.append(reply)
        return query, reply

    def forget(self) -> None:
        """Nobody waits for answers any more."""
        self.inbox.clear()
        self.outbox = deque(m for m in self.outbox if isinstance(m, Report))

    def _answer(self, query: Query) -> Sequence[Any]:
        if isinstance(query, Ask):
            return [self._joined(part.known, part.steps) for part in query.parts]
        if isinstance(query, Read):
            return [self.rows[self._uses[position]] for position in query.positions]
        if isinstance(query, Freeze):
            return [self._freeze()]
        rows, column, keys = self._frozen[query.relation], query.column, query.keys
        return [rows if column is None else rows.where(lambda row: row[column] in keys)]

    def _freeze(self) -> frozenset[str]:
        """Keep what is to be seen now; the names of what is not."""
        self._freezes += 1
        self._hidden = [h for h in self._hidden if h[0] > self._freezes]
        self._frozen = dict(self.rows)
        for _, report in self._hidden:
            for relation, row, sign in report.changes:
                self._frozen[relation] -= Bag([(row, sign)])
        return frozenset(report.transaction for _, report in self._hidden)

    def _joined(self, known: Handle, steps: Sequence[tuple[int, Handle | None]]) -> Handle:
        for position, rows in steps:
            base = self.rows[self._uses[position]] if rows is None else rows
            known = self._algebra.join(known, position, base)
        return known


def _touched(report: Report) -> frozenset[tuple[int, Row]]:
    return frozenset((relation, row) for relation, row, _ in report.changes)


def sources_of(world: World) -> list[Source]:
    """The sources before anything happened, each with its parts of the serial schedule."""
    names, uses, algebra = world.blueprint.source_names, world.blueprint.uses, world.site.algebra
    found = {name: Source(name, uses, algebra) for name in dict.fromkeys(names)}
    for relation, rows in enumerate(world.rows):
        found[names[relation]].rows[relation] = rows
    for transaction in world.transactions:
        parts: dict[str, list[RowChange]] = {}
        for change in transaction.changes:
            parts.setdefault(names[change.relation], []).append(change)
        for name, changes in parts.items():
            report = Report(transaction.id, tuple(changes), len(parts), transaction.late)
            found[name].schedule.append(report)
    for source in found.values():
        source.todo.extend(source.schedule)
    return list(found.values())
