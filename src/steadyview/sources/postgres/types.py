"""PostgreSQL's types: which Spark type holds every value exactly, and how text becomes Arrow.

Claim: the change stream and the answers both carry the type's own output text under the same
session settings (`connection.SESSION`), and both go through `convert`; so a value is the same in
both, or is refused in both. docs/types.md is the table for people.
Not promised: values outside Spark's range (BC, infinity, NaN of numeric); `convert` raises for
them.
"""

from __future__ import annotations

import binascii
import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from steadyview.changes import arrow_type


class NotKept(ValueError):
    """A text is not a value that the column's Spark type can hold exactly."""


@dataclass(frozen=True)
class PgType:
    """How one PostgreSQL type is kept.

    `family` names the types whose texts mean the same (varchar and text do); a column whose type
    changes within one PgType is not retyped. `element` is the type of the lookup array, or None
    where PostgreSQL's equality may miss rows that Spark's `=` finds.
    """

    spark: str
    family: str
    element: str | None = None


_FIXED = {
    "smallint": PgType("SMALLINT", "number", "int2"),
    "integer": PgType("INT", "number", "int4"),
    "bigint": PgType("BIGINT", "number", "int8"),
    "real": PgType("FLOAT", "number"),
    "double precision": PgType("DOUBLE", "number"),
    "numeric": PgType("DECIMAL(38,18)", "numeric", "numeric"),
    "text": PgType("STRING", "text", "text"),
    "character varying": PgType("STRING", "text", "text"),
    "character": PgType("STRING", "char"),
    '"char"': None,
    "boolean": PgType("BOOLEAN", "boolean", "bool"),
    "date": PgType("DATE", "date", "date"),
    "timestamp without time zone": PgType("TIMESTAMP_NTZ", "timestamp", "timestamp"),
    "timestamp with time zone": PgType("TIMESTAMP", "timestamp", "timestamptz"),
    "uuid": PgType("STRING", "uuid", "uuid"),
    "bytea": PgType("BINARY", "bytea", "bytea"),
    "json": PgType("STRING", "json"),
    "jsonb": PgType("STRING", "jsonb"),
}
_NUMERIC = re.compile(r"numeric\((\d+),(-?\d+)\)")
_LENGTH = re.compile(r"\(\d+\)")
_MAX_PRECISION = 38
_KEPT_DECIMAL = r"^-?\d{1,20}(\.\d{1,18})?$"


def pg_type(source_type: str) -> PgType | str:
    """The mapping of a type as `schema.py` writes it, or the reason why there is none.

    >>> pg_type("numeric(12,2)").spark
    'DECIMAL(12,2)'
    >>> pg_type("point")
    'type "point" has no exact Spark type'
    """
    if source_type.startswith("enum "):
        return PgType("STRING", source_type)
    numeric = _NUMERIC.fullmatch(source_type)
    if numeric:
        return _decimal(source_type, int(numeric[1]), int(numeric[2]))
    found = _FIXED.get(_LENGTH.sub("", source_type))
    return found or f'type "{source_type}" has no exact Spark type'


def _decimal(source_type: str, precision: int, scale: int) -> PgType | str:
    if not 0 <= scale <= precision <= _MAX_PRECISION:
        return (
            f'type "{source_type}" does not fit Spark\'s DECIMAL (38 digits, scale up to precision)'
        )
    return PgType(f"DECIMAL({precision},{scale})", "number", "numeric")


def convert(texts: pa.Array, kept: PgType) -> pa.Array:
    """Output texts (a string array) as the Arrow array of the column's Spark type.

    Raises NotKept if any text is not such a value.
    """
    try:
        if kept.family == "boolean":
            return _booleans(texts)
        if kept.family == "bytea":
            return _bytes(texts)
        if kept.family == "numeric":
            return _unconstrained(texts)
        return texts.cast(arrow_type(kept.spark))
    except pa.ArrowInvalid as error:
        raise NotKept(str(error)) from None


def convert_good(texts: pa.Array, kept: PgType) -> tuple[pa.Array, list[int]]:
    """`convert`, with NULL for each text that is not such a value; and the places of those.

    >>> values, bad = convert_good(pa.array(["1", "NaN", "3"]), PgType("INT", "number"))
    >>> values.to_pylist(), bad
    ([1, None, 3], [1])
    """
    try:
        return convert(texts, kept), []
    except NotKept:
        if len(texts) == 1:
            return pa.nulls(1, arrow_type(kept.spark)), [0]
    middle = len(texts) // 2
    left, bad_left = convert_good(texts.slice(0, middle), kept)
    right, bad_right = convert_good(texts.slice(middle), kept)
    return pa.concat_arrays([left, right]), [*bad_left, *(middle + b for b in bad_right)]


def first_bad(texts: pa.Array, kept: PgType) -> int | None:
    """The place of the first text that cannot be converted; None if all can."""
    if _converts(texts, kept):
        return None
    good, bad = 0, len(texts)
    while bad - good > 1:
        middle = (good + bad) // 2
        if _converts(texts.slice(0, middle), kept):
            good = middle
        else:
            bad = middle
    return good


def _converts(texts: pa.Array, kept: PgType) -> bool:
    try:
        convert(texts, kept)
    except NotKept:
        return False
    return True


def _booleans(texts: pa.Array) -> pa.Array:
    if not pc.all(pc.is_in(texts, value_set=pa.array(["t", "f", None])), min_count=0).as_py():
        raise NotKept("not a boolean")
    return pc.equal(texts, "t")


def _bytes(texts: pa.Array) -> pa.Array:
    """Hex texts as bytes, all at once: a column's texts stand side by side in its buffer."""
    if not pc.all(pc.starts_with(texts, "\\x"), min_count=0).as_py():
        raise NotKept("not a bytea in hex form")
    ends, text = _laid_out(texts)
    valued = np.diff(ends) > 0
    digits = np.ones(len(text), dtype=bool)
    for place in (0, 1):
        digits[ends[:-1][valued] + place] = False
    try:
        raw = binascii.unhexlify(text[digits].tobytes())
    except binascii.Error as error:
        raise NotKept(str(error)) from None
    sizes = np.where(valued, np.diff(ends) - 2, 0) // 2
    offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int32)
    valid = pc.is_valid(texts).buffers()[1]
    buffers = [valid, pa.py_buffer(offsets), pa.py_buffer(raw)]
    return pa.Array.from_buffers(pa.binary(), len(texts), buffers)


def _laid_out(texts: pa.Array) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8]]:
    """The ends of the texts, from 0 on, and their bytes."""
    _, offsets, data = texts.buffers()
    ends = np.frombuffer(offsets, dtype=np.int32)[texts.offset : texts.offset + len(texts) + 1]
    text = np.frombuffer(data, dtype=np.uint8) if data else np.empty(0, dtype=np.uint8)
    return ends - ends[0], text[ends[0] : ends[-1]]


def _unconstrained(texts: pa.Array) -> pa.Array:
    """Decimals without a declared scale; zeros behind the last kept place mean nothing.

    Arrow's cast wraps around silently above 2**127, so the digits are checked first.
    """
    texts = pc.replace_substring_regex(texts, r"^(-?\d+\.\d{18})0+$", r"\1")
    if not pc.all(pc.match_substring_regex(texts, _KEPT_DECIMAL), min_count=0).as_py():
        raise NotKept("not a number of at most 20 digits before and 18 behind the point")
    return texts.cast(pa.decimal128(38, 18))
