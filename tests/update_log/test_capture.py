"""A capture that ends with transactions in hand leaves a position and the proof of just that."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from steadyview.runtime import capture
from steadyview.runtime.capture import Capture
from tests.servers import Database, fresh_database
from tests.update_log import capturing

ROOT = Path(__file__).parents[2]


@pytest.fixture
def database() -> Iterator[Database]:
    made = fresh_database()
    with made.connect() as connection:
        connection.execute("CREATE TABLE t (id integer PRIMARY KEY)")
        connection.execute("ALTER TABLE t REPLICA IDENTITY FULL")
    yield made
    made.drop()


def insert(database: Database, number: int) -> None:
    with database.connect() as connection:
        connection.execute("INSERT INTO t VALUES (%s)", [number])


def ended(made: Capture) -> None:
    made.stop()
    made.join(60)
    made.source.close()


def admitted(made: Capture, transactions: int) -> list[int]:
    """The rows of a later life, which must find the same past."""
    until = time.monotonic() + 60
    while made._catalog.commits.last_cn() < transactions:
        assert made.is_alive(), made.error
        assert time.monotonic() < until, made.error
        time.sleep(0.05)
    ended(made)
    (relation,) = made._relations
    return sorted(made._log.rows(relation.name).column("c0").to_pylist())


def first_life(tmp_path: Path, database: Database) -> None:
    made = capturing.captured(tmp_path, database.url)
    insert(database, 1)
    assert admitted(made, 1) == [1]


@pytest.mark.parametrize("before", ["nothing", "a transaction"])
def test_a_capture_that_is_stopped_with_a_transaction_in_hand_goes_on(
    tmp_path: Path, database: Database, monkeypatch: pytest.MonkeyPatch, before: str
) -> None:
    if before == "a transaction":
        first_life(tmp_path, database)
    done = [1] if before == "a transaction" else []
    with monkeypatch.context() as slow:
        slow.setattr(capture, "FLUSH_SECONDS", capturing.HELD_SECONDS)
        slow.setattr(capture, "IDLE_SECONDS", 0.0)
        made = capturing.captured(tmp_path, database.url)
        time.sleep(0.5)
        insert(database, 2)
        capturing.hold(made, 1)
        made.stop()
        insert(database, 3)  # what it waits for
        ended(made)
    assert made._catalog.commits.last_cn() == len(done)
    later = capturing.captured(tmp_path, database.url)
    assert admitted(later, len(done) + 2) == [*done, 2, 3]


def test_a_capture_that_is_killed_with_a_transaction_in_hand_goes_on(
    tmp_path: Path, database: Database
) -> None:
    first_life(tmp_path, database)
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.update_log.capturing", str(tmp_path), database.url],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path, str(ROOT)])},
    )
    waiting = threading.Timer(3.0, insert, [database, 2])
    waiting.start()
    assert process.wait(90) == -signal.SIGKILL
    waiting.join()
    later = capturing.captured(tmp_path, database.url)
    insert(database, 3)
    assert admitted(later, 3) == [1, 2, 3]


def test_what_comes_after_a_quiet_time_is_flushed_at_once_and_a_stream_in_larger_pieces() -> None:
    news = capture.News()
    soon = capture.TOGETHER_SECONDS
    assert news.due(first=100.0, flushed=40.0) == 100.0 + soon
    assert news.due(first=100.0, flushed=99.99) == 99.99 + capture.FLUSH_SECONDS
    with news.unhurried():
        assert news.due(first=100.0, flushed=99.99) == 99.99 + capture.UNHURRIED_SECONDS
        assert news.due(first=100.0, flushed=40.0) == 100.0 + soon
    assert news.due(first=100.0, flushed=99.99) == 99.99 + capture.FLUSH_SECONDS
