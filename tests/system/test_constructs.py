"""Every construct on real databases and Spark: each view is what SQLite makes of its text.

Two databases, transactions over both, several batches, views on views.
"""

from __future__ import annotations

import random
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import steadyview
from steadyview.algebra import Bag, Row
from tests.conftest import SOAK
from tests.system.databases import SqliteFile, write_project
from tests.system.maintained import capturing, changes, read

VIEWS = {
    "lefts": "SELECT a.k, a.x, b.y FROM p.a LEFT JOIN q.b ON a.k = b.k AND b.y > 0",
    "rights": "SELECT a.x, b.k, b.y FROM p.a RIGHT JOIN q.b ON a.k = b.k",
    "fulls": (
        "SELECT a.k AS ak, a.x, b.k AS bk, b.y FROM p.a FULL OUTER JOIN q.b ON a.k = b.k"
    ),
    "star": (
        "SELECT a.x, b.y, c.z FROM p.a LEFT JOIN q.b ON a.k = b.k LEFT JOIN q.c ON b.y = "
        "c.k"
    ),
    "semi": (
        "SELECT k, x FROM p.a WHERE EXISTS (SELECT 1 FROM q.b WHERE b.k = a.k AND b.y > "
        "a.x)"
    ),
    "anti": (
        "SELECT k, x FROM p.a WHERE NOT EXISTS (SELECT 1 FROM q.b WHERE b.k = a.k)"
    ),
    "within": "SELECT k, x FROM p.a WHERE x IN (SELECT y FROM q.b)",
    "without": "SELECT k, x FROM p.a WHERE x NOT IN (SELECT y FROM q.b WHERE y < 3)",
    "either": (
        "SELECT k FROM p.a WHERE x = 2 OR EXISTS (SELECT 1 FROM q.b WHERE b.k = a.k)"
    ),
    "marks": (
        "SELECT k, x IN (SELECT y FROM q.b) AS there, "
        "(x NOT IN (SELECT y FROM q.b WHERE b.k = a.k)) IS NULL AS unknown FROM p.a"
    ),
    "single": "SELECT DISTINCT k, x FROM p.a",
    "unions": "SELECT k FROM p.a UNION SELECT y FROM q.b",
    "both": "SELECT k FROM p.a INTERSECT SELECT k FROM q.b",
    "minus": "SELECT k FROM p.a EXCEPT SELECT k FROM q.b",
    "extremes": (
        "SELECT k, MIN(x) AS low, MAX(x) AS high, COUNT(*) AS n, SUM(x) AS s FROM p.a "
        "GROUP BY k"
    ),
    "highest": "SELECT MAX(x) AS high, COUNT(x) AS n FROM p.a",
    "ends": "SELECT MIN(x) AS low, MAX(x + k) AS high FROM p.a",
    "repeated": "SELECT k, COUNT(*) AS n FROM p.a GROUP BY k HAVING COUNT(*) > 1",
    "nested": (
        "SELECT n, COUNT(*) AS groups FROM (SELECT k, COUNT(*) AS n FROM p.a GROUP BY k) "
        "GROUP BY n"
    ),
    "with_sums": (
        "SELECT b.k, b.y, t.s FROM q.b JOIN (SELECT k, SUM(x) AS s FROM p.a GROUP BY k) t "
        "ON t.k = b.k"
    ),
    "twice": (
        "WITH t AS (SELECT k, COUNT(*) AS n FROM p.a GROUP BY k) SELECT l.k, r.n FROM t l "
        "JOIN t r ON l.n = r.n"
    ),
    "constants": (
        "SELECT a.k, v.name FROM p.a JOIN (VALUES (1, 'one'), (2, 'two')) AS v(k, name) "
        "ON v.k = a.k"
    ),
    "above": (
        "SELECT h.k, h.n, e.high FROM repeated h LEFT JOIN extremes e ON e.k = h.k"
    ),
    "diamond": (
        "SELECT l.k, COUNT(*) AS n FROM lefts l JOIN above u ON u.k = l.k GROUP BY l.k"
    ),
}
TEXTS = {
    "constants": (
        "SELECT a.k, v.name FROM p.a JOIN (SELECT 1 AS k, 'one' AS name UNION ALL SELECT "
        "2, 'two') v ON v.k = a.k"
    )
}
TABLES = {
    "a": ("p", "k INTEGER, x INTEGER"),
    "b": ("q", "k INTEGER, y INTEGER"),
    "c": ("q", "k INTEGER, z INTEGER"),
}
STEPS = 12


@pytest.fixture
def databases(tmp_path: Path) -> Iterator[dict[str, SqliteFile]]:
    made = {name: SqliteFile(tmp_path / f"{name}.db") for name in ("p", "q")}
    for table, (source, columns) in TABLES.items():
        made[source].create(table, columns)
    yield made
    for database in made.values():
        database.close()


def statements(dice: random.Random, table: str) -> list[str]:
    value = lambda: dice.choice(("0", "1", "2", "3", "NULL"))  # noqa: E731
    second = {"a": "x", "b": "y", "c": "z"}[table]
    kind = dice.choice(("insert", "insert", "update", "delete"))
    if kind == "insert":
        rows = ", ".join(f"({value()}, {value()})" for _ in range(dice.choice((1, 2, 3))))
        return [f"INSERT INTO {table} VALUES {rows}"]
    one = f"rowid IN (SELECT rowid FROM {table} ORDER BY RANDOM() LIMIT 2)"
    if kind == "delete":
        return [f"DELETE FROM {table} WHERE {one}"]
    return [f"UPDATE {table} SET {dice.choice(('k', second))} = {value()} WHERE {one}"]


def truth(databases: dict[str, SqliteFile], tmp_path: Path) -> dict[str, Bag[Row]]:
    """Every view as SQLite computes it now; views that are read become tables."""
    with closing(sqlite3.connect(":memory:")) as db:
        for name in databases:
            db.execute(f"ATTACH '{tmp_path / name}.db' AS {name}")
        found = {}
        for name, sql in VIEWS.items():
            text = TEXTS.get(name, sql)
            for other in ("repeated", "extremes", "lefts", "above"):
                text = re.sub(rf"(FROM|JOIN) {other} ", rf"\1 {other}_ ", text)
            db.execute(f"CREATE TEMP TABLE {name}_ AS {text}")
            found[name] = Bag.of(db.execute(f"SELECT * FROM {name}_").fetchall())
        return found


def plain(rows: Bag[Row]) -> Bag[Row]:
    """Numbers as Python compares them; SQLite has no booleans."""
    return rows.map(lambda r: tuple(int(v) if isinstance(v, bool | Decimal) else v for v in r))


@pytest.mark.parametrize("seed", range(1, 7 if SOAK else 2))
def test_every_construct_is_right_at_every_cn(
    databases: dict[str, SqliteFile], tmp_path: Path, spark: SparkSession, seed: int
) -> None:
    dice = random.Random(seed)
    for table, (source, _) in TABLES.items():
        for _ in range(2):
            for statement in statements(dice, table):
                databases[source].writer().execute(statement)
    folder = write_project(tmp_path / "project", databases, VIEWS)
    states: dict[int, dict[str, Bag[Row]]] = {}
    with steadyview.open(folder, spark=spark) as wh:
        wh.run_once()
        states[wh.status().cn] = truth(databases, tmp_path)
        for _ in range(3):
            with capturing(wh) as admit:
                for _ in range(STEPS // 3):
                    table = dice.choice(list(TABLES))
                    source = TABLES[table][0]
                    for statement in statements(dice, table):
                        databases[source].writer().execute(statement)
                    states[admit(source)] = truth(databases, tmp_path)
            wh.run_once()
        stands = {v.name: (v.state, v.cn, v.error) for v in wh.status().views}
        assert set(stands.values()) == {("active", wh.status().cn, None)}, stands
        for name in VIEWS:
            assert plain(read(wh, name, at=min(states))) == plain(states[min(states)][name]), name
            found, delta = read(wh, name), changes(wh, name)
            for cn in states:
                later = [change for at, change in delta.items() if at > cn]
                state = plain(sum((-change for change in later), found))
                assert state == plain(states[cn][name]), (name, cn)
        verdicts = wh.verify(nodes=seed == 1)
        assert [v for v in verdicts if not v.equal] == []
        hidden = {v.view for v in verdicts if v.view.startswith("~")}
        assert len(hidden) == (8 if seed == 1 else 0)
