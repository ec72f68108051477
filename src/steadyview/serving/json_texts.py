"""Values as JSON, column by column by Arrow and one by one in Python, to the same letter.

A record's key is one text, the JSON array of its values without blanks: `["EU"]`, `[7,null]`. So
every client of every store makes it the same way, and NULL is a key like others. Whole numbers and
booleans are themselves; every other value is a text, as `cli.values` shows it too: decimals with
the digits that their type has, times in ISO 8601, in UTC with a Z where they are instants; bytes in
hexadecimal digits. A key longer than LONGEST bytes is a number sign and its SHA-256.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Context, Decimal
from typing import TYPE_CHECKING, Any

from steadyview.errors import ConfigError

if TYPE_CHECKING:
    import pyarrow as pa

LONGEST = 1000
EXACT = Context(prec=80)
"""For decimals: Python's own context would round them to 28 digits."""
WHOLE = ("TINYINT", "SMALLINT", "INT", "BIGINT")
FRACTIONS = ("FLOAT", "DOUBLE")
_ODD = {"nan": '"NaN"', "inf": '"Infinity"', "-inf": '"-Infinity"'}
_NAMED = {"\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_CONTROLS = {chr(i): _NAMED.get(chr(i), f"\\u{i:04x}") for i in range(32)}


# --- one by one ----------------------------------------------------------------------------------


def key_text(values: Sequence[Any], types: Sequence[str]) -> str:
    """The key of a record.

    >>> key_text(["EU", None, 7], ["STRING", "STRING", "INT"])
    '["EU",null,7]'
    """
    text = f"[{','.join(_literal(v, t) for v, t in zip(values, types, strict=True))}]"
    encoded = text.encode()
    return text if len(encoded) <= LONGEST else _digest(encoded)


def json_of(row: Sequence[tuple[str, str, Any]]) -> str:
    """A JSON object of these names, types and values."""
    parts = (f"{json.dumps(n, ensure_ascii=False)}:{_literal(v, t)}" for n, t, v in row)
    return f"{{{','.join(parts)}}}"


def _literal(value: Any, type_: str) -> str:
    value = exact(value, type_)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else _ODD[str(value)]
    return json.dumps(_told(value), ensure_ascii=False)


def _told(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat(timespec="microseconds").replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    return value.hex() if isinstance(value, bytes) else str(value)


def exact(value: Any, type_: str) -> Any:
    """The value as one of the Spark type, also where it is given as a text; ConfigError if not.

    >>> exact("7", "INT"), exact("1.5", "DECIMAL(4,2)")
    (7, Decimal('1.50'))
    """
    try:
        return None if value is None else _converted(value, type_)
    except (ValueError, ArithmeticError, TypeError):
        hint = "give the key's values in the order of its columns"
        raise ConfigError(f'"{value}" is no {type_}', hint=hint) from None


def _converted(value: Any, type_: str) -> Any:  # noqa: C901 - one branch per type
    if type_ in WHOLE:
        if isinstance(value, bool | float):
            raise ValueError(value)
        return int(value)
    if type_ == "BOOLEAN":
        return value if isinstance(value, bool) else {"true": True, "false": False}[str(value)]
    if type_.startswith("DECIMAL"):
        scale = int(type_.rstrip(")").rpartition(",")[2])
        found = Decimal(value if not isinstance(value, float) else repr(value))
        rounded = found.quantize(Decimal(1).scaleb(-scale), context=EXACT)
        if rounded != found:
            raise ValueError(value)
        return rounded
    if type_ == "DATE":
        return value if type(value) is date else date.fromisoformat(str(value))
    if type_ in ("TIMESTAMP", "TIMESTAMP_NTZ"):
        time = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
        if type_ == "TIMESTAMP_NTZ":
            return time.replace(tzinfo=None)
        return time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)
    if type_ == "BINARY":
        return bytes.fromhex(value) if isinstance(value, str) else bytes(value)
    if type_ in FRACTIONS:
        return float(value)
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def value_of(told: Any, type_: str) -> Any:
    """The value that a JSON document tells."""
    if type_ in FRACTIONS and isinstance(told, str):
        return math.inf if told == "Infinity" else -math.inf if told == "-Infinity" else math.nan
    return exact(told, type_)


def _digest(text: bytes) -> str:
    return f"#{hashlib.sha256(text).hexdigest()}"


# --- column by column ----------------------------------------------------------------------------


def key_texts(columns: Sequence[pa.ChunkedArray], types: Sequence[str]) -> pa.Array:
    """The key of every row."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    joined = pc.binary_join_element_wise(*map(literals, columns, types), ",")
    texts = pc.binary_join_element_wise("[", joined, "]", "")
    long = np.flatnonzero(pc.binary_length(texts).to_numpy(zero_copy_only=False) > LONGEST)
    if not len(long):
        return texts
    mask = np.zeros(len(texts), dtype=bool)
    mask[long] = True
    digests = [_digest(texts[int(i)].as_py().encode()) for i in long]
    return pc.replace_with_mask(texts, pa.array(mask), pa.array(digests, pa.string()))


def object_texts(rows: pa.Table, columns: Sequence[tuple[str, str]]) -> pa.Array:
    """Every row as a JSON object of these columns."""
    import pyarrow.compute as pc

    parts: list[Any] = []
    for i, (name, type_) in enumerate(columns):
        parts += ["," * bool(i) + json.dumps(name, ensure_ascii=False) + ":"]
        parts += [literals(rows[name], type_)]
    return pc.binary_join_element_wise("{", *parts, "}", "")


def literals(column: pa.ChunkedArray | pa.Array, type_: str) -> pa.Array:
    """Every value as JSON; NULL is the text null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks)
    texts = plain_texts(column, type_)
    if type_ in FRACTIONS:
        for plain, told in _ODD.items():
            texts = pc.if_else(pc.equal(texts, plain), told, texts)
    elif type_ not in (*WHOLE, "BOOLEAN"):
        texts = pc.binary_join_element_wise('"', _escaped(texts), '"', "")
    return pc.fill_null(texts, "null")


def plain_texts(column: pa.Array, type_: str) -> pa.Array:
    """Every value as a text of its own, NULL as NULL."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if type_ == "BINARY":
        # Arrow has no function for it
        digits = [None if v is None else v.hex() for v in column.to_pylist()]
        return pa.array(digits, pa.string())
    texts = column.cast(pa.string())
    if type_ in ("TIMESTAMP", "TIMESTAMP_NTZ"):
        texts = pc.replace_substring(texts, " ", "T")
    return texts


def _escaped(texts: pa.Array) -> pa.Array:
    import pyarrow.compute as pc

    texts = pc.replace_substring(texts, "\\", "\\\\")
    texts = pc.replace_substring(texts, '"', '\\"')
    if pc.any(pc.match_substring_regex(texts, "[\\x00-\\x1f]")).as_py():
        for plain, escaped in _CONTROLS.items():
            texts = pc.replace_substring(texts, plain, escaped)
    return texts
