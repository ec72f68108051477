"""Rows at hand as a relation of Spark, without a file. For few rows only."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pyspark.sql import types as t

_PLAIN: dict[str, t.DataType] = {
    "BOOLEAN": t.BooleanType(),
    "TINYINT": t.ByteType(),
    "SMALLINT": t.ShortType(),
    "INT": t.IntegerType(),
    "BIGINT": t.LongType(),
    "FLOAT": t.FloatType(),
    "DOUBLE": t.DoubleType(),
    "STRING": t.StringType(),
    "BINARY": t.BinaryType(),
    "DATE": t.DateType(),
    "TIMESTAMP": t.TimestampType(),
    "TIMESTAMP_NTZ": t.TimestampNTZType(),
}
_DECIMAL = re.compile(r"DECIMAL\((\d+),\s*(\d+)\)")
LOCAL_ROWS, LOCAL_BYTES = 20_000, 16 << 20
"""Up to so many rows and bytes are handed over; more go through a file."""


def spark_type(name: str) -> t.DataType:
    """The type of that name, as sources and tables spell it.

    >>> spark_type("DECIMAL(10,2)")
    DecimalType(10,2)
    """
    found = _DECIMAL.fullmatch(name)
    return t.DecimalType(int(found[1]), int(found[2])) if found else _PLAIN[name]


def struct(columns: Sequence[tuple[str, str]]) -> t.StructType:
    """Columns as Spark's schema."""
    return t.StructType([t.StructField(name, spark_type(type_)) for name, type_ in columns])
