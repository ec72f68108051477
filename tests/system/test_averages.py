"""AVG of large whole numbers: exact here, added as doubles by Spark; verify tells them alike."""

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


def test_an_average_that_is_off_is_told(spark: SparkSession) -> None:
    frames = Frames(spark)
    ours = spark.sql("SELECT * FROM VALUES (1, 0.1D), (2, 5.0D), (3, NULL) AS t(k, mean)")
    last_digit = spark.sql("SELECT * FROM VALUES (1, 0.1D * 3 / 3), (2, 5.0D), (3, NULL) AS t")
    off = spark.sql("SELECT * FROM VALUES (1, 0.1D), (2, 5.00001D), (3, 1.0D) AS t(k, mean)")
    found = [difference(frames, ours, other, {1}) for other in (last_digit, off)]
    assert [(d.missing, d.extra) for d in found] == [(0, 0), (2, 2)]
    frames.drop()
