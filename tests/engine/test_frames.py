"""Rows at hand as relations of Spark."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from steadyview.engine.frames import Frames


def test_rows_in_pieces_arrive_whole_also_behind_an_empty_piece(session: SparkSession) -> None:
    pieces = [pa.table({"a": pa.array(values, pa.int64())}) for values in ([1, 2], [], [3], [])]
    frames = Frames(session)
    name = frames.rows("pieces", pa.concat_tables(pieces), [("a", "BIGINT")])
    ways = frames.sql(f"SELECT a FROM {name}").toArrow(), frames.collected(f"SELECT a FROM {name}")
    for found in ways:
        assert sorted(found["a"].to_pylist()) == [1, 2, 3]
    frames.drop()


def test_rows_at_hand_and_rows_in_files_meet_in_one_statement(
    session: SparkSession, tmp_path: Path
) -> None:
    frames, columns = Frames(session), [("a", "BIGINT")]
    rows = pa.table({"a": pa.array([1, 2], pa.int64())})
    pq.write_table(rows, tmp_path / "rows.parquet")
    few = frames.rows("few", rows, columns)
    none = frames.rows("none", rows.slice(0, 0), columns)
    read = frames.parquet("read", [str(tmp_path / "rows.parquet")], "a BIGINT")
    text = f"SELECT COUNT(*) AS n FROM {few} JOIN {read} USING (a) LEFT JOIN {none} USING (a)"
    assert frames.collected(text)["n"].to_pylist() == [2]
    frames.drop()
    assert not [t for t in session.catalog.listTables() if t.name in (few, none, read)]
