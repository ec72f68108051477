"""Rows of an answer: COPY to CSV, parsed by Arrow in blocks of whole rows.

COPY uses each type's output function, as the change stream does; `types.convert` reads both. A CSV
field that is empty is NULL, one that is "" is the empty text (the options below keep that apart).
"""

from __future__ import annotations

import select
from collections.abc import Iterator
from dataclasses import dataclass

import psycopg
import pyarrow as pa
from psycopg import pq, sql
from pyarrow import csv

from steadyview.changes import RelationSchema, arrow_type
from steadyview.errors import ColumnLost
from steadyview.sources.postgres.connection import Address
from steadyview.sources.postgres.types import NotKept, PgType, convert, first_bad, pg_type

BLOCK_BYTES = 8 << 20
_IN_CSV = frozenset({"number"})
"""Families whose values Arrow's CSV reader converts by the same rules as a cast."""


@dataclass(frozen=True)
class AnswerPart:
    """What the rows of a task are: columns of a relation, by ascending number."""

    relation: RelationSchema
    columns: tuple[int, ...]

    def names(self) -> list[str]:
        """How the columns are called in batches."""
        return [f"c{c}" for c in self.columns]

    def types(self) -> list[PgType]:
        """How the columns are kept."""
        kept = [pg_type(self.relation.columns[c].source_type) for c in self.columns]
        return [k for k in kept if isinstance(k, PgType)]


class ReadFailed(Exception):
    """A value of an answer cannot be kept; `explained` says where."""

    def __init__(self, part: AnswerPart, column: int, text: str) -> None:
        super().__init__(text)
        self._part, self._column, self._text = part, column, text

    def explained(self, connection: psycopg.Connection) -> ColumnLost:
        """The error for people; looks the row's primary key up if the session still can."""
        relation = self._part.relation
        column = relation.columns[self._column]
        return ColumnLost(
            f'column "{column.name}" of "{relation.name}" holds {self._text}, '
            f"which {column.type} cannot hold exactly{self._row(connection)}",
            relation=str(relation.name),
            column=column.name,
            hint="correct the value at the source, or leave the column out of the view",
        )

    def _row(self, connection: psycopg.Connection) -> str:
        relation = self._part.relation
        if not relation.primary or connection.closed:
            return ""
        statement = sql.SQL("SELECT {}::text FROM ONLY {} WHERE {}::text = {} LIMIT 1").format(
            sql.SQL("::text, ").join(map(sql.Identifier, relation.primary)),
            sql.Identifier(*relation.name.path),
            sql.Identifier(relation.columns[self._column].name),
            sql.Literal(self._text),
        )
        row = connection.execute(statement).fetchone()
        if row is None:
            return ""
        return f" (row with ({', '.join(relation.primary)}) = ({', '.join(map(str, row))}))"


def copied(
    connection: psycopg.Connection, address: Address, statement: str, part: AnswerPart
) -> Iterator[pa.RecordBatch]:
    """The rows of a SELECT, in batches of about `BLOCK_BYTES`."""
    with address.errors():
        blocks = _blocks(connection, f"COPY ({statement}) TO STDOUT (FORMAT csv)")
        failure: ReadFailed | None = None
        for block in blocks:
            # After a bad value the rest is read past, so that the session can still name the row.
            if failure is None:
                try:
                    yield from _parsed(block, part)
                except ReadFailed as found:
                    failure = found
        if failure:
            raise failure


def _blocks(connection: psycopg.Connection, statement: str) -> Iterator[bytes]:
    """The output of COPY, joined to blocks of whole rows: one CopyData message is one row."""
    libpq = connection.pgconn
    libpq.send_query(statement.encode())
    result = _result(libpq)
    if result is None or result.status != pq.ExecStatus.COPY_OUT:
        _finish(libpq)
        raise (
            psycopg.errors.error_from_result(result)
            if result
            else psycopg.OperationalError("no answer")
        )
    arriving = _rows(libpq)
    try:
        yield from _joined(arriving)
    finally:
        # A reader that stops early leaves rows behind; the session is of use only without them.
        for _ in arriving:
            pass


def _joined(arriving: Iterator[memoryview]) -> Iterator[bytes]:
    rows: list[memoryview] = []
    size = 0
    for row in arriving:
        rows.append(row)
        size += len(row)
        if size >= BLOCK_BYTES:
            yield b"".join(rows)
            rows, size = [], 0
    if rows:
        yield b"".join(rows)


def _rows(libpq: pq.abc.PGconn) -> Iterator[memoryview]:
    while True:
        size, data = libpq.get_copy_data(1)
        if size > 0:
            yield data
        elif size == 0:
            select.select([libpq.socket], [], [])
            libpq.consume_input()
        else:
            break
    result = _finish(libpq)
    if result is not None and result.status == pq.ExecStatus.FATAL_ERROR:
        raise psycopg.errors.error_from_result(result)


def _result(libpq: pq.abc.PGconn) -> pq.abc.PGresult | None:
    while libpq.flush():
        select.select([libpq.socket], [libpq.socket], [])
        libpq.consume_input()
    while libpq.is_busy():
        select.select([libpq.socket], [], [])
        libpq.consume_input()
    return libpq.get_result()


def _finish(libpq: pq.abc.PGconn) -> pq.abc.PGresult | None:
    """Read the results that remain; the first one tells how it went."""
    first = result = _result(libpq)
    while result is not None:
        result = _result(libpq)
    return first


def _parsed(block: bytes, part: AnswerPart) -> Iterator[pa.RecordBatch]:
    names, types = part.names(), part.types()
    direct = {
        n: arrow_type(t.spark) for n, t in zip(names, types, strict=True) if t.family in _IN_CSV
    }
    try:
        table = _csv(block, names, direct)
    except pa.ArrowInvalid:
        table, direct = _csv(block, names, {}), {}
    arrays = [
        table.column(n) if n in direct else _typed(table.column(n), part, c, t)
        for n, c, t in zip(names, part.columns, types, strict=True)
    ]
    yield from pa.table(arrays, names=names).to_batches()


def _csv(block: bytes, names: list[str], direct: dict[str, pa.DataType]) -> pa.Table:
    types = {n: direct.get(n, pa.string()) for n in names}
    return csv.read_csv(
        pa.py_buffer(block),
        csv.ReadOptions(column_names=names, use_threads=False, block_size=len(block) + 1),
        csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
        csv.ConvertOptions(
            column_types=types,
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            null_values=[""],
        ),
    )


def _typed(texts: pa.ChunkedArray, part: AnswerPart, column: int, kept: PgType) -> pa.Array:
    whole = texts.combine_chunks()
    whole = whole if isinstance(whole, pa.Array) else pa.concat_arrays(whole.chunks)
    try:
        return convert(whole, kept)
    except NotKept:
        bad = first_bad(whole, kept) or 0
        raise ReadFailed(part, column, str(whole[bad])) from None
