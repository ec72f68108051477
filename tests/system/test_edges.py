"""What happens at a source behind our back is told, stays told, and can be mended by a command."""

from __future__ import annotations

import _sqlite3
import ctypes
import shutil
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

import steadyview
from steadyview.algebra import Bag
from steadyview.cli.app import app
from steadyview.errors import (
    ConfigError,
    OutsideRetention,
    QueryRefused,
    SteadyviewError,
    StorageDamaged,
)
from steadyview.runtime.remote import Wanted
from steadyview.runtime.status import ViewStatus
from steadyview.runtime.warehouse import Warehouse
from tests.system.databases import PostgresDatabase, SqliteFile, write_project
from tests.system.maintained import read

Either = PostgresDatabase | SqliteFile
VIEWS = {
    "counted": "SELECT COUNT(*) AS n FROM s.r",
    "plain": "SELECT x, y FROM s.r",
    "other": "SELECT x FROM o.t",
}


def view_of(wh: Warehouse, name: str) -> ViewStatus:
    return {v.name: v for v in wh.status().views}[name]


def states(wh: Warehouse) -> dict[str, str]:
    return {v.name: v.state for v in wh.status().views}


@pytest.fixture
def other(tmp_path: Path) -> Iterator[SqliteFile]:
    """A source that nothing happens to."""
    database = SqliteFile(tmp_path / "o.db")
    database.create("t", "x INTEGER PRIMARY KEY")
    yield database
    database.close()


@pytest.fixture(params=["postgresql", "sqlite"])
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Either]:
    sqlite = request.param == "sqlite"
    database: Either = SqliteFile(tmp_path / "s.db") if sqlite else PostgresDatabase()
    database.create("r", f"x {database.integer} PRIMARY KEY, y {database.integer}")
    database.writer().execute("INSERT INTO r VALUES (1, 10), (2, 20), (3, 30)")
    yield database
    database.close()


@contextmanager
def running(wh: Warehouse) -> Iterator[None]:
    """`run` in a thread of this process."""
    stop = threading.Event()
    failed: list[BaseException] = []

    def work() -> None:
        try:
            wh.run(stop)
        except BaseException as error:  # noqa: BLE001
            failed.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
    assert not failed, failed


def wait_until(condition, what: str) -> None:
    pause = threading.Event()
    for _ in range(1200):
        if condition():
            return
        pause.wait(0.1)
    raise AssertionError(f"never came: {what}")


def emptied(source: Either) -> None:
    """The relation is lost: no view can know it from the stream alone."""
    writer = source.writer()
    if isinstance(source, PostgresDatabase):
        writer.execute("TRUNCATE r")
    else:
        writer.execute("DROP TABLE r")
        writer.execute("CREATE TABLE r (x INTEGER PRIMARY KEY, y INTEGER)")
    writer.execute("INSERT INTO r VALUES (7, 70)")


def test_a_lost_relation_stops_every_view_that_reads_it_for_good_until_it_is_read_anew(
    source: Either, other: SqliteFile, tmp_path: Path, spark: SparkSession
) -> None:
    folder = write_project(tmp_path / "project", {"s": source, "o": other}, VIEWS)
    with steadyview.open(folder, spark=spark) as wh:
        wh.run_once()
        emptied(source)
        wh.run_once()
        assert states(wh) == {"counted": "stopped", "plain": "stopped", "other": "active"}
        reason = view_of(wh, "counted").error or ""
        assert '"s.' in reason
    with steadyview.open(folder, spark=spark) as wh:
        other.writer().execute("INSERT INTO t VALUES (5)")
        wh.run_once()
        assert states(wh) == {"counted": "stopped", "plain": "stopped", "other": "active"}
        assert (view_of(wh, "counted").error, read(wh, "counted")) == (reason, Bag.of([(3,)]))
        wh.rebuild("counted")
        assert states(wh)["counted"] == "stopped", "its rows are still the old ones"
        wh.run_once()
        assert states(wh) == {"counted": "active", "plain": "stopped", "other": "active"}
        assert read(wh, "counted") == Bag.of([(1,)])
        assert wh.resnapshot("s")
        assert view_of(wh, "plain").state == view_of(wh, "counted").state == "stopped"
        assert read(wh, "counted") == Bag.of([(1,)]), "until the new one is there"
        wh.run_once()
        assert set(states(wh).values()) == {"active"}
        assert read(wh, "plain") == Bag.of([(7, 70)])
        source.writer().execute("INSERT INTO r VALUES (8, 80)")
        wh.run_once()
        assert read(wh, "plain") == Bag.of([(7, 70), (8, 80)])
        assert all(v.equal for v in wh.verify())


def test_a_running_run_reads_a_source_anew_while_the_others_go_on(
    source: Either, other: SqliteFile, tmp_path: Path, spark: SparkSession
) -> None:
    folder = write_project(tmp_path / "project", {"s": source, "o": other}, VIEWS)
    with steadyview.open(folder, spark=spark) as wh, running(wh):
        wait_until(lambda: set(states(wh).values()) == {"active"}, "first states")
        emptied(source)
        wait_until(lambda: states(wh)["counted"] == "stopped", "the loss")
        with steadyview.open(folder) as outside:
            assert outside.resnapshot("s")
            with pytest.raises(ConfigError, match='no view "nothing"'):
                outside.rebuild("nothing")
        other.writer().execute("INSERT INTO t VALUES (5)")
        wait_until(lambda: set(states(wh).values()) == {"active"}, "new first states")
        wait_until(lambda: read(wh, "other") == Bag.of([(5,)]), "the other view's news")
        assert read(wh, "counted") == Bag.of([(1,)])
        assert all(v.equal for v in wh.verify())


def test_a_restored_sqlite_file_is_refused_until_it_is_read_anew(
    other: SqliteFile, tmp_path: Path, spark: SparkSession
) -> None:
    source = SqliteFile(tmp_path / "s.db")
    source.create("r", "x INTEGER PRIMARY KEY, y INTEGER")
    writer = source.writer()
    writer.execute("INSERT INTO r VALUES (1, 10), (2, 20)")
    folder = write_project(tmp_path / "project", {"s": source, "o": other}, VIEWS)
    with steadyview.open(folder, spark=spark) as wh:
        wh.run_once()
        with sqlite3.connect(tmp_path / "backup.db") as backup:
            sqlite3.connect(tmp_path / "s.db").backup(backup)
        writer.execute("INSERT INTO r VALUES (3, 30), (4, 40)")
        wh.run_once()
        sqlite3.connect(tmp_path / "backup.db").backup(sqlite3.connect(tmp_path / "s.db"))
        again = source.writer()
        for x in (5, 6, 7, 8):
            again.execute("INSERT INTO r VALUES (?, ?)", x, 10 * x)
        for _ in range(2):
            with pytest.raises(SteadyviewError, match="resnapshot"):
                wh.run_once()
        assert read(wh, "plain") == Bag.of([(1, 10), (2, 20), (3, 30), (4, 40)])
        wh.resnapshot("s")
        wh.run_once()
        assert read(wh, "plain") == Bag.of([(1, 10), (2, 20)] + [(x, 10 * x) for x in (5, 6, 7, 8)])
        assert all(v.equal for v in wh.verify())
    source.close()


def test_a_warehouse_without_its_catalog_and_a_catalog_without_its_files_are_told(
    other: SqliteFile, tmp_path: Path, spark: SparkSession
) -> None:
    folder = write_project(tmp_path / "project", {"o": other}, {"other": VIEWS["other"]})
    warehouse = folder / "warehouse"
    with steadyview.open(folder, spark=spark) as wh:
        wh.run_once()
        other.writer().execute("INSERT INTO t VALUES (5)")
        wh.run_once()
    shutil.copytree(warehouse, tmp_path / "kept")
    for file in warehouse.glob("catalog.db*"):
        file.unlink()
    for _ in range(2):
        refused = pytest.raises(StorageDamaged, match="no catalog")
        with steadyview.open(folder, spark=spark) as wh, refused:
            wh.run_once()
    shutil.rmtree(warehouse)
    shutil.copytree(tmp_path / "kept", warehouse)
    shutil.rmtree(warehouse / "nodes")
    with steadyview.open(folder, spark=spark) as wh:
        wh.run_once()
        assert view_of(wh, "other").state == "stopped"
        assert "rebuild" in (view_of(wh, "other").error or "")
        wh.rebuild("other")
        wh.run_once()
        assert read(wh, "other") == Bag.of([(5,)])


def test_a_source_that_left_the_project_file_is_named_and_can_be_removed(
    other: SqliteFile, tmp_path: Path, spark: SparkSession
) -> None:
    second = SqliteFile(tmp_path / "s.db")
    second.create("r", "x INTEGER PRIMARY KEY, y INTEGER")
    folder = write_project(tmp_path / "project", {"s": second, "o": other}, VIEWS)
    with steadyview.open(folder, spark=spark) as wh:
        wh.run_once()
    write_project(folder, {"o": other}, {"other": VIEWS["other"]})
    for name in ("counted", "plain"):
        (folder / f"views/{name}.sql").unlink()
    other.writer().execute("INSERT INTO t VALUES (5)")
    ran = CliRunner().invoke(app, ["run", "--once", "--project", str(folder)])
    assert ran.exit_code == 0, ran.output
    assert 'source "s" is no longer in steadyview.toml' in ran.output
    with steadyview.open(folder, spark=spark) as wh, running(wh):
        other.writer().execute("INSERT INTO t VALUES (6)")
        wait_until(lambda: read(wh, "other") == Bag.of([(5,), (6,)]), "the other source's news")
        told = {s.name: s.error or "" for s in wh.status().sources}
        assert "source remove s" in told["s"]
    with steadyview.open(folder, spark=spark) as wh:
        named = [c for c in wh.check() if c.name == "s"]
        assert named
        assert "no longer in steadyview.toml" in (named[0].message or "")
        gone = {s.name: s.error or "" for s in wh.status().sources}["s"]
        assert "no longer in steadyview.toml" in gone
        assert wh.remove_source("s")
        assert [c for c in wh.check() if c.name == "s"] == []
    second.close()


def execute_without_triggers(file: Path, statement: str) -> None:
    """What sqlite3_db_config allows to any program; Python's module knows it from 3.12 on."""
    library = ctypes.CDLL(_sqlite3.__file__)
    database = ctypes.c_void_p()
    assert library.sqlite3_open(str(file).encode(), ctypes.byref(database)) == 0
    enable_trigger, off = 1003, 0
    assert library.sqlite3_db_config(database, enable_trigger, off, None) == 0
    assert library.sqlite3_exec(database, statement.encode(), None, None, None) == 0
    library.sqlite3_close(database)


def test_an_audit_finds_rows_that_passed_the_triggers_by(
    other: SqliteFile, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = SqliteFile(tmp_path / "s.db")
    source.create("r", "x INTEGER PRIMARY KEY, y INTEGER")
    source.writer().execute("INSERT INTO r VALUES (1, 10), (2, 20)")
    folder = write_project(tmp_path / "project", {"s": source, "o": other}, VIEWS)
    settings = folder / "steadyview.toml"
    settings.write_text(settings.read_text().replace('"off"', '"daily"'))
    with steadyview.open(folder, spark=spark) as wh:
        wh.run_once()
        source.writer().execute("INSERT INTO r VALUES (3, 30), (4, NULL)")
        source.writer().execute("DELETE FROM r WHERE x = 1")
        monkeypatch.setattr("steadyview.runtime.auditing.EVERY", 0)
        wh.run_once()
        assert set(states(wh).values()) == {"active"}, "the log leads from audit to audit"
        execute_without_triggers(tmp_path / "s.db", "UPDATE r SET y = 99 WHERE x = 3")
        wh.run_once()
        assert states(wh) == {"counted": "stopped", "plain": "stopped", "other": "active"}
        assert "not all known" in (view_of(wh, "plain").error or "")
        wh.rebuild("plain")
        wh.run_once()
        assert read(wh, "plain") == Bag.of([(2, 20), (3, 99), (4, None)])
    source.close()


def test_a_query_is_answered_by_the_process_that_keeps_the_views(
    other: SqliteFile, tmp_path: Path, spark: SparkSession
) -> None:
    folder = write_project(tmp_path / "project", {"o": other}, {"other": VIEWS["other"]})
    other.writer().execute("INSERT INTO t VALUES (1), (2), (3)")
    with steadyview.open(folder, spark=spark) as wh, running(wh):
        wait_until(lambda: set(states(wh).values()) == {"active"}, "the first state")
        with steadyview.open(folder) as outside:
            asked = Wanted("SELECT x FROM other ORDER BY x DESC", max_rows=2)
            found = outside.told(asked)
            assert (found.table.to_pydict(), found.facts.cut) == ({"x": [3, 2]}, True)
            with pytest.raises(QueryRefused):
                outside.told(Wanted("SELECT * FROM text.`/etc/hostname`"))
            with pytest.raises(OutsideRetention):
                outside.told(Wanted("SELECT * FROM other", at=99))
            assert outside._parts._spark is None, "no Spark was started for it"
