"""Answers of a SQLite source, all from one read transaction on one connection.

    reflects(t)  ==  t's last log row <= the largest log row this transaction sees

Exact because the monitor ends a transaction at that row (`cuts.py`). The connection belongs to this
process: tasks are `local` and a read is one task.
"""

from __future__ import annotations

import itertools
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from steadyview.changes import Column, RelationSchema, Transaction
from steadyview.errors import ColumnLost, SourceRefused
from steadyview.sources.contract import Read, Span
from steadyview.sources.sqlite import log
from steadyview.sources.sqlite.connection import DatabaseFile, quoted
from steadyview.sources.sqlite.cuts import Cuts
from steadyview.sources.sqlite.evidence import present, table_of, unknown
from steadyview.sources.sqlite.position import LogPosition
from steadyview.sources.sqlite.types import NotKept, SqliteType, convert, first_bad, sqlite_type

_BATCH_ROWS = 8192


class SqliteSnapshot:
    """See `contract.Snapshot`."""

    def __init__(self, file: DatabaseFile) -> None:
        self._file = file
        file.identity()
        self._connection = file.connect()
        self._lock = threading.RLock()
        self._numbers = itertools.count()
        try:
            with file.errors():
                self._horizon = self._freeze()
        except BaseException:
            self._connection.close()
            raise

    @property
    def horizon(self) -> LogPosition:
        """Once the monitor's position is not before this, all that is reflected was delivered."""
        return self._horizon

    def reflects(self, transaction: Transaction) -> bool:
        """Whether this state shows the transaction."""
        return transaction.id <= self._horizon.row

    def tasks(self, read: Read, parallelism: int = 1) -> Sequence[AnswerTask]:
        """The read as one task."""
        with self._lock, self._file.errors():
            lost = unknown(read.relation, present(self._connection, read.relation.name))
        if None in lost:
            raise _lost(read.relation, None, lost[None])
        asked = {*read.columns, read.key, read.span.column if read.span else None}
        for number in sorted(n for n in asked if n is not None):
            column = read.relation.columns[number]
            if column.name in lost:
                raise _lost(read.relation, column, lost[column.name])
        return [AnswerTask(self, read)]

    def spans(self, relation: RelationSchema, rows: int) -> Sequence[Span]:
        """Spans of the rowid, where a column of the key is it."""
        with self._lock, self._file.errors():
            table = table_of(self._connection, relation.name)
            if isinstance(table, str) or table.alias is None or relation.key != (table.alias,):
                return []
            bounds = [None, *self._every(rows, relation.name.path[0], table.alias), None]
        number = relation.number(table.alias)
        spans = [Span(number, low, high) for low, high in itertools.pairwise(bounds)]
        return spans if len(spans) > 1 else []

    def _every(self, rows: int, table: str, column: str) -> Iterator[int]:
        """Every `rows`-th value of the column, without the least."""
        name, low = quoted(column), -(1 << 63)
        above = f"SELECT {name} FROM {quoted(table)} WHERE {name} >= ? ORDER BY {name}"
        step = f"{above} LIMIT 1 OFFSET {int(rows)}"
        while found := self._connection.execute(step, [low]).fetchone():
            low = int(found[0])
            yield low

    def close(self) -> None:
        """End the read transaction."""
        with self._lock:
            self._connection.close()

    def rows(self, read: Read) -> Iterator[pa.RecordBatch]:
        """The rows of a read. Reads may be interleaved, also by threads."""
        columns = tuple(sorted(read.columns))
        with self._file.errors():
            with self._lock:
                cursor = self._connection.execute(self._statement(read, columns))
            while rows := self._fetch(cursor):
                yield _batch(read.relation, columns, rows)

    def _fetch(self, cursor: sqlite3.Cursor) -> list[tuple[Any, ...]]:
        with self._lock:
            return cursor.fetchmany(_BATCH_ROWS)

    def _freeze(self) -> LogPosition:
        cuts = Cuts(self._file.path)
        with cuts.locked() as notes:
            self._connection.execute("BEGIN")
            if not log.is_current(self._connection):
                raise SourceRefused(
                    f'source "{self._file.source}" is not set up',
                    hint="run: steadyview run",
                    source=self._file.source,
                )
            position = LogPosition(log.identity(self._connection), log.last_row(self._connection))
            (nonce,) = log.nonce(self._connection, position.row) or (None,)
            cuts.note(notes, position.log, position.row, nonce)
        return position

    def _statement(self, read: Read, columns: Sequence[int]) -> str:
        relation = read.relation
        names = ", ".join(quoted(relation.columns[c].name) for c in columns)
        statement = f"SELECT {names} FROM {quoted(relation.name.path[0])}"
        if read.span is not None:
            return statement + _within(relation, read.span)
        if read.key is None:
            return statement
        keys = self._set_keys(relation.columns[read.key], read.values)
        key = quoted(relation.columns[read.key].name)
        return f"{statement} WHERE {key} IN (SELECT v FROM {keys})"

    def _set_keys(self, column: Column, values: pa.Array | None) -> str:
        """The name of a temporary table that holds the looked-up values.

        One statement over it finds each row once, whatever the column's collation.
        """
        if values is None or not column.keyable:
            raise ValueError(f'column "{column.name}" is not keyable, or no values were given')
        if column.type == "DATE":
            values = values.cast(pa.string())
        name = f"temp._steadyview_keys_{next(self._numbers)}"
        self._connection.execute(f"CREATE TEMP TABLE {name.removeprefix('temp.')} (v)")
        keys = ((v,) for v in values.to_pylist())
        self._connection.executemany(f"INSERT INTO {name} VALUES (?)", keys)
        return name


@dataclass(frozen=True)
class AnswerTask:
    """A whole read, to be carried out in the snapshot's own process."""

    snapshot: SqliteSnapshot = field(repr=False)
    read: Read
    local: bool = True

    def batches(self) -> Iterator[pa.RecordBatch]:
        """See `contract.ReadTask`."""
        return self.snapshot.rows(self.read)


def _within(relation: RelationSchema, span: Span) -> str:
    name = quoted(relation.columns[span.column].name)
    terms = [
        f"{name} {sign} {int(bound)}"
        for sign, bound in ((">=", span.low), ("<", span.high))
        if bound is not None
    ]
    return f" WHERE {' AND '.join(terms)}" if terms else ""


def _batch(
    relation: RelationSchema, columns: Sequence[int], rows: Sequence[Sequence[object]]
) -> pa.RecordBatch:
    arrays = []
    for number, values in zip(columns, zip(*rows, strict=True), strict=True):
        kept = sqlite_type(relation.columns[number].source_type)
        if not isinstance(kept, SqliteType):
            raise _lost(relation, relation.columns[number], kept)
        try:
            arrays.append(convert(values, kept))
        except NotKept:
            bad = first_bad(values, kept)
            raise _bad_value(relation, columns, number, rows[bad]) from None
    return pa.RecordBatch.from_arrays(arrays, names=[f"c{c}" for c in columns])


def _bad_value(
    relation: RelationSchema, columns: Sequence[int], number: int, row: Sequence[object]
) -> ColumnLost:
    column = relation.columns[number]
    value = dict(zip(columns, row, strict=True))
    keys = [relation.number(k) for k in relation.primary]
    where = ""
    if keys and all(k in value for k in keys):
        values = ", ".join(str(value[k]) for k in keys)
        where = f" in the row with ({', '.join(relation.primary)}) = ({values})"
    return _lost(
        relation,
        column,
        f'column "{column.name}" of "{relation.name}" holds {value[number]!r}{where}, '
        f"which {column.type} cannot hold exactly",
    )


def _lost(relation: RelationSchema, column: Column | None, message: str) -> ColumnLost:
    name = None if column is None else column.name
    return ColumnLost(message, relation=str(relation.name), column=name)
