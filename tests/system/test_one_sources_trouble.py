"""What is wrong with one source, or one table of it, concerns the views that read it."""

from __future__ import annotations

import shutil
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

import steadyview
from steadyview.algebra import Bag
from steadyview.cli.app import app
from steadyview.errors import SourceDiverged, SteadyviewError, ViewStopped
from steadyview.runtime import captures
from tests.system.databases import PostgresDatabase, SqliteFile, write_project
from tests.system.maintained import read
from tests.system.test_edges import Either, running, states, view_of, wait_until

VIEWS = {"v": "SELECT x FROM s.t", "w": "SELECT x FROM s.u"}


@pytest.fixture(params=["postgresql", "sqlite"])
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Either]:
    sqlite = request.param == "sqlite"
    database: Either = SqliteFile(tmp_path / "s.db") if sqlite else PostgresDatabase()
    for table in ("t", "u"):
        database.create(table, f"x {database.integer} PRIMARY KEY")
        database.writer().execute(f"INSERT INTO {table} VALUES (1)")
    yield database
    database.close()


def taken_out(source: Either, folder: Path, table: str, view: str) -> None:
    source.tables.remove(table)
    (folder / f"views/{view}.sql").unlink()
    write_project(folder, {"s": source}, {})


def test_a_dropped_table_stops_its_views_and_no_other(
    source: Either, tmp_path: Path, spark: SparkSession
) -> None:
    folder = write_project(tmp_path / "project", {"s": source}, VIEWS)
    writer = source.writer()
    with steadyview.open(folder, spark=spark) as wh:
        wh.run_once()
        writer.execute("DROP TABLE t")
        for x in (2, 3):
            writer.execute("INSERT INTO u VALUES (?)", x)
            with pytest.raises(SteadyviewError, match='take it out of "tables"'):
                wh.run_once()
            assert states(wh) == {"v": "stopped", "w": "active"}
            assert read(wh, "w") == Bag.of([(i,) for i in range(1, x + 1)])
    taken_out(source, folder, "t", "v")
    with steadyview.open(folder, spark=spark) as wh:
        writer.execute("INSERT INTO u VALUES (4)")
        wh.run_once()
        assert read(wh, "w") == Bag.of([(1,), (2,), (3,), (4,)])
        assert [r.name.path[-1] for r in wh._catalog.sources.schemas("s")] == ["u"]


def test_a_table_dropped_under_a_running_run_stops_its_views_and_no_other(
    source: Either, tmp_path: Path, spark: SparkSession
) -> None:
    folder = write_project(tmp_path / "project", {"s": source}, VIEWS)
    writer = source.writer()
    with steadyview.open(folder, spark=spark) as wh, running(wh):
        wait_until(lambda: set(states(wh).values()) == {"active"}, "first states")
        writer.execute("DROP TABLE t")
        wait_until(lambda: states(wh)["v"] == "stopped", "the loss")
        for x in (2, 3):
            writer.execute("INSERT INTO u VALUES (?)", x)
            wait_until(lambda n=x: len(read(wh, "w")) == n, "the other view's news")
        assert 't" does not exist' in (wh.status().sources[0].error or "")


def test_a_defect_of_one_table_stops_its_views_and_no_other(
    tmp_path: Path, spark: SparkSession
) -> None:
    source = PostgresDatabase()
    for table in ("t", "u"):
        source.create(table, "x bigint PRIMARY KEY")
    folder = write_project(tmp_path / "project", {"s": source}, VIEWS)
    writer = source.writer()
    with steadyview.open(folder, spark=spark) as wh:
        wh.run_once()
        writer.execute("ALTER TABLE t REPLICA IDENTITY DEFAULT")
        for x in (1, 2):
            writer.execute("INSERT INTO u VALUES (?)", x)
            with pytest.raises(SteadyviewError, match="REPLICA IDENTITY FULL"):
                wh.run_once()
            assert len(read(wh, "w")) == x
        assert states(wh) == {"v": "stopped", "w": "active"}
        writer.execute("ALTER TABLE t REPLICA IDENTITY FULL")
        writer.execute("INSERT INTO t VALUES (5)")
        wh.rebuild("v")
        wh.run_once()
        assert (states(wh)["v"], read(wh, "v")) == ("active", Bag.of([(5,)]))
    source.close()


def test_a_table_that_is_not_there_waits_for_itself_alone(
    source: Either, tmp_path: Path, spark: SparkSession
) -> None:
    folder = write_project(tmp_path / "project", {"s": source}, VIEWS)
    writer = source.writer()
    with steadyview.open(folder, spark=spark) as wh:
        wh.run_once()
    writer.execute("ALTER TABLE t RENAME TO other")
    source.tables.append("nothing")
    write_project(folder, {"s": source}, {})
    with steadyview.open(folder, spark=spark) as wh:
        writer.execute("INSERT INTO u VALUES (2)")
        with pytest.raises(SteadyviewError, match='take it out of "tables"'):
            wh.run_once()
        assert read(wh, "w") == Bag.of([(1,), (2,)])
        for name in states(wh):
            if name == "v":
                with pytest.raises(ViewStopped):
                    wh.query_at(f"SELECT * FROM {name}", strict=True)


def test_a_source_with_another_past_stops_its_views_and_keeps_nobody_else_back(
    tmp_path: Path, spark: SparkSession
) -> None:
    files = {name: SqliteFile(tmp_path / f"{name}.db") for name in ("s", "o")}
    for name, table in (("s", "t"), ("o", "u")):
        files[name].create(table, "x INTEGER PRIMARY KEY")
    views = {"v": "SELECT x FROM s.t", "w": "SELECT x FROM o.u"}
    folder = write_project(tmp_path / "project", files, views)
    with steadyview.open(folder, spark=spark) as wh:
        wh.run_once()
        sqlite3.connect(tmp_path / "s.db").backup(sqlite3.connect(tmp_path / "copy.db"))
        files["s"].writer().execute("INSERT INTO t VALUES (1)")
        wh.run_once()
        kept = tmp_path / "kept.db"
        sqlite3.connect(tmp_path / "s.db").backup(sqlite3.connect(kept))
        sqlite3.connect(tmp_path / "copy.db").backup(sqlite3.connect(tmp_path / "s.db"))
        for x in (7, 8):
            files["s"].writer().execute("INSERT INTO t VALUES (?)", x)
        files["o"].writer().execute("INSERT INTO u VALUES (5)")
        with pytest.raises(SourceDiverged):
            wh.run_once()
        assert read(wh, "w") == Bag.of([(5,)])
        assert states(wh) == {"v": "stopped", "w": "active"}
        assert "resnapshot" in (view_of(wh, "v").error or "")
        with pytest.raises(ViewStopped):
            wh.query_at("SELECT * FROM v", strict=True)
    ran = CliRunner().invoke(app, ["run", "--once", "--project", str(folder)])
    assert (ran.exit_code, "resnapshot" in ran.output) == (2, True)
    sqlite3.connect(kept).backup(sqlite3.connect(tmp_path / "s.db"))
    with steadyview.open(folder, spark=spark) as wh:
        files["s"].writer().execute("INSERT INTO t VALUES (2)")
        wh.run_once()
        assert states(wh) == {"v": "active", "w": "active"}, "what was captured is there again"
        assert read(wh, "v") == Bag.of([(1,), (2,)])
    for file in files.values():
        file.close()


def test_a_view_whose_files_go_under_a_running_run_stops_alone(
    tmp_path: Path, spark: SparkSession
) -> None:
    source = SqliteFile(tmp_path / "s.db")
    for table in ("t", "u"):
        source.create(table, "x INTEGER PRIMARY KEY")
    folder = write_project(tmp_path / "project", {"s": source}, VIEWS)
    writer = source.writer()
    with steadyview.open(folder, spark=spark) as wh, running(wh):
        wait_until(lambda: set(states(wh).values()) == {"active"}, "first states")
        (own,) = (folder / "warehouse/nodes").glob("v-*")
        shutil.move(own, tmp_path / "away")
        for x in (1, 2, 3):
            writer.execute("INSERT INTO t VALUES (?)", x)
            writer.execute("INSERT INTO u VALUES (?)", x)
        wait_until(lambda: len(read(wh, "w")) == 3, "the other view's news")
        wait_until(lambda: states(wh)["v"] == "stopped", "the end of the one")
        assert "view rebuild v" in (view_of(wh, "v").error or "")
    source.close()


def test_a_first_state_does_not_rest_on_what_the_stream_lost_since_it_was_frozen(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = SqliteFile(tmp_path / "s.db")
    source.create("t", "x INTEGER PRIMARY KEY")
    writer = source.writer()
    writer.execute("INSERT INTO t VALUES (1), (2)")
    folder = write_project(tmp_path / "project", {"s": source}, {"v": VIEWS["v"]})
    waited, done = captures.Captures.wait_for, threading.Event()

    with steadyview.open(folder, spark=spark) as wh:

        def late(self: captures.Captures, name: str, position: object) -> None:
            """The sources are frozen: a row goes unseen, and somebody else finds that out."""
            waited(self, name, position)  # type: ignore[arg-type]
            if not done.is_set():
                done.set()
                find = "SELECT name, sql FROM sqlite_master WHERE name LIKE '%after_delete'"
                ((trigger, sql),) = writer.execute(find)
                writer.execute(f"DROP TRIGGER {trigger}")
                writer.execute("DELETE FROM t WHERE x = 1")
                writer.execute(sql)
                wait_until(lambda: wh._catalog.sources.losses(), "the stream's own sign of it")
                relations = wh._catalog.sources.schemas("s")
                wh._parts.sources["s"].prepare(relations)
                now = wh._parts.sources["s"].schemas()
                wh._catalog.sources.renew_evidence({r.name: r.evidence for r in now})

        monkeypatch.setattr(captures.Captures, "wait_for", late)
        wh.run_once()
        assert done.is_set()
        assert read(wh, "v") == Bag.of([(2,)])
    source.close()


def test_what_was_built_anew_in_vain_leaves_no_folder(tmp_path: Path, spark: SparkSession) -> None:
    source = SqliteFile(tmp_path / "s.db")
    source.create("t", "x INTEGER PRIMARY KEY")
    source.writer().execute("INSERT INTO t VALUES (1)")
    views = {"v": "SELECT 1 DIV x AS y FROM s.t"}
    folder = write_project(tmp_path / "project", {"s": source}, views)
    with steadyview.open(folder, spark=spark) as wh:
        wh.run_once()
        source.writer().execute("INSERT INTO t VALUES (0)")
        for _ in range(2):
            wh.run_once()
            assert states(wh) == {"v": "stopped"}
            assert len(list((folder / "warehouse/nodes").glob("*"))) == 1
    source.close()


def test_a_source_is_not_begun_anew_beside_a_capture_that_does_not_end(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = SqliteFile(tmp_path / "s.db")
    source.create("t", "x INTEGER PRIMARY KEY")
    folder = write_project(tmp_path / "project", {"s": source}, {"v": VIEWS["v"]})
    go_on = threading.Event()
    with steadyview.open(folder, spark=spark) as wh, running(wh):
        wait_until(lambda: states(wh) == {"v": "active"}, "the first state")
        monkeypatch.setattr(captures, "PATIENCE", 0.2)
        flush = captures.Capture._flush
        monkeypatch.setattr(
            captures.Capture, "_flush", lambda self, *a: (go_on.wait(60), flush(self, *a))
        )
        source.writer().execute("INSERT INTO t VALUES (1)")
        threading.Event().wait(1.0)
        with pytest.raises(SteadyviewError, match="did not end"), steadyview.open(folder) as other:
            other.resnapshot("s")
        go_on.set()
    source.close()


def test_a_wish_is_granted_and_batches_go_on_while_an_audit_takes_long(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    from steadyview.runtime.auditing import Auditor, Ended

    source = SqliteFile(tmp_path / "s.db")
    source.create("t", "x INTEGER PRIMARY KEY")
    folder = write_project(tmp_path / "project", {"s": source}, {"v": VIEWS["v"]})
    settings = folder / "steadyview.toml"
    settings.write_text(settings.read_text().replace('"off"', '"daily"'))
    begun, over = threading.Event(), threading.Event()

    def long(self: Auditor, *_: object) -> object:
        begun.set()
        self._ending.wait(60)
        over.wait(60)
        raise Ended

    monkeypatch.setattr(Auditor, "_read", long)
    with steadyview.open(folder, spark=spark) as wh, running(wh):
        wait_until(begun.is_set, "the audit")
        with steadyview.open(folder) as other:
            asked = threading.Thread(target=other.rebuild, args=("v",))
            asked.start()
            source.writer().execute("INSERT INTO t VALUES (1)")
            wait_until(lambda: read(wh, "v") == Bag.of([(1,)]), "a batch beside the audit")
            over.set()
            asked.join()
        assert wh.status().views[0].state == "active"
    source.close()
