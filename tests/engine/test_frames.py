"""Rows at hand as relations of Spark."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import SparkSession

from steadyview.engine.frames import Frames


def test_rows_in_pieces_arrive_whole_also_behind_an_empty_piece(spark: SparkSession) -> None:
    pieces = [pa.table({"a": pa.array(values, pa.int64())}) for values in ([1, 2], [], [3], [])]
    frames = Frames(spark)
    name = frames.rows("pieces", pa.concat_tables(pieces), [("a", "BIGINT")])
    found = spark.sql(f"SELECT a FROM {name}").toArrow()
    assert sorted(found["a"].to_pylist()) == [1, 2, 3]
    frames.drop()
