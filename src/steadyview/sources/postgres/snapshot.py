"""Answers of a PostgreSQL source, all from one exported REPEATABLE READ snapshot.

    reflects(t)  ==  xid of t is visible in pg_current_snapshot() of the lead transaction

A set, not a position: a commit is streamed before it becomes visible. The horizon is the place of a
flushed marker, sent after the snapshot was taken: every visible commit stands before it.

The lead transaction locks the watched tables (ACCESS SHARE) before it takes its snapshot. So no
TRUNCATE, rewrite or DROP can come between snapshot and reads, none of which old snapshots survive.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import psycopg
from psycopg import pq, sql

from steadyview.changes import Column, RelationSchema, Transaction
from steadyview.errors import ColumnLost
from steadyview.sources.contract import Read, Span
from steadyview.sources.postgres.answer import AnswerPart, ReadFailed, copied
from steadyview.sources.postgres.connection import Address, Pool
from steadyview.sources.postgres.evidence import Present
from steadyview.sources.postgres.keys import key_condition
from steadyview.sources.postgres.position import Lsn
from steadyview.sources.postgres.spans import span_condition, spans_of
from steadyview.sources.postgres.types import pg_type

_XID_BITS = 32
_MIN_PAGES_PER_TASK = 64


@dataclass(frozen=True)
class VisibleTransactions:
    """What `pg_current_snapshot()` shows: transactions before xmax that are not in progress."""

    xmin: int
    xmax: int
    in_progress: frozenset[int]

    @staticmethod
    def parse(text: str) -> VisibleTransactions:
        """Read 'xmin:xmax:xip,xip'.

        >>> found = VisibleTransactions.parse("10:14:10,12")
        >>> found.shows(11), found.shows(12)
        (True, False)
        """
        xmin, xmax, rest = text.split(":")
        return VisibleTransactions(
            int(xmin), int(xmax), frozenset(int(x) for x in rest.split(",") if x)
        )

    def shows(self, xid: int) -> bool:
        """Whether the transaction with this 32-bit xid is visible; the epoch is the nearest one."""
        full = (self.xmax & ~0xFFFFFFFF) | xid
        if full - self.xmax >= 1 << (_XID_BITS - 1):
            full -= 1 << _XID_BITS
        elif self.xmax - full > 1 << (_XID_BITS - 1):
            full += 1 << _XID_BITS
        return full < self.xmin or (full < self.xmax and full not in self.in_progress)


@dataclass(frozen=True)
class State:
    """What the lead transaction found: the relations by path, as they are in its snapshot."""

    visible: VisibleTransactions
    horizon: Lsn
    export: str
    found: Mapping[tuple[str, ...], Present]


_LIVE: dict[str, PostgresSnapshot] = {}
"""Snapshots held by this process, by exported name: their tasks share their sessions."""


class PostgresSnapshot:
    """See `contract.Snapshot`."""

    def __init__(self, pool: Pool, lead: psycopg.Connection, state: State) -> None:
        self._pool = pool
        self._state = state
        self._open = True
        # The lead reads as well, and first: it holds its locks already, while another session would
        # queue behind a DROP or TRUNCATE that waits for us.
        self._readers = [lead]
        self._lock = threading.Lock()
        self.process = os.getpid()
        _LIVE[state.export] = self

    @property
    def horizon(self) -> Lsn:
        """Once the monitor's position is not before this, all that is reflected was delivered."""
        return self._state.horizon

    def reflects(self, transaction: Transaction) -> bool:
        """Whether this state shows the transaction."""
        return transaction.id == 0 or self._state.visible.shows(transaction.id)

    def tasks(self, read: Read, parallelism: int = 1) -> Sequence[AnswerTask]:
        """The read as at most `parallelism` tasks, cut by ranges of the table's pages."""
        columns = sorted(read.columns)
        asked = {read.key, read.span.column if read.span else None} - {None}
        self._check(read.relation, [*columns, *(c for c in asked if c is not None)])
        relation = read.relation
        base = sql.SQL("SELECT {} FROM ONLY {}").format(
            sql.SQL(", ").join(sql.Identifier(relation.columns[c].name) for c in columns),
            sql.Identifier(*relation.name.path),
        )
        part = AnswerPart(relation, tuple(columns))
        if read.key is not None:
            conditions: list[sql.Composable] = [
                key_condition(relation.columns[read.key], read.values)
            ]
        elif read.span is not None:
            conditions = [span_condition(relation, read.span)]
        else:
            conditions = self._ranges(relation, parallelism)
        statements = [sql.SQL("{} WHERE {}").format(base, c) for c in conditions]
        return [
            AnswerTask(self._pool.address, self._state.export, part, s.as_string(None))
            for s in statements
        ]

    def spans(self, relation: RelationSchema, rows: int) -> Sequence[Span]:
        """By a sample of the key, so that spans are of like size whatever the values are."""
        connection = self.take_reader()
        try:
            with self._pool.address.errors():
                return spans_of(connection, relation, rows)
        finally:
            self.give_back_reader(connection)

    def close(self) -> None:
        """Give the sessions back."""
        _LIVE.pop(self._state.export, None)
        with self._lock:
            readers, self._readers = self._readers, []
            self._open = False
        for connection in readers:
            self._pool.give_back(connection)

    def take_reader(self) -> psycopg.Connection:
        """A session inside this snapshot; `give_back_reader` keeps it for the next task."""
        with self._lock:
            if self._readers:
                return self._readers.pop()
        connection = self._pool.take()
        with self._pool.address.errors():
            import_snapshot(connection, self._state.export)
        return connection

    def give_back_reader(self, connection: psycopg.Connection) -> None:
        """Keep a session for the next task; one that failed is closed."""
        usable = connection.info.transaction_status == pq.TransactionStatus.INTRANS
        with self._lock:
            if usable and self._open:
                self._readers.append(connection)
                return
        connection.close() if not usable else self._pool.give_back(connection)

    def _check(self, relation: RelationSchema, columns: Sequence[int]) -> None:
        """Refuse what cannot be read as it was described, or whose changes are not in the stream.

        What has changed otherwise since it was described is found by `Source.examine`.
        """
        found = self._state.found.get(relation.name.path)
        if found is None:
            raise _lost(relation, None, f'"{relation.name}" was dropped or renamed')
        if found.defect:
            message = f'changes of "{relation.name}" are being lost: {found.defect.reason}'
            raise _lost(relation, None, message, f"run as its owner: {found.defect.mending};")
        for column in (relation.columns[c] for c in columns):
            was = _changed(column, found)
            if was:
                raise _lost(relation, column, f'column "{column.name}" of "{relation.name}" {was}')

    def _ranges(self, relation: RelationSchema, parallelism: int) -> list[sql.Composable]:
        """Conditions on ctid that cut the table into ranges of pages; the last has no end."""
        if parallelism <= 1:
            return [sql.SQL("true")]
        pages = self._pages(relation)
        count = max(1, min(parallelism, pages // _MIN_PAGES_PER_TASK))
        edges = [pages * i // count for i in range(count)]
        conditions = [
            sql.SQL("ctid >= {} AND ctid < {}").format(_tid(a), _tid(b))
            for a, b in zip(edges, edges[1:], strict=False)
        ]
        return [*conditions, sql.SQL("ctid >= {}").format(_tid(edges[-1]))]

    def _pages(self, relation: RelationSchema) -> int:
        name = sql.Identifier(*relation.name.path).as_string(None)
        question = "SELECT pg_relation_size(%s::regclass) / current_setting('block_size')::int"
        connection = self.take_reader()
        try:
            with self._pool.address.errors():
                row = connection.execute(question, [name]).fetchone()
        finally:
            self.give_back_reader(connection)
        return int(row[0]) if row else 0


def _changed(column: Column, found: Present) -> str | None:
    """Why a column cannot be read as it was described."""
    now = found.evidence.columns.get(column.name)
    if now is None:
        return "was dropped"
    if pg_type(now.source_type) != pg_type(column.source_type):
        return f'is now "{now.source_type}"'
    return None


def _tid(page: int) -> sql.Composed:
    return sql.SQL("{}::tid").format(sql.Literal(f"({page},0)"))


def _lost(
    relation: RelationSchema, column: Column | None, message: str, mending: str = ""
) -> ColumnLost:
    anew = f"run: steadyview source remove {relation.name.source}, then run again"
    return ColumnLost(
        message,
        relation=str(relation.name),
        column=column.name if column else None,
        hint=mending or anew,
    )


def import_snapshot(connection: psycopg.Connection, export: str) -> None:
    """Put a session into the exported snapshot."""
    connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    connection.execute(sql.SQL("SET TRANSACTION SNAPSHOT {}").format(sql.Literal(export)))


@dataclass(frozen=True)
class AnswerTask:
    """Part of a read; picklable. In its snapshot's process it borrows the snapshot's sessions."""

    address: Address = field(repr=False)
    export: str
    part: AnswerPart
    statement: str = field(repr=False)
    local: bool = False

    def batches(self) -> Iterator[object]:
        """See `contract.ReadTask`."""
        live = _LIVE.get(self.export)
        if live is not None and live.process == os.getpid():
            connection = live.take_reader()
            try:
                yield from self._read(connection)
            finally:
                live.give_back_reader(connection)
            return
        connection = self.address.connect()
        try:
            with self.address.errors():
                import_snapshot(connection, self.export)
            yield from self._read(connection)
        finally:
            connection.close()

    def _read(self, connection: psycopg.Connection) -> Iterator[object]:
        try:
            yield from copied(connection, self.address, self.statement, self.part)
        except ReadFailed as failure:
            raise failure.explained(connection) from None
