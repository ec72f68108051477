"""Every algorithm on live databases under concurrent writers, and the level that its states reach.

    make live-levels            or: python -m examples.live_levels [--transactions 30]

Three small databases (two of PostgreSQL, one SQLite file), each changed by writers of its own while
a view over them is kept: by each algorithm in turn, over fresh databases. What the view showed is
recorded and judged. Ends with 1 if an algorithm stays below its promise, or if `conventional`,
which promises nothing, is not caught.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sqlite3
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import psycopg
from pyspark.sql import SparkSession

import steadyview
from examples.embedded_postgres import EmbeddedPostgres, embedded_postgres
from steadyview.checking import LEVELS, judge
from steadyview.maintenance.algorithms import KINDS, kind_of
from steadyview.maintenance.fitting import promised
from steadyview.papers.recording import Recording
from steadyview.runtime.warehouse import Warehouse

REPORT = Path("docs/results/live-levels.md")
ALGORITHMS = [*KINDS, "c-t-strobe:3", "nested-sweep:4"]
ATTEMPTS = 8
"""How often `conventional` may get away before that is a fault."""
AHEAD = 4
"""So many transactions may be committed and not be in the views."""
PAUSE = 0.4
"""A writer waits up to so many seconds between two transactions."""
CALM = 1.5
"""Nothing new for so many seconds, and everything has arrived."""
_SEVERAL = """SELECT o.id AS order_id, i.id AS item_id, c.id AS customer_id, i.kind, c.region
FROM sales.orders o JOIN stock.items i ON i.id = o.item JOIN crm.customers c ON c.id = o.customer"""
_ONE = """SELECT o.id AS order_id, l.id AS line_id, p.id AS part_id, o.customer, p.kind
FROM sales.orders o JOIN sales.lines l ON l.order_id = o.id JOIN sales.parts p ON p.id = l.part"""
_TABLES: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "sales": {
        "orders": ("item", "customer"),
        "lines": ("order_id", "part"),
        "parts": ("kind", "size"),
    },
    "stock": {"items": ("kind", "size")},
    "crm": {"customers": ("region", "size")},
}
_WRITERS = (
    ("sales", ("orders",)),
    ("sales", ("lines", "parts", "orders")),
    ("stock", ("items",)),
    ("crm", ("customers",)),
)
_KEYS, _VALUES = range(1, 7), (1, 2, 3)
"""Few enough that rows meet, go and come back."""
_FIXED = 50
"""The key of rows that nobody changes."""
_HASTY = 1000
"""The first key of rows that come with a partner and lose it a moment later, for good."""
HASTE = 0.8
"""A moment: up to so many seconds."""


@dataclass(frozen=True)
class Seen:
    """What one algorithm did: the level of its states, and what they cost."""

    algorithm: str
    promise: str
    level: str
    transactions: int
    states: int
    lookups: int
    seconds: float

    @property
    def as_promised(self) -> bool:
        """Whether it kept its promise; `conventional` has to be caught."""
        if self.algorithm == "conventional":
            return self.level == "none"
        return LEVELS.index(self.level) >= LEVELS.index(self.promise)


Execute = Callable[..., Any]


class Databases:
    """Three databases with some rows, of which one server and one file are shared by nobody."""

    def __init__(self, server: EmbeddedPostgres, folder: Path, name: str) -> None:
        self._file = folder / "crm.db"
        self._urls = {s: server.create_database(f"{s}_{name}") for s in ("sales", "stock")}
        self._name = name
        for source, tables in _TABLES.items():
            with self.connected(source) as execute:
                for number, (table, columns) in enumerate(tables.items()):
                    listed = ", ".join(f"{c} BIGINT" for c in columns)
                    execute(f"CREATE TABLE {table} (id BIGINT NOT NULL PRIMARY KEY, {listed})")
                    if source in self._urls:
                        execute(f"ALTER TABLE {table} REPLICA IDENTITY FULL")
                    luck = Random(f"{source}{number}")
                    for key in (*list(_KEYS)[:4], _FIXED):
                        _insert(execute, source, table, key, luck)

    def settings(self) -> str:
        """The sources in a project file."""
        lines = []
        for source, tables in _TABLES.items():
            lines += [f"[sources.{source}]", f"tables = {json.dumps(list(tables))}"]
            if source in self._urls:
                slot = f"levels_{source}_{self._name}"
                url = json.dumps(self._urls[source])
                lines += ['type = "postgresql"', f"url = {url}", f'slot = "{slot}"']
            else:
                lines += ['type = "sqlite"', f"path = {json.dumps(str(self._file))}"]
        return "\n".join(lines)

    @contextmanager
    def connected(self, source: str) -> Iterator[Execute]:
        """A function that executes statements (parameters marked by `?`) at a source."""
        if source in self._urls:
            with psycopg.connect(self._urls[source], autocommit=True) as server:
                yield lambda sql, *values: server.execute(sql.replace("?", "%s"), values or None)
            return
        file = sqlite3.connect(self._file, timeout=60, isolation_level=None)
        with closing(file):
            yield lambda sql, *values: file.execute(sql, values)


def _insert(execute: Execute, source: str, table: str, key: int, luck: Random) -> None:
    execute(f"INSERT INTO {table} VALUES (?, ?, ?)", key, *_values(source, table, luck))


def _values(source: str, table: str, luck: Random) -> list[int]:
    """Columns that refer to another table hold keys of it."""
    return [
        luck.choice(_VALUES if column in ("kind", "size", "region") else list(_KEYS)[:4])
        for column in _TABLES[source][table]
    ]


def change(execute: Execute, source: str, tables: Sequence[str], luck: Random) -> None:
    """One transaction: a row or two come, go or change."""
    execute("BEGIN IMMEDIATE" if source == "crm" else "BEGIN")
    for _ in range(luck.choice((1, 1, 2))):
        table, key = luck.choice(tables), luck.choice(_KEYS)
        there = execute(f"SELECT 1 FROM {table} WHERE id = ?", key).fetchall()
        column = _TABLES[source][table][luck.randrange(2)]
        if not there:
            _insert(execute, source, table, key, luck)
        elif luck.random() < 0.6:
            execute(f"DELETE FROM {table} WHERE id = ?", key)
        else:
            value = luck.choice(_VALUES)
            execute(f"UPDATE {table} SET {column} = ? WHERE id = ?", value, key)
    execute("COMMIT")


class Writers:
    """Threads that commit transactions, never far ahead of the views.

    `allowed` is how many they may have committed by now: a backlog would be handled alone, without
    anybody interfering.
    """

    def __init__(self, databases: Databases, transactions: int, seed: int) -> None:
        self.allowed = AHEAD
        self.committed = 0
        self._errors: list[BaseException] = []
        self._threads = [
            threading.Thread(target=self._write, args=(databases, number, transactions, seed))
            for number in range(len(_WRITERS))
        ]
        hurry = (databases, transactions, seed)
        self._threads.append(threading.Thread(target=self._hurry, args=hurry))
        for thread in self._threads:
            thread.start()

    @property
    def done(self) -> bool:
        """Whether everything is committed; raises what a thread raised."""
        if self._errors:
            raise self._errors[0]
        return not any(thread.is_alive() for thread in self._threads)

    def _write(self, databases: Databases, number: int, transactions: int, seed: int) -> None:
        luck = Random(f"{seed}-{number}")
        source, tables = _WRITERS[number]
        try:
            with databases.connected(source) as execute:
                for _ in range(number, transactions, len(_WRITERS)):
                    self._pause(luck)
                    change(execute, source, tables, luck)
        except BaseException as error:  # noqa: BLE001 - told by `done`
            self._errors.append(error)

    def _hurry(self, databases: Databases, transactions: int, seed: int) -> None:
        """A row and its partner come; while somebody asks about the row, the partner goes."""
        luck = Random(f"{seed}-hasty")
        try:
            with databases.connected("sales") as sales, databases.connected("stock") as stock:
                for key in range(_HASTY, _HASTY + transactions // 8):
                    self._pause(luck)
                    stock("INSERT INTO items VALUES (?, 1, 1)", key)
                    sales("INSERT INTO parts VALUES (?, 1, 1)", key)
                    sales("INSERT INTO lines VALUES (?, ?, ?)", key, _FIXED, key)
                    sales("INSERT INTO orders VALUES (?, ?, ?)", key, key, _FIXED)
                    time.sleep(luck.random() * HASTE)
                    stock("DELETE FROM items WHERE id = ?", key)
                    sales("DELETE FROM parts WHERE id = ?", key)
        except BaseException as error:  # noqa: BLE001 - told by `done`
            self._errors.append(error)

    def _pause(self, luck: Random) -> None:
        time.sleep(luck.random() * PAUSE)
        while self.committed >= self.allowed:
            time.sleep(0.01)
        self.committed += 1


def write_project(folder: Path, databases: Databases, algorithms: Sequence[str]) -> dict[str, str]:
    """A project with one view per algorithm; the views' names."""
    views = folder / "views"
    views.mkdir(parents=True)
    text = f'[project]\nname = "levels"\n{databases.settings()}\n'
    (folder / "steadyview.toml").write_text(text)
    names = {}
    for algorithm in algorithms:
        name = names[algorithm] = "by_" + algorithm.replace("-", "_").replace(":", "_")
        select = _ONE if kind_of(algorithm).one_source else _SEVERAL
        force = f"TBLPROPERTIES ('steadyview.algorithm' = '{algorithm}')"
        (views / f"{name}.sql").write_text(
            f"CREATE MATERIALIZED VIEW {name} {force} AS\n{select}\n"
        )
    return names


@contextmanager
def _running(
    warehouse: Warehouse, recordings: Sequence[Recording]
) -> Iterator[Callable[[], bool]]:
    """`run` in a thread of its own; whether it has failed; raises what it raised."""
    stop, errors = threading.Event(), []

    def run() -> None:
        try:
            warehouse.run(stop, recordings=recordings)
        except BaseException as error:  # noqa: BLE001 - told by the caller
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield lambda: bool(errors)
    finally:
        stop.set()
        thread.join()
    if errors:
        raise errors[0]


def levels(
    databases: Databases,
    folder: Path,
    algorithms: Sequence[str],
    transactions: int,
    spark: SparkSession,
    seed: int = 1,
) -> list[Seen]:
    """Keep a view by each of the algorithms, all at once, while writers write; judge them."""
    names = write_project(folder, databases, algorithms)
    with steadyview.open(folder, spark=spark) as warehouse:
        warehouse.run_once()
        recordings = {a: Recording(name) for a, name in names.items()}
        started = time.monotonic()
        with _running(warehouse, list(recordings.values())) as failed:
            ended = _follow(warehouse, Writers(databases, transactions, seed), failed)
        warehouse.run_once(recordings=list(recordings.values()))
        found = [_seen(warehouse, a, recordings[a], ended - started) for a in algorithms]
        for source in _TABLES:
            warehouse.remove_source(source)
    return found


def _follow(warehouse: Warehouse, writers: Writers, failed: Callable[[], bool]) -> float:
    """Until everything that the writers wrote is in every view; when that was."""
    since, arrived = time.monotonic(), -1
    while not failed():
        status = warehouse.status()
        behind = status.cn - min(view.cn or 0 for view in status.views)
        writers.allowed = writers.committed + AHEAD - behind if behind < AHEAD else 0
        if behind or status.cn != arrived or not writers.done:
            since, arrived = time.monotonic(), status.cn
        elif time.monotonic() - since > CALM:
            break
        time.sleep(0.05)
    return since


def _seen(warehouse: Warehouse, algorithm: str, recording: Recording, seconds: float) -> Seen:
    history = warehouse.recorded(recording)
    return Seen(
        algorithm,
        promised(kind_of(algorithm)),
        judge(history).level,
        len(history.transactions),
        len(history.states) - 1,
        recording.lookups,
        seconds,
    )


def caught(attempt: Callable[[int], Seen]) -> Seen:
    """Conventional maintenance goes wrong when a deletion meets an open query: try until it did."""
    for number in range(ATTEMPTS):
        seen = attempt(number)
        if seen.as_promised:
            break
    return seen


def main() -> None:
    """Run every algorithm in turn, write the report, say how it went."""
    parser = argparse.ArgumentParser(prog="make live-levels", description=__doc__.splitlines()[0])
    parser.add_argument("--transactions", type=int, default=30, help="for each algorithm")
    parser.add_argument("--only", action="append", metavar="ALGORITHM", help="leave others out")
    parser.add_argument("--report", type=Path, default=REPORT)
    arguments = parser.parse_args()
    with ExitStack() as running:
        folder = Path(tempfile.mkdtemp(prefix="steadyview-levels-"))
        running.callback(shutil.rmtree, folder, ignore_errors=True)
        server = running.enter_context(embedded_postgres(folder / "postgres"))
        spark = running.enter_context(_spark())
        found = []
        for algorithm in arguments.only or ALGORITHMS:
            found.append(_in_turn(server, folder, algorithm, arguments.transactions, spark))
            print(_line(found[-1]), flush=True)
    arguments.report.parent.mkdir(parents=True, exist_ok=True)
    arguments.report.write_text(report(found, arguments.transactions))
    print(f"written: {arguments.report}")
    sys.exit(0 if all(seen.as_promised for seen in found) else 1)


def _spark() -> SparkSession:
    """One Spark for all: a start takes longer than most algorithms."""
    quiet = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
    spark = SparkSession.builder.master("local[*]").config(map=quiet).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def _in_turn(
    server: EmbeddedPostgres, folder: Path, algorithm: str, transactions: int, spark: SparkSession
) -> Seen:
    def attempt(number: int) -> Seen:
        name = f"{algorithm.replace('-', '_').replace(':', '_')}_{number}"
        place = folder / name
        place.mkdir()
        databases = Databases(server, place, name)
        (seen,) = levels(databases, place / "project", [algorithm], transactions, spark, number)
        return seen

    return caught(attempt) if algorithm == "conventional" else attempt(0)


def _line(seen: Seen) -> str:
    n = max(seen.transactions, 1)
    told = "" if seen.as_promised else "  NOT AS PROMISED"
    return (
        f"| {seen.algorithm} | {seen.promise} | {seen.level} | {seen.transactions} | {seen.states} "
        f"| {seen.lookups / n:.1f} | {seen.seconds / n:.2f} s |{told}"
    )


def report(found: Sequence[Seen], transactions: int) -> str:
    """The page with the table."""
    lines = "\n".join(_line(seen) for seen in found)
    heads = ("algorithm", "promised", "seen", "transactions", "states", "lookups per transaction")
    head = " | ".join([*heads, "wall time per transaction"])
    return f"""# Levels on live databases

`make live-levels`: two PostgreSQL databases and a SQLite file, one view kept by each algorithm in
turn. Four concurrent writers commit {transactions} transactions in all, a fifth lets rows come
whose partners go while they are being asked for. What the view showed was recorded (one state per
install; for `batched-sweep`, one per commit that changed it) and judged as `steadyview
check-history` does. Transactions are those that touched the view's tables; promised is the level
for source-local transactions. `eca` and `eca-key` keep a view over three tables of one database,
the others one over three databases.

`conventional` promises nothing, and was run until its last state was wrong. `eca-key` is as
published, with its known error: it promises nothing either.

| {head} |
|---|---|---|---|---|---|---|
{lines}

Wall time is that of the whole run divided by the transactions: it includes waiting for the writers,
who are never more than {AHEAD} transactions ahead of the view.
"""


if __name__ == "__main__":
    main()
