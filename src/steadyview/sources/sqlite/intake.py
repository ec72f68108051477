"""From log rows to chunks: transactions counted, rows typed, losses named.

`ends` are the log rows at which transactions end. A transaction gets a number only if it changed a
watched relation, or lost something of it.

A loss is told once per column and transaction, in every transaction that loses something: a view
made anew after one loss must hear of the next. A value that cannot be kept is NULL, those around it
are not. A column that is *gone* (dropped, renamed, not logged) is told when it goes, and is NULL
until it is back. A loss found by looking at the file happened somewhere in what is read next: every
transaction of that read tells it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

import pyarrow as pa

from steadyview.changes import (
    Chunk,
    Loss,
    RelationName,
    RelationSchema,
    Transaction,
    arrow_type,
)
from steadyview.changes.types import COUNT, SEQ, TX
from steadyview.sources.sqlite.evidence import Losses
from steadyview.sources.sqlite.position import LogPosition
from steadyview.sources.sqlite.types import SqliteType, convert_good, sqlite_type

_FIXED_FIELDS = 3
"""Fields of a fetched row before its values: seq, relation, count."""


class Intake:
    """Takes log rows in order, gives chunks."""

    def __init__(
        self, relations: Sequence[RelationSchema], position: LogPosition, next_seq: int
    ) -> None:
        self._bound: dict[int, tuple[RelationSchema, list[int | None]]] = {}
        self._gone: set[tuple[RelationName, str | None]] = set()
        self._found: list[tuple[RelationSchema, str | None, str]] = []
        self._told: set[tuple[RelationName, str | None, int]] = set()
        self._lost: list[Loss] = []
        self._tables: dict[RelationName, list[pa.Table]] = {}
        self._ended: list[tuple[int, int]] = []
        self._ends: Sequence[int] = ()
        self._current = 0
        self._rows = 0
        self._touched = False
        self._seq = next_seq
        self._reported = position
        self.position = position
        self.bytes = 0

    @property
    def width(self) -> int:
        """How many log columns are needed."""
        places = [p for _, of in self._bound.values() for p in of if p is not None]
        return max(places, default=-1) + 1

    @property
    def news(self) -> bool:
        """Whether a chunk would say anything."""
        return bool(self._tables or self._ended or self._lost or self.position != self._reported)

    def bind(self, relation: RelationSchema, number: int, places: Mapping[str, int]) -> None:
        """The relation's rows carry this number in the log, and their columns these."""
        self._bound[number] = (relation, [places.get(c.name) for c in relation.columns])

    def lose(self, relation: RelationSchema, gone: Losses, moved: Losses) -> None:
        """What is not known from the next transaction on, and what was lost just once.

        What was gone and is not any more is known again.
        """
        before = {column for name, column in self._gone if name == relation.name}
        self._gone -= {(relation.name, column) for column in before - gone.keys()}
        self._gone |= {(relation.name, column) for column in gone}
        news = {**moved, **{column: gone[column] for column in gone if column not in before}}
        if None in news:
            news = {None: news[None]}
        self._found += [(relation, column, reason) for column, reason in news.items()]

    def begin(self, ends: Sequence[int]) -> None:
        """A new read: the next transactions end at these log rows."""
        self._ends, self._current, self._rows = ends, 0, 0
        self._begin_transaction()

    def take(self, rows: Sequence[tuple[Any, ...]]) -> None:
        """Log rows, in order, of any relations."""
        at = 0
        while at < len(rows):
            self._end_before(rows[at][0])
            end = self._ends[self._current]
            until = bisect_left(rows, end + 1, lo=at, key=itemgetter(0))
            self._take_within(rows[at:until])
            at = until

    def end(self) -> None:
        """All rows were taken."""
        self._end_before(self._ends[-1] + 1)
        self._found = []

    def chunk(self, now: int) -> Chunk:
        """What was taken since the chunk before; `now` stands in for the commit time."""
        log = self.position.log
        first = self._seq - len(self._ended)
        transactions = tuple(
            Transaction(first + i, end, now, rows) for i, (end, rows) in enumerate(self._ended)
        )
        chunk = Chunk(
            {name: pa.concat_tables(parts) for name, parts in self._tables.items()},
            transactions,
            LogPosition(log, self.position.row),
            self._current < len(self._ends),
            tuple(self._lost),
        )
        self._tables, self._ended, self._lost = {}, [], []
        self._reported, self.bytes = self.position, 0
        self._told = {told for told in self._told if told[2] == self._seq}
        return chunk

    def _end_before(self, row: int) -> None:
        """End every transaction that ends before log row `row`."""
        while self._current < len(self._ends) and self._ends[self._current] < row:
            end = self._ends[self._current]
            if self._touched:
                self._ended.append((end, self._rows))
                self._seq += 1
            self._current += 1
            self.position = LogPosition(self.position.log, end)
            if self._current < len(self._ends):
                self._begin_transaction()

    def _begin_transaction(self) -> None:
        """What was found lost is lost in each transaction of the read."""
        self._rows, self._touched = 0, bool(self._found)
        for relation, column, reason in self._found:
            self._lose(relation, column, reason)

    def _take_within(self, rows: Sequence[tuple[Any, ...]]) -> None:
        """Rows of the current transaction."""
        by_relation = itemgetter(1)
        images = [r for r in rows if r[2]]
        for number, of in groupby(sorted(images, key=by_relation), by_relation):
            bound = self._bound.get(number)
            if bound:
                table = self._table(*bound, list(zip(*of, strict=True)))
                self._tables.setdefault(bound[0].name, []).append(table)
                self._touched = True
                self._rows += table.num_rows
                self.bytes += table.nbytes

    def _table(
        self, relation: RelationSchema, places: list[int | None], fields: list[tuple[Any, ...]]
    ) -> pa.Table:
        size = len(fields[0])
        arrays = [self._column(relation, i, p, fields) for i, p in enumerate(places)]
        end = self._ends[self._current]
        tags = [
            pa.array([self._seq] * size, pa.int64()),
            pa.array(fields[2], pa.int32()),
            pa.array([end] * size, pa.int64()),
        ]
        names = [f"c{i}" for i in range(len(arrays))]
        return pa.table([*arrays, *tags], names=[*names, SEQ, COUNT, TX])

    def _column(
        self,
        relation: RelationSchema,
        number: int,
        place: int | None,
        fields: list[tuple[Any, ...]],
    ) -> pa.Array:
        column = relation.columns[number]
        kept = sqlite_type(column.source_type)
        gone = (relation.name, column.name) in self._gone
        if place is None or gone or not isinstance(kept, SqliteType):
            return pa.nulls(len(fields[0]), arrow_type(column.type))
        values = fields[_FIXED_FIELDS + place]
        array, bad = convert_good(values, kept)
        if bad:
            # All rows are of one transaction: its first bad value stands for the others.
            what = f"holds {values[bad[0]]!r}{self._row_name(relation, fields, bad[0])}"
            reason = f'column "{column.name}" of "{relation.name}" {what}'
            self._lose(relation, column.name, reason, mendable=True)
        return array

    def _row_name(self, relation: RelationSchema, fields: list[tuple[Any, ...]], row: int) -> str:
        """The row's primary key, for people."""
        places = next(of for r, of in self._bound.values() if r is relation)
        keys = [places[relation.number(k)] for k in relation.primary]
        if not keys or None in keys:
            return ""
        values = ", ".join(str(fields[_FIXED_FIELDS + k][row]) for k in keys if k is not None)
        return f" in the row with ({', '.join(relation.primary)}) = ({values})"

    def _lose(
        self, relation: RelationSchema, column: str | None, reason: str, *, mendable: bool = False
    ) -> None:
        if (relation.name, column, self._seq) not in self._told:
            self._told.add((relation.name, column, self._seq))
            self._lost.append(Loss(relation.name, column, self._seq, reason, mendable))
