"""Killed after any durable step, a flush exists wholly or not at all, and never twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from steadyview.catalog import Catalog
from steadyview.changes import Flush
from steadyview.update_log import UpdateLog
from tests.catalog.clocks import SetClock
from tests.update_log.captured import LINES, ORDERS, SHOP, chunk
from tests.update_log.crashing import capture

ROOT = Path(__file__).parents[2]
PLACES = [
    "log-file-written",
    "log-file-written:3",
    "log-committed",
    "log-committed:2",
    "log-committed:5",
    "admitted",
    "admitted:3",
]


def crash(warehouse: Path, place: str) -> None:
    process = subprocess.run(
        [sys.executable, "-m", "tests.update_log.crashing", str(warehouse), "6"],
        env={
            **os.environ,
            "STEADYVIEW_CRASH_AT": place,
            "PYTHONPATH": os.pathsep.join([*sys.path, str(ROOT)]),
        },
        check=False,
        capture_output=True,
    )
    assert process.returncode == -signal.SIGKILL, process.stderr.decode()


@pytest.mark.parametrize("place", PLACES)
def test_after_a_crash_every_row_is_there_exactly_once(tmp_path: Path, place: str) -> None:
    warehouse = tmp_path / "ware house"
    crash(warehouse, place)
    capture(warehouse, 7)
    log = UpdateLog(warehouse / "log")
    for relation in (ORDERS, LINES):
        found = log.rows(relation.name)
        assert sorted(found.column("_seq").to_pylist()) == [1, 2, 3, 4, 5, 6, 7]
        listed = {Path(f) for f in log.files(relation.name)}
        assert set(log.table(relation.name).path.glob("data/**/*.parquet")) == listed
    with Catalog.open(warehouse, SetClock()) as catalog:
        assert catalog.commits.last_cn() == catalog.sources.state("sales").last_seq == 7
        assert catalog.sources.state("sales").position == "at-7"


def test_a_flush_the_catalog_does_not_know_is_removed_from_every_table(tmp_path: Path) -> None:
    log = UpdateLog(tmp_path)
    writer = log.writer("sales", SHOP, log.recover("sales", 0), 1)
    for seq in (1, 2, 3):
        writer.append(chunk([seq]))
        writer.flush()
    assert log.recover("sales", 1) == 4
    assert log.rows(ORDERS.name).column("_seq").to_pylist() == [1]
    assert log.rows(LINES.name).column("_seq").to_pylist() == [1]
    assert log.recover("sales", 1) == 4


def test_a_flush_number_is_used_once_also_where_one_table_was_not_touched(tmp_path: Path) -> None:
    log = UpdateLog(tmp_path)
    writer = log.writer("sales", SHOP, 1, 1)
    writer.append(chunk([1], [LINES]))
    writer.flush()
    number = log.recover("sales", 0)
    assert number == 2
    writer = log.writer("sales", SHOP, number, 1)
    writer.append(chunk([1]))
    assert writer.flush().number == 2
    assert log.rows(ORDERS.name).num_rows == log.rows(LINES.name).num_rows == 1


def test_recovery_of_one_source_leaves_the_others_alone(tmp_path: Path) -> None:
    log = UpdateLog(tmp_path)
    writer = log.writer("sales", SHOP, 1, 1)
    writer.append(chunk([1]))
    writer.flush()
    assert log.recover("crm", 0) == 1
    assert log.rows(ORDERS.name).num_rows == 1


def test_capture_goes_on_after_a_known_flush_without_a_crash(tmp_path: Path) -> None:
    capture(tmp_path, 3)
    capture(tmp_path, 5)
    log = UpdateLog(tmp_path / "log")
    assert log.rows(ORDERS.name).column("_seq").to_pylist() == [1, 2, 3, 4, 5]
    with Catalog.open(tmp_path, SetClock()) as catalog:
        again = Flush("sales", 1, 1, 2, "at-2")
        assert catalog.commits.admit(again) == catalog.commits.run_of("sales", 1)
        assert catalog.commits.last_cn() == 5
