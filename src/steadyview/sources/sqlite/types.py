"""SQLite's declared types: which Spark type holds every value exactly, and when a value is refused.

SQLite lets any column hold any value. A value whose storage class is not the declared type's is
never converted: it is refused by name. docs/types.md is the table for people.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from steadyview.changes import arrow_type

Values = Sequence[Any]


class NotKept(ValueError):
    """A value is not one that the column's Spark type can hold exactly."""


@dataclass(frozen=True)
class SqliteType:
    """How a declared type is kept. `stored`: Python's types for the storage classes it may hold."""

    spark: str
    stored: frozenset[type]
    reader: Callable[[Values, pa.DataType], pa.Array]
    keyable: bool = False


_DATE = r"^(000[1-9]|00[1-9]\d|0[1-9]\d\d|[1-9]\d{3})-\d\d-\d\d$"
_TIME = _DATE[:-1] + r"[ T]\d\d:\d\d(:\d\d(\.\d{1,6})?)?$"
_NUMBER = re.compile(r"(-?)(\d+)(?:\.(\d+))?", re.ASCII)
_FLOAT_DIGITS = 15
"""A decimal number of so many digits survives the way through a binary double and back."""


def _plain(values: Values, kind: pa.DataType) -> pa.Array:
    return pa.array(values, kind)


def _booleans(values: Values, kind: pa.DataType) -> pa.Array:
    if not set(values) <= {0, 1, None}:
        raise NotKept("not 0 or 1")
    return pa.array(values, pa.int64()).cast(kind)


def _dated(pattern: str) -> Callable[[Values, pa.DataType], pa.Array]:
    def read(values: Values, kind: pa.DataType) -> pa.Array:
        texts = pa.array(values, pa.string())
        if not pc.all(pc.match_substring_regex(texts, pattern), min_count=0).as_py():
            raise NotKept("not an ISO date or time")
        return texts.cast(kind)

    return read


def _decimals(values: Values, kind: pa.DataType) -> pa.Array:
    whole = kind.precision - kind.scale
    texts = [None if v is None else _number_text(v, whole, kind.scale) for v in values]
    return pa.array(texts, pa.string()).cast(kind)


def _number_text(value: Any, whole: int, places: int) -> str:
    """The digits of a number.

    Arrow's cast wraps around silently above 2**127, so they are counted here.
    """
    text = value if isinstance(value, str) else repr(value)
    if isinstance(value, float):
        text = _float_text(text)
    number = _NUMBER.fullmatch(text)
    if not number:
        raise NotKept("not a decimal number")
    before, behind = number[2].lstrip("0"), (number[3] or "").rstrip("0")
    if len(before) > whole or len(behind) > places:
        raise NotKept(f"more than {whole} digits before or {places} behind the point")
    return f"{number[1]}{before or '0'}.{behind or '0'}"


def _float_text(text: str) -> str:
    if len(re.sub(r"e.*|[^0-9]", "", text).strip("0")) > _FLOAT_DIGITS:
        raise NotKept("a binary number with more than 15 digits")
    try:
        return format(Decimal(text), "f")
    except (InvalidOperation, ValueError):
        raise NotKept("not a finite number") from None


_TEXT, _INT, _FLOAT, _BLOB = (frozenset({t}) for t in (str, int, float, bytes))
_BIGINT = SqliteType("BIGINT", _INT, _plain, keyable=True)
_DOUBLE = SqliteType("DOUBLE", _FLOAT, _plain)
_STRING = SqliteType("STRING", _TEXT, _plain, keyable=True)
_FIXED = {
    **dict.fromkeys(
        ["INTEGER", "INT", "BIGINT", "SMALLINT", "TINYINT", "MEDIUMINT", "INT2", "INT8"], _BIGINT
    ),
    **dict.fromkeys(["REAL", "DOUBLE", "DOUBLE PRECISION", "FLOAT"], _DOUBLE),
    **dict.fromkeys(
        ["TEXT", "VARCHAR", "CHAR", "CHARACTER", "NCHAR", "NVARCHAR", "CHARACTER VARYING", "CLOB"],
        _STRING,
    ),
    "BLOB": SqliteType("BINARY", _BLOB, _plain, keyable=True),
    **dict.fromkeys(["BOOLEAN", "BOOL"], SqliteType("BOOLEAN", _INT, _booleans, keyable=True)),
    "DATE": SqliteType("DATE", _TEXT, _dated(_DATE), keyable=True),
    **dict.fromkeys(["DATETIME", "TIMESTAMP"], SqliteType("TIMESTAMP_NTZ", _TEXT, _dated(_TIME))),
}
_DECLARED = re.compile(r"([A-Z0-9_ ]+?)\s*(?:\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?")
_MAX_PRECISION = 38


def sqlite_type(declared: str) -> SqliteType | str:
    """The mapping of a declared type, or the reason why there is none.

    >>> sqlite_type("decimal(10, 2)").spark, sqlite_type("varchar(20)").spark
    ('DECIMAL(10,2)', 'STRING')
    """
    match = _DECLARED.fullmatch(declared.strip().upper())
    if not match:
        return (
            f'declared type "{declared}" has no exact Spark type'
            if declared
            else "it has no declared type"
        )
    name, first, second = match.groups()
    if name in ("NUMERIC", "DECIMAL"):
        return _decimal(declared, first, second)
    return _FIXED.get(name) or f'declared type "{declared}" has no exact Spark type'


def _decimal(declared: str, precision: str | None, scale: str | None) -> SqliteType | str:
    digits, places = (int(precision), int(scale or 0)) if precision else (_MAX_PRECISION, 18)
    if not 0 < digits <= _MAX_PRECISION or places > digits:
        return f'declared type "{declared}" does not fit Spark\'s DECIMAL (at most 38 digits)'
    return SqliteType(f"DECIMAL({digits},{places})", _INT | _FLOAT | _TEXT, _decimals)


def convert(values: Values, kept: SqliteType) -> pa.Array:
    """Values as SQLite gave them, as the Arrow array of the column's Spark type.

    Raises NotKept if any value is not such a value.
    """
    if not set(map(type, values)) <= kept.stored | {type(None)}:
        raise NotKept("another storage class")
    try:
        return kept.reader(values, arrow_type(kept.spark))
    except (pa.ArrowInvalid, pa.ArrowTypeError, UnicodeError, OverflowError) as error:
        raise NotKept(str(error)) from None


def convert_good(values: Values, kept: SqliteType) -> tuple[pa.Array, list[int]]:
    """`convert`, with NULL for each value that is not such a value; and the places of those.

    >>> values, bad = convert_good([1, "x", 3], _BIGINT)
    >>> values.to_pylist(), bad
    ([1, None, 3], [1])
    """
    try:
        return convert(values, kept), []
    except NotKept:
        if len(values) == 1:
            return pa.nulls(1, arrow_type(kept.spark)), [0]
    middle = len(values) // 2
    left, bad_left = convert_good(values[:middle], kept)
    right, bad_right = convert_good(values[middle:], kept)
    return pa.concat_arrays([left, right]), [*bad_left, *(middle + b for b in bad_right)]


def first_bad(values: Values, kept: SqliteType) -> int:
    """The place of the first value that cannot be converted."""
    for i, value in enumerate(values):
        try:
            convert([value], kept)
        except NotKept:
            return i
    raise ValueError("every value can be converted")
