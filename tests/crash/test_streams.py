"""A stream of Spark that is killed goes on from its checkpoint, with the very same rows."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import steadyview
from steadyview.runtime.warehouse import Warehouse
from tests.system.databases import SqliteFile, write_project


@pytest.fixture
def database(tmp_path: Path) -> Iterator[SqliteFile]:
    made = SqliteFile(tmp_path / "s.db")
    made.create("t", "g INTEGER, x INTEGER")
    made.writer().execute("INSERT INTO t VALUES (1, 10), (1, 10), (2, 3)")
    yield made
    made.close()


@pytest.fixture
def wh(database: SqliteFile, tmp_path: Path, spark: SparkSession) -> Iterator[Warehouse]:
    folder = write_project(tmp_path / "project", {"s": database}, {"v": "SELECT g, x FROM s.t"})
    with steadyview.open(folder, spark=spark) as opened:
        opened.run_once()
        yield opened


def follow(wh: Warehouse, folder: Path, deadly: int = -1) -> dict[int, list]:
    """One life of the application; the batches that were kept by now."""
    driver = Path(__file__).with_name("stream_driver.py")
    command = [sys.executable, str(driver), str(wh.project.root), "v", str(folder), str(deadly)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == (-signal.SIGKILL if deadly >= 0 else 0), done.stderr[-2000:]
    kept = (folder / "out").glob("*.json")
    return {int(path.stem): json.loads(path.read_text()) for path in kept}


def test_a_killed_stream_gives_the_batch_again_and_loses_nothing(
    wh: Warehouse, database: SqliteFile, tmp_path: Path
) -> None:
    folder = tmp_path / "stream"
    folder.mkdir()
    first = follow(wh, folder, deadly=0)
    for statement in ("UPDATE t SET x = 4 WHERE g = 2", "DELETE FROM t WHERE rowid = 1"):
        database.writer().execute(statement)
        wh.run_once()
    second = follow(wh, folder, deadly=1)
    assert second[0] == first[0], "the same rows again, though the view has gone on"
    third = follow(wh, folder)
    assert third == second
    kept: Counter[tuple] = Counter()
    for _, rows in sorted(third.items()):
        for g, x, count, _ in rows:
            kept[g, x] += int(count)
    shown = Counter(tuple(map(str, row)) for row in wh.view("v").read().collect())
    assert {row: n for row, n in kept.items() if n} == dict(shown)
