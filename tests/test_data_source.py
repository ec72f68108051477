"""Filters that Spark gives to the data source mean to Arrow what they mean to SQL."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import datasource as spark
from pyspark.sql import types as t

from pyspark_steadyview.filters import expression
from steadyview.engine.local_rows import struct

COLUMNS = (
    ("n", "SMALLINT"),
    ("d", "DECIMAL(10,2)"),
    ("s", "STRING"),
    ("b", "BOOLEAN"),
    ("day", "DATE"),
    ("x", "DOUBLE"),
)
ROWS = [
    (1, Decimal("1.50"), "ab", True, date(2026, 1, 1), 0.5),
    (2, Decimal("-1.00"), "", False, date(1, 1, 1), float("nan")),
    (None, None, None, None, None, None),
]
TAKEN: list[tuple[Any, list[int]]] = [
    (spark.EqualTo(("n",), 1), [0]),
    (spark.Not(spark.EqualTo(("n",), 1)), [1]),
    (spark.EqualNullSafe(("n",), None), [2]),
    (spark.EqualNullSafe(("n",), 2), [1]),
    (spark.Not(spark.EqualNullSafe(("n",), 2)), [0, 2]),
    (spark.GreaterThan(("d",), Decimal("-1")), [0]),
    (spark.GreaterThanOrEqual(("d",), Decimal("-1.00")), [0, 1]),
    (spark.LessThan(("day",), date(2026, 1, 1)), [1]),
    (spark.LessThanOrEqual(("s",), "ab"), [0, 1]),
    (spark.In(("s",), ("ab", "x")), [0]),
    (spark.Not(spark.In(("s",), ("ab", "x"))), [1]),
    (spark.IsNull(("x",)), [2]),
    (spark.IsNotNull(("x",)), [0, 1]),
    (spark.EqualTo(("b",), True), [0]),
    (spark.StringStartsWith(("s",), "a"), [0]),
    (spark.StringEndsWith(("s",), "b"), [0]),
    (spark.StringContains(("s",), ""), [0, 1]),
    (spark.Not(spark.StringContains(("s",), "a")), [1]),
]
LEFT = [
    spark.EqualTo(("x",), 0.5),
    spark.GreaterThan(("x",), 0.0),
    spark.EqualTo(("n",), None),
    spark.EqualTo(("s", "part"), "a"),
    spark.EqualTo(("n",), 100_000),
    spark.In(("n",), (1, None)),
    spark.Not(spark.In(("n",), (1, None))),
]


def table() -> pa.Table:
    from steadyview.changes import arrow_type

    values = zip(*ROWS, strict=True)
    arrays = [pa.array(v, arrow_type(c)) for v, (_, c) in zip(values, COLUMNS, strict=True)]
    return pa.table(arrays, names=[n for n, _ in COLUMNS])


def schema() -> t.StructType:
    return struct(COLUMNS)


@pytest.mark.parametrize(("wanted", "rows"), TAKEN, ids=lambda x: str(x)[:60])
def test_a_filter_that_is_taken_keeps_the_rows_that_sql_keeps(wanted, rows):
    numbered = table().append_column("place", pa.array(range(len(ROWS))))
    assert numbered.filter(expression(wanted, schema()))["place"].to_pylist() == rows


@pytest.mark.parametrize("wanted", LEFT, ids=lambda x: str(x)[:60])
def test_what_may_mean_something_else_is_left_to_spark(wanted):
    assert expression(wanted, schema()) is None
