"""Lookup values as one array literal: quoted as a whole, never concatenated into the statement.

A value that cannot be a value of the column's type matches no row, so it is left out beforehand;
the server never sees it. What remains finds at least every row that Spark's `=` would find.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from psycopg import sql

from steadyview.changes import Column
from steadyview.sources.postgres.types import PgType, pg_type

_UUID = "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"
_FIRST_DATE, _LAST_DATE = -719162, 2932896
_DAY = 86_400_000_000


def key_condition(column: Column, values: pa.Array | None) -> sql.Composed:
    """`column = ANY(values)`."""
    kept = pg_type(column.source_type)
    if values is None or not isinstance(kept, PgType) or kept.element is None:
        raise ValueError(f'column "{column.name}" is not keyable, or no values were given')
    return sql.SQL("{} = ANY({}::{}[])").format(
        sql.Identifier(column.name), sql.Literal(_array(values, kept)), sql.SQL(kept.element)
    )


def _array(values: pa.Array, kept: PgType) -> str:
    """PostgreSQL's text form of an array.

    >>> _array(pa.array(["a b", "x"]), PgType("STRING", "text", "text"))
    '{"a b","x"}'
    """
    texts = _texts(_possible(values, kept), kept)
    return "{" + ",".join(texts.to_pylist()) + "}"


def _possible(values: pa.Array, kept: PgType) -> pa.Array:
    """The values that the column could hold at all."""
    values = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    if kept.family == "uuid":
        return values.filter(pc.match_substring_regex(values, _UUID))
    if kept.family == "text":
        return values.filter(pc.invert(pc.match_substring(values, "\0")))
    if kept.family == "date":
        return _between(values, pa.int32(), _FIRST_DATE, _LAST_DATE)
    if kept.family == "timestamp":
        return _between(values, pa.int64(), _FIRST_DATE * _DAY, (_LAST_DATE + 1) * _DAY - 1)
    return values


def _between(values: pa.Array, number: pa.DataType, low: int, high: int) -> pa.Array:
    numbers = values.view(number)
    return values.filter(pc.and_(pc.greater_equal(numbers, low), pc.less_equal(numbers, high)))


def _texts(values: pa.Array, kept: PgType) -> pa.Array:
    if kept.family == "bytea":
        return pa.array([f'"\\\\x{v.hex()}"' for v in values.to_pylist()], pa.string())
    if kept.family == "text":
        escaped = pc.replace_substring(pc.replace_substring(values, "\\", "\\\\"), '"', '\\"')
        return pc.binary_join_element_wise('"', escaped, '"', "")
    if kept.family == "timestamp":
        # Arrow writes "2024-01-02 03:04:05.000000Z"; the Z is a zone PostgreSQL understands.
        return pc.binary_join_element_wise('"', values.cast(pa.string()), '"', "")
    return values.cast(pa.string())
