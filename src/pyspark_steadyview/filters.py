"""Spark's filters as Arrow expressions, where both mean the same.

Not taken: FLOAT and DOUBLE (to Spark NaN is itself, and the largest), times, parts of columns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import datasource as spark
from pyspark.sql import types as t
from pyspark.sql.pandas.types import to_arrow_type

_TAKEN = (
    t.BooleanType,
    t.ByteType,
    t.ShortType,
    t.IntegerType,
    t.LongType,
    t.DecimalType,
    t.StringType,
    t.DateType,
)
_COMPARED: dict[type, Callable[[pc.Expression, pc.Expression], pc.Expression]] = {
    spark.EqualTo: lambda column, value: column == value,
    spark.GreaterThan: lambda column, value: column > value,
    spark.GreaterThanOrEqual: lambda column, value: column >= value,
    spark.LessThan: lambda column, value: column < value,
    spark.LessThanOrEqual: lambda column, value: column <= value,
}
_TEXTS: dict[type, Callable[..., pc.Expression]] = {
    spark.StringStartsWith: pc.starts_with,
    spark.StringEndsWith: pc.ends_with,
    spark.StringContains: pc.match_substring,
}


def expression(wanted: spark.Filter, schema: t.StructType) -> pc.Expression | None:
    """The filter over columns of these types; None where it is left to Spark."""
    if isinstance(wanted, spark.Not):
        inner = expression(wanted.child, schema)
        if inner is None or not isinstance(wanted.child, spark.In):
            return None if inner is None else ~inner
        # to Arrow NULL is not among others, to SQL it may be
        return ~inner & pc.field(wanted.child.attribute[0]).is_valid()
    name: tuple[str, ...] = getattr(wanted, "attribute", ())
    if len(name) != 1 or name[0] not in schema.names:
        return None
    type_, column = schema[name[0]].dataType, pc.field(name[0])
    if isinstance(wanted, spark.IsNull):
        return column.is_null()
    if isinstance(wanted, spark.IsNotNull):
        return column.is_valid()
    return _valued(wanted, column, type_) if isinstance(type_, _TAKEN) else None


def _valued(wanted: Any, column: pc.Expression, type_: t.DataType) -> pc.Expression | None:
    kind, value = type(wanted), wanted.value
    try:
        if kind in _COMPARED and value is not None:
            return _COMPARED[kind](column, _literal(value, type_))
        if kind is spark.EqualNullSafe:
            same = column.is_null() if value is None else column == _literal(value, type_)
            # never NULL, also where it is negated
            return same if value is None else same & column.is_valid()
        if kind is spark.In and None not in value:
            values = [pa.scalar(v).cast(to_arrow_type(type_)) for v in value]
            return column.isin(pa.array([v.as_py() for v in values], to_arrow_type(type_)))
        if kind in _TEXTS and isinstance(value, str):
            return _TEXTS[kind](column, value)
    except (pa.ArrowException, TypeError, ValueError):
        return None
    return None


def _literal(value: Any, type_: t.DataType) -> pc.Expression:
    return pc.scalar(pa.scalar(value).cast(to_arrow_type(type_)))
