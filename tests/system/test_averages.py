"""AVG of whole numbers is exact, and verified as such; Spark's own adds doubles in any order."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

import steadyview
from steadyview.engine.frames import Frames
from steadyview.query.verify import difference
from tests.system.databases import SqliteFile, write_project

VIEW = "SELECT kind, AVG(at) AS mean FROM s.events GROUP BY kind"


def test_an_average_beyond_what_a_double_adds_exactly_verifies(
    tmp_path: Path, spark: SparkSession
) -> None:
    database = SqliteFile(tmp_path / "s.db")
    database.create("events", "kind INTEGER, at INTEGER")
    insert = """WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
        INSERT INTO events SELECT i % 7, 1700000000000000 + i * 7919 * 104729 % 999983 FROM n"""
    folder = write_project(tmp_path / "project", {"s": database}, {"means": VIEW})
    with steadyview.open(folder, spark=spark) as wh:
        wh.run_once()
        database.writer().execute(insert)
        wh.run_once()
        (verdict,) = wh.verify()
        assert verdict.equal
    database.close()


def test_bags_are_compared_exactly(spark: SparkSession) -> None:
    """One copy more of a row, or another last digit, is a difference."""
    frames = Frames(spark)
    ours = spark.sql("SELECT * FROM VALUES (1, 0.1D), (1, 0.1D), (3, NULL) AS t(k, mean)")
    same = spark.sql("SELECT * FROM VALUES (3, NULL), (1, 0.1D), (1, 0.1D) AS t")
    fewer = spark.sql("SELECT * FROM VALUES (1, 0.1D), (3, NULL) AS t(k, mean)")
    digit = spark.sql("SELECT * FROM VALUES (1, 0.1D), (1, 0.1D + 2e-17D), (3, NULL) AS t")
    found = [difference(frames, ours, other) for other in (same, fewer, digit)]
    assert [(d.missing, d.extra) for d in found] == [(0, 0), (0, 1), (1, 1)]
    frames.drop()
