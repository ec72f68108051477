"""Views served straight from the update log: every record right, whatever befell its managers."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import psutil
import pytest
from pyspark.sql import SparkSession

import steadyview
from steadyview.runtime.warehouse import Warehouse
from tests.crash.running import Running
from tests.serving.stores import Place, place
from tests.system.databases import SqliteFile
from tests.system.test_served_views import project

LOG = ", 'steadyview.serve.from' = 'log'"
GROUPED = (
    "SELECT g, COUNT(*) AS n, COUNT(x) AS c, SUM(x) AS s, AVG(x) AS a, SUM(d) AS d"
    " FROM s.t WHERE x > 1 OR x IS NULL GROUP BY g"
)


def from_log(name: str, select: str, key: str | None = None) -> str:
    keyed = f", 'steadyview.serve.key' = '{key}'" if key else ""
    properties = f"'steadyview.serve' = 'cache'{keyed}{LOG}"
    return f"CREATE MATERIALIZED VIEW {name} TBLPROPERTIES ({properties}) AS {select}"


VIEWS = {
    "grouped": from_log("grouped", GROUPED),
    "chosen": from_log("chosen", "SELECT x, id AS `the id`, g FROM s.t WHERE g <> 'a'", "the id"),
    "values": from_log("values", "SELECT DISTINCT g FROM s.t", "g"),
    "either": from_log("either", "SELECT g FROM s.t UNION SELECT h FROM s.u", "g"),
    "both": from_log("both", "SELECT g FROM s.t INTERSECT SELECT h FROM s.u", "g"),
    "one": from_log("one", "SELECT g FROM s.t EXCEPT SELECT h FROM s.u WHERE id > 2", "g"),
}
Rows = Counter[tuple[Any, ...]]


@pytest.fixture
def database(tmp_path: Path) -> Iterator[SqliteFile]:
    made = SqliteFile(tmp_path / "s.db")
    made.create("t", "id INTEGER PRIMARY KEY, g TEXT, x INTEGER, d DECIMAL(10,2)")
    made.create("u", "id INTEGER PRIMARY KEY, h TEXT")
    made.writer().execute("INSERT INTO t VALUES (1, 'a', 5, 1.5), (2, 'b', NULL, NULL)")
    made.writer().execute("INSERT INTO u VALUES (1, 'a'), (3, 'ü ''c''')")
    yield made
    made.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def cache(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    with place(request.param, tmp_path) as found:
        yield found


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Place]:
    with place("sqlite", tmp_path) as found:
        yield found


def change(database: SqliteFile, dice: random.Random) -> None:
    """One transaction, now and then of several statements."""
    with database.writer().transaction() as writer:
        for _ in range(dice.choice((1, 1, 1, 4))):
            g = dice.choice(("'a'", "'b'", "'ü ''c'''", "NULL"))
            i, x = dice.randrange(8), dice.choice(("NULL", "0", "2", "3"))
            d = dice.choice(("NULL", "1.25", "-3.50"))
            writer.execute(
                dice.choice(
                    (
                        f"INSERT INTO t VALUES ({i}, {g}, {x}, {d})"
                        f" ON CONFLICT DO UPDATE SET g = {g}, x = {x}, d = {d}",
                        f"DELETE FROM t WHERE id = {i}",
                        f"UPDATE t SET g = {g} WHERE id > {i}",
                        f"UPDATE t SET x = x + 1 WHERE id = {i}",
                        f"INSERT INTO u VALUES ({i}, {g}) ON CONFLICT DO UPDATE SET h = {g}",
                        f"DELETE FROM u WHERE id = {i}",
                    )
                )
            )


def right(database: SqliteFile) -> dict[str, Rows]:
    """The views by the source's own SQL: nothing of ours has part in it."""
    ask = database.writer().execute
    cents = "SUM(CAST(ROUND(d * 100) AS INTEGER))"
    grouped = ask(
        f"SELECT g, COUNT(*), COUNT(x), SUM(x), AVG(x), {cents} FROM t"
        " WHERE x > 1 OR x IS NULL GROUP BY g"
    )
    texts = {
        "chosen": "SELECT x, id, g FROM t WHERE g <> 'a'",
        "values": "SELECT DISTINCT g FROM t",
        "either": "SELECT g FROM t UNION SELECT h FROM u",
        "both": "SELECT g FROM t INTERSECT SELECT h FROM u",
        "one": "SELECT g FROM t EXCEPT SELECT h FROM u WHERE id > 2",
    }
    exact = [(*r[:5], None if r[5] is None else Decimal(r[5]) / 100) for r in grouped]
    return {"grouped": Counter(exact), **{v: Counter(ask(q)) for v, q in texts.items()}}


def stored(cache: Place) -> dict[str, Rows]:
    """The views as any client of the store reads them."""
    columns = {"grouped": "g, n, c, s, a, d", "chosen": 'x, "the id", g'}
    found = {}
    for view in VIEWS:
        rows = cache.sql(f'SELECT {columns.get(view, "g")} FROM "{view}"')
        if view == "grouped":
            rows = [(*r[:5], None if r[5] is None else Decimal(r[5])) for r in rows]
        found[view] = Counter(rows)
    return found


def until(what: Callable[[], bool], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it does not come"
        time.sleep(0.05)


def kept_right(cache: Place, database: SqliteFile) -> None:
    """The store comes to what the source has."""
    wanted = right(database)
    try:
        until(lambda: stored(cache) == wanted)
    except AssertionError:
        assert stored(cache) == wanted


def all_served(wh: Warehouse) -> bool:
    found = {one.view: one for one in wh.served()}
    return all(view in found and found[view].state == "serving" for view in VIEWS)


def workers_of_managers() -> list[psutil.Process]:
    """Python workers of Spark's that have a store or the catalog open: they are managers."""
    found = []
    for process in psutil.Process().children(recursive=True):
        try:
            command = " ".join(process.cmdline())
            if "pyspark" in command and any("catalog.db" in f.path for f in process.open_files()):
                found.append(process)
        except psutil.Error:
            continue
    return found


def test_every_record_is_right_by_managers_that_are_killed_under_load(
    database: SqliteFile, cache: Place, tmp_path: Path, spark: SparkSession
) -> None:
    dice = random.Random(7)
    folder = project(tmp_path / "project", database, cache, VIEWS)
    killed = 0
    with steadyview.open(folder, spark=spark) as wh, Running(wh):
        until(lambda: all_served(wh))
        for number in range(60):
            change(database, dice)
            if number % 20 == 10:
                until(lambda: bool(workers_of_managers()))
                for worker in workers_of_managers():
                    os.kill(worker.pid, signal.SIGKILL)
                    killed += 1
        kept_right(cache, database)
        assert killed >= 3
        record = wh.store("cache").get("chosen", 3)
        there = right(database)["chosen"]
        assert (record is not None) == any(row[1] == 3 for row in there)
        until(lambda: all(one.behind == 0 for one in wh.served()))
        assert all(verdict.equal for verdict in wh.verify_served())
    with steadyview.open(folder, spark=spark) as wh:
        for _ in range(40):
            change(database, dice)
        wh.run_once()
        assert stored(cache) == right(database)
