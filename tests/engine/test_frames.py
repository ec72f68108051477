"""Rows at hand as relations of Spark."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from steadyview.engine import frames as frames_module
from steadyview.engine import window_input
from steadyview.engine.frames import Frames, new_file


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


def test_rows_by_file_and_versions_by_spark_lie_side_by_side_in_one_folder(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder of Spark's that is called as a file is would take its place."""
    monkeypatch.setattr(frames_module, "LOCAL_ROWS", 0)
    monkeypatch.setattr(window_input, "ARROW_LIMIT", 0)
    # whatever counts the names of either begins anew
    monkeypatch.setattr(frames_module, "_numbers", count(1))
    if hasattr(window_input, "_NUMBERS"):
        monkeypatch.setattr(window_input, "_NUMBERS", count(1))
    frames, columns = Frames(session), [("c0", "BIGINT")]
    rows = pa.table({"c0": pa.array([1, 2], pa.int64())})
    one = frames.few("versions", rows, columns, tmp_path)
    log = {"c0": [3], "_count": [1], "_cn": [5], "_reflected": [True]}
    logged = window_input.Rows.of(pa.table(log))
    read = window_input.WindowInput(frames, tmp_path, {0: "BIGINT"}, logged, lambda *_: logged)
    two = read.versions([0], 0, 9)
    assert sorted(frames.sql(f"SELECT c0 FROM {one}").toArrow()["c0"].to_pylist()) == [1, 2]
    assert frames.sql(f"SELECT c0 FROM {two}").toArrow()["c0"].to_pylist() == [3]
    frames.drop()


def test_no_two_files_of_a_folder_are_called_alike(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda i: new_file(tmp_path, "ab"[i % 2]), range(1_000)))
    assert len({path.name.rpartition("-")[2] for path in made}) == 1_000
