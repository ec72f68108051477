"""Random SELECT texts on live databases and Spark, many views in one project: right at every cn.

The same texts as in tests/plans, where SQLite runs the product's statements; here Spark does, and
nodes over one join share a statement. The oracle is SQLite on the texts themselves.
"""

from __future__ import annotations

import os
import random
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import steadyview
from steadyview.algebra import Bag, Row
from steadyview.engine import frames, tagged_log, window_input
from steadyview.errors import ViewRefused
from steadyview.plans import hot_keys
from steadyview.runtime import inputs
from steadyview.views.parse import ViewText
from steadyview.views.plan import plan_view
from steadyview.warehouse import node_statement
from tests.conftest import SOAK
from tests.plans.read_texts import RELATIONS
from tests.plans.texts import Decisions, Text, Writer
from tests.system.databases import SqliteFile, write_project
from tests.system.maintained import capturing, changes, read

VIEWS = int(os.environ.get("STEADYVIEW_VIEWS", "100" if SOAK else "60"))
"""In one project."""
PROJECTS = 5 if SOAK else 1
SOURCES = {"r0": "p", "r1": "q", "r2": "q"}
BATCHES, STEPS = 2, 4


def texts(dice: random.Random, many: int) -> dict[str, Text]:
    found: dict[str, Text] = {}
    while len(found) < many:
        numbers = [dice.randrange(1 << 16) for _ in range(150)]
        text = Writer(Decisions(numbers), len(SOURCES)).view(dice.choice((0, 1, 1, 2, 3)))
        try:
            plan_view(ViewText("v", text.spark), RELATIONS, {}, {})
        except ViewRefused:
            continue
        found[f"v{len(found)}"] = text
    return found


@pytest.fixture
def databases(tmp_path: Path) -> Iterator[dict[str, SqliteFile]]:
    made = {name: SqliteFile(tmp_path / f"{name}.db") for name in ("p", "q")}
    for table, source in SOURCES.items():
        made[source].create(table, "c0 INTEGER, c1 INTEGER")
    yield made
    for database in made.values():
        database.close()


def statement(dice: random.Random, table: str) -> str:
    def value() -> str:
        return dice.choice(("0", "1", "2", "NULL"))

    kind = dice.choice(("insert", "insert", "update", "delete"))
    if kind == "insert":
        rows = ", ".join(f"({value()}, {value()})" for _ in range(dice.choice((1, 2, 3))))
        return f"INSERT INTO {table} VALUES {rows}"
    some = f"rowid % {dice.choice((2, 3))} = {dice.randrange(2)}"
    if kind == "delete":
        return f"DELETE FROM {table} WHERE {some} AND rowid > 1"
    return f"UPDATE {table} SET {dice.choice(('c0', 'c1'))} = {value()} WHERE {some}"


def truth(made: dict[str, Text], folder: Path) -> dict[str, Bag[Row]]:
    with closing(sqlite3.connect(":memory:")) as db:
        for name in set(SOURCES.values()):
            db.execute(f"ATTACH '{folder / name}.db' AS {name}")
        return {n: plain(Bag.of(db.execute(t.lite).fetchall())) for n, t in made.items()}


def plain(rows: Bag[Row]) -> Bag[Row]:
    """Numbers as Python compares them; SQLite has no booleans."""
    return rows.map(lambda row: tuple(None if v is None else int(v) for v in row))


@pytest.mark.parametrize("seed", range(PROJECTS))
def test_views_of_random_texts_are_right_at_every_cn(
    databases: dict[str, SqliteFile], tmp_path: Path, spark: SparkSession, seed: int
) -> None:
    check(databases, tmp_path, spark, random.Random(seed), VIEWS)


def test_the_same_where_all_rows_stay_in_spark_and_all_joins_have_flags(
    databases: dict[str, SqliteFile],
    tmp_path: Path,
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for place, limit in (
        (window_input, "ARROW_LIMIT"),
        (inputs, "ARROW_LIMIT"),
        (tagged_log, "ARROW_LIMIT"),
        (node_statement, "ARROW_LIMIT"),
        (node_statement, "LOCAL_ROWS"),
        (frames, "LOCAL_ROWS"),
    ):
        monkeypatch.setattr(place, limit, 0)
    monkeypatch.setattr(hot_keys, "MANY", -1)
    monkeypatch.setattr(hot_keys, "MANY_SORTED", -1)
    monkeypatch.setattr(hot_keys.Pairs, "hot", lambda self, many: True)
    check(databases, tmp_path, spark, random.Random(77), VIEWS // 5)


def check(
    databases: dict[str, SqliteFile],
    tmp_path: Path,
    spark: SparkSession,
    dice: random.Random,
    many: int,
) -> None:
    made = texts(dice, many)
    for table, source in SOURCES.items():
        databases[source].writer().execute(f"INSERT INTO {table} VALUES (0, 1), (1, 2), (NULL, 0)")
        databases[source].writer().execute(statement(dice, table))
    named = {n: re.sub(r"\br(\d)\b", _qualified, t.spark) for n, t in made.items()}
    folder = write_project(tmp_path / "project", databases, named)
    states: dict[int, dict[str, Bag[Row]]] = {}
    with steadyview.open(folder, spark=spark) as wh:
        wh.run_once()
        states[wh.status().cn] = truth(made, tmp_path)
        for _ in range(BATCHES):
            with capturing(wh) as admit:
                for _ in range(STEPS):
                    table = dice.choice(list(SOURCES))
                    databases[SOURCES[table]].writer().execute(statement(dice, table))
                    states[admit(SOURCES[table])] = truth(made, tmp_path)
            wh.run_once()
        # a column of NULLs alone has no type; and texts may compare a truth value with a number
        refused = [v for v in wh.status().views if v.state == "refused"]
        void = {v.name for v in refused if "VOID" in v.error or v.code == "TYPE_ERROR"}
        assert len(void) < many / 5
        stands = {v.name: (v.state, v.cn) for v in wh.status().views if v.name not in void}
        assert set(stands.values()) == {("active", wh.status().cn)}, stands
        for name, text in ((n, t) for n, t in made.items() if n not in void):
            found, delta = read(wh, name), changes(wh, name)
            for cn in sorted(states, reverse=True):
                later = [change for at, change in delta.items() if at > cn]
                state = plain(sum((-change for change in later), found))
                assert state == states[cn][name], (text, cn)


def _qualified(found: re.Match[str]) -> str:
    return f"{SOURCES[found[0]]}.{found[0]}"
