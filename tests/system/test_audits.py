"""What leaves no other trace is found by the audit; what it cannot look into is told."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

import steadyview
from steadyview.algebra import Bag
from steadyview.cli.app import app
from steadyview.runtime.warehouse import Warehouse
from tests.system.databases import SqliteFile, write_project
from tests.system.maintained import read
from tests.system.test_edges import execute_without_triggers, running, states, wait_until

DAY = 90_000_000_000
"""A little more, in microseconds."""


@pytest.fixture
def source(tmp_path: Path) -> Iterator[SqliteFile]:
    database = SqliteFile(tmp_path / "s.db")
    database.create("t", "id INTEGER PRIMARY KEY, a INTEGER, b INTEGER")
    yield database
    database.close()


@pytest.fixture
def folder(source: SqliteFile, tmp_path: Path) -> Path:
    views = {"v": "SELECT id, a FROM s.t"}
    return audited(write_project(tmp_path / "project", {"s": source}, views))


def audited(folder: Path) -> Path:
    settings = folder / "steadyview.toml"
    settings.write_text(settings.read_text().replace('"off"', '"daily"'))
    return folder


def a_day_later(folder: Path) -> None:
    """As far as audits are concerned."""
    with closing(sqlite3.connect(folder / "warehouse/catalog.db")) as catalog:
        catalog.execute("UPDATE audits SET at = at - ?", (DAY,))
        catalog.commit()


def delete_unseen(tmp_path: Path) -> None:
    execute_without_triggers(tmp_path / "s.db", "DELETE FROM t WHERE id = 1")


def unaudited(wh: Warehouse) -> list[str]:
    return wh.status().sources[0].unaudited


def test_a_retention_shorter_than_a_day_leaves_the_log_that_the_audit_needs(
    source: SqliteFile, folder: Path, tmp_path: Path, spark: SparkSession
) -> None:
    writer = source.writer()
    writer.execute("INSERT INTO t VALUES (1, 1, 1), (2, 2, 2)")
    with steadyview.open(folder, spark=spark) as wh:
        wh.run_once()
        object.__setattr__(wh.project, "retention", timedelta(microseconds=1))
        for i in (3, 4, 5):
            writer.execute("INSERT INTO t VALUES (?, ?, ?)", i, i, i)
            wh.run_once()
        delete_unseen(tmp_path)
        a_day_later(folder)
        writer.execute("INSERT INTO t VALUES (6, 6, 6)")
        wh.run_once()
        assert states(wh) == {"v": "stopped"}


def test_a_value_that_came_and_went_in_another_column_does_not_void_the_audit(
    source: SqliteFile, folder: Path, tmp_path: Path, spark: SparkSession
) -> None:
    writer = source.writer()
    writer.execute("INSERT INTO t VALUES (1, 1, 1), (2, 2, 2)")
    with steadyview.open(folder, spark=spark) as wh:
        wh.run_once()
        writer.execute("INSERT INTO t VALUES (3, 3, 'bad')")
        writer.execute("UPDATE t SET b = 3 WHERE id = 3")
        a_day_later(folder)
        wh.run_once()
        assert states(wh) == {"v": "active"}, "the rest adds up"
        writer.execute("INSERT INTO t VALUES (4, 4, 'bad')")
        writer.execute("UPDATE t SET b = 4 WHERE id = 4")
        delete_unseen(tmp_path)
        a_day_later(folder)
        wh.run_once()
        assert states(wh) == {"v": "stopped"}


def test_a_value_that_moved_from_one_column_to_another_is_found(
    source: SqliteFile, folder: Path, tmp_path: Path, spark: SparkSession
) -> None:
    source.writer().execute("INSERT INTO t VALUES (1, 5, NULL), (2, 2, 2)")
    with steadyview.open(folder, spark=spark) as wh:
        wh.run_once()
        a_day_later(folder)
        wh.run_once()
        assert states(wh) == {"v": "active"}
        execute_without_triggers(tmp_path / "s.db", "UPDATE t SET a = NULL, b = 5 WHERE id = 1")
        a_day_later(folder)
        wh.run_once()
        assert states(wh) == {"v": "stopped"}


def test_a_bad_value_in_a_column_that_no_view_uses_is_told_and_the_rest_is_audited(
    source: SqliteFile, folder: Path, tmp_path: Path, spark: SparkSession
) -> None:
    source.writer().execute("INSERT INTO t VALUES (1, 1, 'oops'), (2, 2, 2)")
    ran = CliRunner().invoke(app, ["run", "--once", "--project", str(folder)])
    assert ran.exit_code == 0, ran.output
    shown = CliRunner().invoke(app, ["status", "--project", str(folder)])
    assert 'column "b" of "s.t" is not audited' in shown.output
    with steadyview.open(folder, spark=spark) as wh:
        assert len(unaudited(wh)) == 1
        delete_unseen(tmp_path)
        a_day_later(folder)
        wh.run_once()
        assert states(wh) == {"v": "stopped"}
        assert unaudited(wh) == [], "the bad value went with its row"


def test_an_audit_that_could_not_be_made_is_not_begun_again_at_once(
    source: SqliteFile, folder: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    source.writer().execute("INSERT INTO t VALUES (1, 1, 'oops')")
    from steadyview.runtime.auditing import Auditor

    tried: list[str] = []
    read_whole = Auditor._read

    def counted(self: Auditor, *arguments: object) -> object:
        tried.append("read")
        return read_whole(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Auditor, "_read", counted)
    with steadyview.open(folder, spark=spark) as wh, running(wh):
        wait_until(lambda: tried, "an audit")
        wait_until(lambda: unaudited(wh), "what is not audited")
        assert wh._keeping is not None
        assert wh._keeping._auditor.due(["s"]) == []


def test_a_loss_that_was_told_is_not_found_again_by_the_audit(
    source: SqliteFile, folder: Path, spark: SparkSession
) -> None:
    writer = source.writer()
    writer.execute("INSERT INTO t VALUES (1, 1, 1), (2, 2, 2)")
    with steadyview.open(folder, spark=spark) as wh:
        wh.run_once()
        writer.execute("DROP TABLE t")
        writer.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER, b INTEGER)")
        writer.execute("INSERT INTO t VALUES (7, 7, 7)")
        wh.run_once()
        assert states(wh) == {"v": "stopped"}
        wh.rebuild("v")
        wh.run_once()
        a_day_later(folder)
        wh.run_once()
        assert states(wh) == {"v": "active"}, "built after the loss"


def test_a_table_that_was_out_of_the_project_file_is_audited_from_its_return_on(
    source: SqliteFile, folder: Path, tmp_path: Path, spark: SparkSession
) -> None:
    source.create("u", "id INTEGER PRIMARY KEY")
    writer = source.writer()
    writer.execute("INSERT INTO t VALUES (1, 1, 1)")

    def project(*tables: str) -> None:
        source.tables[:] = tables
        views = {"v": "SELECT id, a FROM s.t", "w": "SELECT id FROM s.u"}
        (folder / "views/v.sql").unlink(missing_ok=True)
        chosen = {n: sql for n, sql in views.items() if n == "w" or "t" in tables}
        audited(write_project(folder, {"s": source}, chosen))

    for tables in (("t", "u"), ("u",), ("t", "u")):
        project(*tables)
        with steadyview.open(folder, spark=spark) as wh:
            wh.run_once()
            writer.execute("INSERT INTO t (a) VALUES (9)")
            wh.run_once()
            known = {r.name.path[0] for r in wh._catalog.sources.schemas("s")}
            assert known == set(tables)
            logs = [p.name for p in (folder / "warehouse/log").glob("*/*")]
            assert len(logs) == len(tables), "its log is gone with it"
    a_day_later(folder)
    with steadyview.open(folder, spark=spark) as wh:
        wh.run_once()
        assert states(wh) == {"v": "active", "w": "active"}
        assert read(wh, "v") == Bag.of([(1, 1), (2, 9), (3, 9), (4, 9)])
