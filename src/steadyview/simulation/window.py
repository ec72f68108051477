"""One batch (after, upto] of a view: rounds of lookups, then its change.

What is asked is decided by the product's `Asking`; here stand, in place of the product's inputs,
the log and the answers of each relation. As there, questions of one round about one column of one
relation are one lookup, keys that were asked for before are not asked for again, and a relation
that was read whole is never asked again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from steadyview.algebra import Bag, Row, Value
from steadyview.plans.asking import Ask, Asking
from steadyview.plans.versions import Reply
from steadyview.simulation.view_plan import Moved, State, Versions, ViewPlan

Keys: TypeAlias = frozenset[Value]


@dataclass(frozen=True)
class LogRow:
    """One logged row image; `reflected`: the frozen state of its source shows its transaction."""

    row: Row
    count: int
    cn: int
    reflected: bool


class RowsWanted(NamedTuple):
    """Rows of a relation: those with one of the keys in the column; without a column, all."""

    relation: int
    column: int | None
    keys: Keys

    def has(self, row: Row) -> bool:
        """Whether the row is one of them."""
        return self.column is None or row[self.column] in self.keys


class KeySets:
    """Keys as Python sets, for `Asking`; rows are lists."""

    def values(self, rows: Sequence[Sequence[Row]], column: int) -> Keys:
        """The values of a column, without NULL."""
        return frozenset(r[column] for some in rows for r in some if r[column] is not None)

    def union(self, sets: Sequence[Keys]) -> Keys:
        """All values."""
        return frozenset().union(*sets)

    def unsent(self, keys: Keys, sent: Keys | None) -> Keys | None:
        """Those that were not sent."""
        return (keys - (sent or frozenset())) or None


@dataclass
class _Input:
    """A relation over the window."""

    log: Sequence[LogRow]
    answers: list[tuple[RowsWanted, Sequence[Row]]] = field(default_factory=list)

    def unknown(self, wanted: RowsWanted) -> RowsWanted | None:
        """What of it was not asked for before."""
        if any(asked.column is None for asked, _ in self.answers):
            return None
        if wanted.column is None:
            return wanted
        known = [asked.keys for asked, _ in self.answers if asked.column == wanted.column]
        keys = wanted.keys.difference(*known)
        return wanted._replace(keys=keys) if keys else None

    def seen(self, wanted: RowsWanted) -> list[Row]:
        """The rows that were answered for, and the logged ones that belong to them."""
        found = [row for _, rows in self.answers for row in rows if wanted.has(row)]
        return found + [entry.row for entry in self.log if wanted.has(entry.row)]


class Window:
    """The batch of one view; `log`: by relation, what may matter to it."""

    def __init__(
        self, plan: ViewPlan, log: Mapping[int, Sequence[LogRow]], after: int, upto: int
    ) -> None:
        self._plan, self._after, self._upto = plan, after, upto
        self._inputs = {relation: _Input(log.get(relation, ())) for relation in plan.used}
        self._asking = Asking(plan.links, KeySets(), self._logged())
        self._round: list[Ask[Keys]] = []
        self._open = 0

    def lookups(self) -> list[RowsWanted]:
        """The next round, to be answered as a whole; nothing when all is known."""
        assert not self._open, "a round is answered as a whole"
        while asks := self._asking.asks():
            self._round = asks
            if sent := self._sent():
                self._open = len(sent)
                return sent
            self._tell()
        return []

    def answered(self, wanted: RowsWanted, rows: Bag[Row]) -> bool:
        """Take one lookup's rows; whether the round is over."""
        copies = [row for row, count in rows for _ in range(count)]
        self._inputs[wanted.relation].answers.append((wanted, copies))
        self._open -= 1
        if not self._open:
            self._tell()
        return not self._open

    def moved(self, state: State) -> Moved:
        """What the batch does to the view."""
        return self._plan.moved({r: self._versions(r) for r in self._inputs}, state)

    def _logged(self) -> dict[int, Sequence[Row]]:
        """The scans whose relations change inside the window, with the rows that do."""
        found: dict[int, Sequence[Row]] = {}
        for scan, relation in enumerate(self._plan.reads):
            log = self._inputs[relation].log
            if rows := [e.row for e in log if self._after < e.cn <= self._upto]:
                found[scan] = rows
        return found

    def _wanted(self, ask: Ask[Keys]) -> RowsWanted:
        return RowsWanted(self._plan.reads[ask.scan], ask.column, ask.keys or frozenset())

    def _sent(self) -> list[RowsWanted]:
        """The round's lookups: one for each column of a relation, of keys that are not known."""
        topics: dict[tuple[int, int | None], Keys] = {}
        for wanted in map(self._wanted, self._round):
            topic = wanted.relation, wanted.column
            topics[topic] = topics.get(topic, frozenset()) | wanted.keys
        every = [RowsWanted(*topic, keys) for topic, keys in topics.items()]
        unknown = [self._inputs[wanted.relation].unknown(wanted) for wanted in every]
        return [wanted for wanted in unknown if wanted is not None]

    def _tell(self) -> None:
        for ask in self._round:
            wanted = self._wanted(ask)
            self._asking.answered(ask, self._inputs[wanted.relation].seen(wanted))

    def _versions(self, relation: int) -> Versions:
        plan, read = self._plan, self._inputs[relation]
        if not read.log and not any(rows for _, rows in read.answers):
            return []
        log = plan.logged(relation, [(e.row, e.count, e.cn) for e in read.log])
        reflects = np.array([e.reflected for e in read.log], dtype=bool)
        replies = [
            Reply(
                plan.table(relation, rows),
                reflects,
                None if wanted.column is None else f"c{wanted.column}",
                pa.array(sorted(wanted.keys), pa.int64()),
            )
            for wanted, rows in read.answers
        ]
        return plan.versions(relation, log, replies, self._after, self._upto)
