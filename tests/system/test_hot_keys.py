"""A key with many rows on both sides of a join: flags leave out what never changes."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import steadyview
from steadyview.algebra import Bag, Row
from steadyview.engine import block_inputs
from steadyview.plans.operator import Flags, Operator
from tests.system.databases import SqliteFile, write_project
from tests.system.maintained import capturing, changes, read

MANY = 1_100
VIEWS = {
    "paired": "SELECT a.x, COUNT(*) AS n, SUM(a.y) AS y FROM s.a JOIN s.b ON a.x = b.x "
    "GROUP BY a.x",
    "shared": "SELECT a.x, SUM(b.z) AS z FROM s.a JOIN s.b ON a.x = b.x GROUP BY a.x",
    "padded": "SELECT a.x, SUM(a.y) AS y, SUM(b.z) AS z FROM s.a LEFT JOIN s.b ON a.x = b.x "
    "GROUP BY a.x",
    "further": "SELECT c.w, COUNT(*) AS n, SUM(a.y) AS y FROM s.a JOIN s.b ON a.x = b.x "
    "JOIN s.c ON c.z = b.z GROUP BY c.w",
}
STATEMENTS = (
    "INSERT INTO a VALUES (7, 100000), (8, 5)",
    "INSERT INTO b VALUES (7, 100000)",
    "UPDATE c SET w = 2 WHERE z = 3",
    "DELETE FROM a WHERE y = 10",
    "DELETE FROM b WHERE z = 3 OR x = 8",
    "INSERT INTO b VALUES (8, 9)",
    "INSERT INTO c VALUES (5, 1), (6, 1)",
)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[SqliteFile]:
    database = SqliteFile(tmp_path / "s.db")
    database.create("a", "x INTEGER, y INTEGER")
    database.create("b", "x INTEGER, z INTEGER")
    database.create("c", "z INTEGER, w INTEGER")
    numbers = f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {MANY})"
    for table in ("a", "b"):
        database.writer().execute(f"INSERT INTO {table} {numbers} SELECT 7, i FROM n")
    database.writer().execute("INSERT INTO b VALUES (8, 1)")
    database.writer().execute("INSERT INTO c VALUES (3, 1), (4, 1)")
    yield database
    database.close()


@pytest.fixture
def flagged(monkeypatch: pytest.MonkeyPatch) -> list[Operator]:
    """The joins that had flags."""
    found: list[Operator] = []
    honest = block_inputs.flags

    def told(*given: Any) -> Flags:
        made = honest(*given)
        found.extend(made.hot)
        return made

    monkeypatch.setattr(block_inputs, "flags", told)
    return found


def expected(path: Path, sql: str) -> Bag[Row]:
    """The view as SQLite computes it now."""
    with closing(sqlite3.connect(path)) as db:
        return Bag.of(db.execute(sql.replace("s.", "")).fetchall())


def test_a_hot_key_is_kept_right_at_every_cn(
    database: SqliteFile, tmp_path: Path, spark: SparkSession, flagged: list[Operator]
) -> None:
    folder = write_project(tmp_path / "project", {"s": database}, VIEWS)
    states: list[tuple[int, dict[str, Bag[Row]]]] = []
    with steadyview.open(folder, spark=spark) as wh:
        wh.run_once()
        assert not flagged
        with capturing(wh) as admit:
            for statement in STATEMENTS:
                database.writer().execute(statement)
                right = {v: expected(tmp_path / "s.db", sql) for v, sql in VIEWS.items()}
                states.append((admit("s"), right))
        wh.run_once()
        # two views share a join; of the last view, the first of two joins is hot
        assert sorted(type(join).__name__ for join in flagged) == [
            "InnerJoin",
            "InnerJoin",
            "SplitJoin",
        ]
        for view in VIEWS:
            found, delta = read(wh, view), changes(wh, view)
            for cn, right in states:
                later = [-change for at, change in delta.items() if at > cn]
                assert sum(later, found) == right[view], (view, cn)
