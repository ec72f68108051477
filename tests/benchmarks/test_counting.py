"""What the speed tables rest on: counted CPU-seconds, amortised apply, exported rows."""

import os
import sqlite3
import sys
from decimal import Decimal

import pytest

from benchmarks import stock
from benchmarks.accounted import account, available
from benchmarks.measuring import Applied
from benchmarks.plain_spark import _Blocks, _files, from_sqlite
from benchmarks.tpch_texts import QUERIES

BUSY = "import time; end = time.process_time() + 0.5\nwhile time.process_time() < end: pass"


@pytest.mark.skipif(not available(), reason="orphans are adopted on Linux only")
def test_what_an_orphan_uses_is_counted_though_the_command_has_ended(tmp_path):
    leave = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {BUSY!r}])"
    environment = {**os.environ, "PYTHONPATH": ""}
    found = account([sys.executable, "-c", leave], tmp_path, environment)
    assert (found.code, found.java) == (0, False)
    assert found.cpu >= 0.5


@pytest.mark.skipif(not available(), reason="orphans are adopted on Linux only")
def test_a_failure_is_told(tmp_path):
    command = [sys.executable, "-c", "raise SystemExit(3)"]
    assert account(command, tmp_path, {**os.environ, "PYTHONPATH": ""}).code == 3


def test_apply_is_spread_over_the_batches_that_cause_it():
    seen = Applied(happened=[0.0, 2.0, 0.0, 2.0], owed=0.0, alone=[2.0])
    assert seen.amortised == 1.0
    left = Applied(happened=[0.0, 0.0], owed=0.1, alone=[5.0])
    assert left.amortised == 0.25


def test_a_stream_of_blocks_is_read_like_a_file():
    for size in range(1, 8):
        blocks = _Blocks(iter([b"abc", b"", b"defgh", b"i"]))
        found = []
        while part := blocks.read(size):
            found.append(part)
            assert len(part) <= size
        assert b"".join(found) == b"abcdefghi"


def test_sqlites_rows_are_exported_in_their_declared_types(tmp_path):
    path = tmp_path / "a.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE t (a INTEGER, b DECIMAL(15,2), c TEXT)")
        connection.executemany("INSERT INTO t VALUES (?, ?, ?)", [(1, "7.10", "x"), (2, "8", "y")])
    types = {"a": "INTEGER", "b": "DECIMAL(15,2)", "c": "TEXT"}
    (table,) = _files(from_sqlite(path, "t", types))
    assert [tuple(r.values()) for r in table.to_pylist()] == [
        (1, Decimal("7.10"), "x"),
        (2, Decimal("8.00"), "y"),
    ]


def test_a_change_counts_its_rows_and_not_those_of_triggers(tmp_path):
    path = tmp_path / "stock.db"
    with sqlite3.connect(path) as connection:
        for table, columns in stock.TABLES.items():
            connection.execute(f"CREATE TABLE {table} ({', '.join(columns)})")
        connection.execute("CREATE TABLE seen (n)")
        watched = "CREATE TRIGGER w AFTER UPDATE ON supplier BEGIN INSERT INTO seen VALUES (1); END"
        connection.execute(watched)
        connection.execute("INSERT INTO supplier (s_suppkey, s_nationkey) VALUES (1, 24)")
    assert stock.StockWork(path).mixed(1) == 1
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT s_nationkey FROM supplier").fetchall() == [(0,)]
        assert connection.execute("SELECT COUNT(*) FROM seen").fetchone() == (1,)


def test_there_are_22_queries_and_each_that_is_kept_otherwise_says_how():
    assert list(QUERIES) == [f"q{n:02}" for n in range(1, 23)]
    assert all(bool(q.kept) == bool(q.rewrite) for q in QUERIES.values())
    assert all("{" not in q.view(0.1) + q.query(0.1) for q in QUERIES.values())
