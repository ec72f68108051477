"""Views served straight from the update log: every record right, whatever befell its managers."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import psutil
import pytest
from pyspark.sql import SparkSession

import steadyview
from steadyview.runtime.store_keeping import StoreKeepers
from steadyview.runtime.warehouse import Warehouse
from tests.conftest import SOAK
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


def stored(cache: Place, views: Iterable[str] = VIEWS) -> dict[str, Rows]:
    """The views as any client of the store reads them."""
    columns = {"grouped": "g, n, c, s, a, d", "chosen": 'x, "the id", g'}
    found = {}
    for view in views:
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


KILLS = 200 if SOAK else 8


def test_killed_before_or_after_any_operation_records_from_the_log_come_right(
    database: SqliteFile, file: Place, tmp_path: Path, spark: SparkSession
) -> None:
    """A process of its own goes on from the log each time, until it is killed."""
    dice = random.Random(11)
    some = {name: VIEWS[name] for name in ("grouped", "chosen", "one")}
    folder = project(tmp_path / "project", database, file, some)
    before = (folder / "steadyview.toml").read_text()
    with steadyview.open(folder, spark=spark) as wh:
        wh.run_once()
        killed = 0
        # the keeper has no store from here on: another process keeps that
        (folder / "steadyview.toml").write_text(before.partition("[stores.cache]")[0])
    with steadyview.open(folder, spark=spark) as keeper:
        for _ in range(KILLS):
            for _ in range(dice.randrange(1, 8)):
                change(database, dice)
            keeper.run_once()
            (folder / "steadyview.toml").write_text(before)
            if dice.random() < 0.2:
                with file.open() as store:
                    store.want(dice.choice([*some]))
            number, when = dice.randrange(1, 20), dice.choice(("before", "after"))
            command = [sys.executable, "-m", "tests.crash.store_driver", str(folder)]
            ended = subprocess.run([*command, str(number), when], check=False)
            assert ended.returncode in (0, -signal.SIGKILL)
            killed += ended.returncode != 0
    with steadyview.open(folder) as wh:
        assert StoreKeepers(wh._parts).now() == []
    wanted = right(database)
    assert stored(file, some) == {name: wanted[name] for name in some}
    assert killed >= KILLS // 2


def test_a_view_that_python_cannot_keep_is_served_from_its_changes_and_told(
    database: SqliteFile, file: Place, tmp_path: Path, spark: SparkSession
) -> None:
    views = {"least": from_log("least", "SELECT g, MIN(x) AS m FROM s.t GROUP BY g")}
    with steadyview.open(project(tmp_path / "p", database, file, views), spark=spark) as wh:
        wh.run_once()
        (status,) = wh.served()
        assert status.way == "change table"
        told = [w for found in wh.check() for w in getattr(found, "warnings", ())]
        assert any("served from its changes, not straight from the log" in w for w in told)
        assert "not from the log, as asked" in wh.explain("least").text


def test_a_log_that_does_not_reach_back_and_another_past_are_not_gone_on_with(
    database: SqliteFile, file: Place, tmp_path: Path, spark: SparkSession
) -> None:
    dice = random.Random(5)
    some = {"one": VIEWS["one"]}
    with steadyview.open(project(tmp_path / "p", database, file, some), spark=spark) as wh:
        wh.run_once()
        old = Path(file.settings["path"]).read_bytes()
        for _ in range(30):
            change(database, dice)
        wh.run_once()
        Path(file.settings["path"]).write_bytes(old)
        Path(file.settings["path"] + "-wal").unlink(missing_ok=True)
        wh._catalog.commits.forget_before(wh._catalog.commits.last_cn())
        assert StoreKeepers(wh._parts).now() == []
        assert "not kept any more" in str(wh.served()[0].rebuilt)
        assert stored(file, some)["one"] == right(database)["one"]
        with file.open() as store:
            (view,) = store.views()
            assert view.records is not None
            stream = next(s for s in store.positions(view.records) if "/" in s)
            store.move(view.records, stream, 10_000, 1)
        (trouble,) = StoreKeepers(wh._parts).now()
        assert "another past" in str(trouble.error)
