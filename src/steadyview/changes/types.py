"""Spark's type names and the Arrow types that carry the same values without loss."""

from __future__ import annotations

import re
from collections.abc import Iterable

import pyarrow as pa

from steadyview.changes.relations import Column

SEQ = "_seq"
"""Log column: the dense number of the row's transaction at its source (int64)."""
COUNT = "_count"
"""Log column: +1 for a row that came, -1 for a row that went (int32)."""
TX = "_tx"
"""Log column: what the source calls the transaction (int64: xid, log sequence)."""

_FIXED = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "STRING": pa.string(),
    "BINARY": pa.binary(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us", tz="UTC"),
    "TIMESTAMP_NTZ": pa.timestamp("us"),
}
_DECIMAL = re.compile(r"DECIMAL\((\d+),\s*(\d+)\)")


def arrow_type(spark_type: str) -> pa.DataType:
    """The Arrow type for one of the Spark types a source column may have.

    >>> arrow_type("DECIMAL(12,2)")
    Decimal128Type(decimal128(12, 2))
    """
    if spark_type in _FIXED:
        return _FIXED[spark_type]
    decimal = _DECIMAL.fullmatch(spark_type)
    if not decimal:
        raise KeyError(spark_type)
    return pa.decimal128(int(decimal[1]), int(decimal[2]))


def arrow_schema(columns: Iterable[Column]) -> pa.Schema:
    """Columns as stored: `c0`, `c1`, ..., all nullable."""
    return pa.schema([pa.field(f"c{i}", arrow_type(c.type)) for i, c in enumerate(columns)])
