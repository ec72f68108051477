"""Copies outside the warehouse, killed wherever they are: each change is in them exactly once."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

import steadyview
from steadyview.algebra import Bag, Row
from steadyview.crash_points import READERS, VARIABLE
from steadyview.runtime.warehouse import Warehouse
from tests.conftest import SOAK
from tests.servers import Database, fresh_database
from tests.system.databases import SqliteFile, write_project, write_view
from tests.system.maintained import bag, table_bag

VIEWS = {
    "totals": "SELECT g, COUNT(*) AS n, SUM(x) AS x FROM s.t GROUP BY g",
    "plain": "SELECT g, x FROM s.t",
}
ROUNDS = 20 if SOAK else 5


@pytest.fixture
def database(tmp_path: Path) -> Iterator[SqliteFile]:
    made = SqliteFile(tmp_path / "s.db")
    made.create("t", "g INTEGER, x INTEGER")
    made.writer().execute("INSERT INTO t VALUES (1, 10), (1, 10), (2, NULL), (NULL, 3)")
    yield made
    made.close()


@pytest.fixture
def wh(database: SqliteFile, tmp_path: Path, spark: SparkSession) -> Iterator[Warehouse]:
    folder = write_project(tmp_path / "project", {"s": database}, VIEWS)
    with steadyview.open(folder, spark=spark) as opened:
        opened.run_once()
        yield opened


@pytest.fixture
def outside() -> Iterator[Database]:
    made = fresh_database()
    with made.connect() as connection:
        connection.execute("CREATE TABLE plain (g bigint, x bigint)")
    yield made
    made.drop()


def changed(database: SqliteFile, dice: random.Random) -> None:
    g, x = dice.choice((1, 2, 3, "NULL")), dice.choice((1, 10, "NULL"))
    database.writer().execute(
        dice.choice(
            (
                f"INSERT INTO t VALUES ({g}, {x}), ({g}, {x})",
                f"UPDATE t SET x = {x} WHERE g IS {g}",
                f"UPDATE t SET g = {g} WHERE rowid % 3 = 0",
                f"DELETE FROM t WHERE g IS {g} AND rowid % 2 = 0",
            )
        )
    )


def recipe(name: str, *arguments: object, crash_at: str | None = None) -> subprocess.Popen:
    environment = {**os.environ, **({VARIABLE: crash_at} if crash_at else {})}
    command = [sys.executable, "-m", f"examples.recipes.{name}", *map(str, arguments)]
    return subprocess.Popen(command, env=environment)


def killed_and_ended(start: Callable[[str | None], subprocess.Popen], dice: random.Random) -> None:
    """A life that is killed at some place or time, or not; then one that ends by itself."""
    point = dice.choice((*(p for p in READERS if p != "changes-handed-out"), None))
    with start(None if point is None else f"{point}:{dice.randrange(1, 4)}") as life:
        if point is None:
            with_patience = time.monotonic() + 1.0 + dice.random()
            while life.poll() is None and time.monotonic() < with_patience:
                time.sleep(0.02)
            if life.poll() is None:
                life.send_signal(signal.SIGKILL)
    with start(None) as life:
        assert life.wait() == 0


def rows_of(outside: Database) -> Bag[Row]:
    with psycopg.connect(outside.url) as connection:
        return Bag.of(connection.execute("SELECT g, x FROM plain").fetchall())


def test_a_postgresql_table_is_the_view(
    wh: Warehouse, database: SqliteFile, outside: Database
) -> None:
    dice = random.Random(11)
    start = lambda crash_at: recipe(  # noqa: E731
        *("postgres_copy", wh.project.root, "plain", "pg", outside.url), crash_at=crash_at
    )
    for number in range(ROUNDS):
        killed_and_ended(start, dice)
        assert rows_of(outside) == bag(wh.view("plain").read())
        if number == ROUNDS // 2:
            write_view(wh.project.root, "plain", "SELECT g, x FROM s.t WHERE g IS NOT NULL")
        for _ in range(dice.randrange(1, 6)):
            changed(database, dice)
            wh.run_once()


def test_a_delta_table_is_the_view(wh: Warehouse, database: SqliteFile, tmp_path: Path) -> None:
    dice, folder = random.Random(12), tmp_path / "copy"
    start = lambda crash_at: recipe(  # noqa: E731
        *("delta_copy", wh.project.root, "totals", "delta", folder, "g"), crash_at=crash_at
    )
    for _ in range(ROUNDS):
        killed_and_ended(start, dice)
        found = table_bag(DeltaTable(folder).to_pyarrow_table().select(["g", "n", "x"]))
        assert found == bag(wh.view("totals").read())
        for _ in range(dice.randrange(1, 6)):
            changed(database, dice)
            wh.run_once()


class Lines:
    """What a receiver behind the command keeps: whole commits, each once."""

    def __init__(self) -> None:
        self.rows: Bag[Row] = Bag()
        self.last = (0, -1)

    def take(self, text: str) -> None:
        """A life's output; what has no end was cut short, and comes again."""
        epoch, group = self.last[0], []
        for line in text.splitlines():
            told = json.loads(line)
            if told.get("reset"):
                epoch = told["epoch"]
            elif told.get("end"):
                self._commit((epoch, told["cn"]), group)
                group = []
            else:
                group.append(told)

    def _commit(self, position: tuple[int, int], group: list[dict]) -> None:
        if position <= self.last:
            return
        if group and group[0].get("state"):
            self.rows = Bag()
        self.rows = self.rows + Bag((tuple(g["row"].values()), g["count"]) for g in group)
        self.last = position


def test_what_the_command_prints_is_the_view_whenever_it_is_killed(
    wh: Warehouse, database: SqliteFile
) -> None:
    dice, lines = random.Random(13), Lines()
    command = [sys.executable, "-c", "from steadyview.cli import main; main()", "subscribe"]
    command += ["plain", "--as", "cli", "--project", str(wh.project.root)]
    for _ in range(ROUNDS):
        for point in (f"{dice.choice(READERS)}:{dice.randrange(1, 4)}", None):
            environment = {**os.environ, **({VARIABLE: point} if point else {})}
            done = subprocess.run(
                command, env=environment, capture_output=True, text=True, check=False
            )
            assert done.returncode in (0, -signal.SIGKILL), done.stderr
            lines.take(done.stdout)
        assert done.returncode == 0
        assert lines.rows == bag(wh.view("plain").read())
        for _ in range(dice.randrange(1, 6)):
            changed(database, dice)
            wh.run_once()
