"""A view that reads another: it stops with it, is built anew behind it, and agrees with it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import steadyview
from steadyview.algebra import Bag
from steadyview.runtime.warehouse import Warehouse
from steadyview.warehouse.node_statement import Computed
from steadyview.warehouse.shared_statement import SharedStatement
from tests.system.databases import SqliteFile, write_project, write_view
from tests.system.maintained import read

VIEWS = {
    "sums": "SELECT COUNT(*) AS n, SUM(q) AS s FROM quotients",
    "quotients": "SELECT id, 100 DIV v AS q FROM s.t",
    "other": "SELECT id FROM s.t",
}


@pytest.fixture
def database(tmp_path: Path) -> Iterator[SqliteFile]:
    database = SqliteFile(tmp_path / "s.db")
    database.create("t", "id INTEGER, v INTEGER")
    database.writer().execute("INSERT INTO t VALUES (1, 10), (2, 20)")
    yield database
    database.close()


@pytest.fixture
def wh(database: SqliteFile, tmp_path: Path, spark: SparkSession) -> Iterator[Warehouse]:
    folder = write_project(tmp_path / "project", {"s": database}, VIEWS)
    with steadyview.open(folder, spark=spark) as opened:
        opened.run_once()
        yield opened


def states(wh: Warehouse) -> dict[str, str]:
    return {v.name: v.state for v in wh.status().views}


def test_a_view_stops_with_the_one_it_reads_and_both_go_on_once_the_value_is_mended(
    wh: Warehouse, database: SqliteFile
) -> None:
    assert read(wh, "sums") == Bag.of([(2, 15)])
    database.writer().execute("INSERT INTO t VALUES (3, 0)")
    wh.run_once()
    assert states(wh) == {"sums": "stopped", "quotients": "stopped", "other": "active"}
    errors = {v.name: v.error or "" for v in wh.status().views}
    assert 'it reads view "quotients", which is stopped' in errors["sums"]
    assert read(wh, "sums") == Bag.of([(2, 15)])
    database.writer().execute("UPDATE t SET v = 50 WHERE id = 3")
    wh.run_once()
    assert set(states(wh).values()) == {"active"}
    assert read(wh, "sums") == Bag.of([(3, 17)])
    assert all(v.equal for v in wh.verify())


def test_a_view_that_only_sums_another_one_is_computed_by_the_same_statement(
    wh: Warehouse, database: SqliteFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    together: list[list[str]] = []
    computed = SharedStatement.changes

    def seen(self: SharedStatement, after: int, upto: int) -> list[Computed] | None:
        together.append(sorted(s._store.name for s in self._statements))
        return computed(self, after, upto)

    monkeypatch.setattr(SharedStatement, "changes", seen)
    database.writer().execute("UPDATE t SET v = 5 WHERE id = 2")
    wh.run_once()
    assert together == [["other", "quotients", "sums"]]
    assert read(wh, "sums") == Bag.of([(2, 30)])
    assert all(v.equal for v in wh.verify())


def test_a_view_is_built_anew_behind_one_whose_sql_was_changed(
    wh: Warehouse, database: SqliteFile
) -> None:
    write_view(wh.project.root, "quotients", "SELECT id, 1000 DIV v AS q FROM s.t")
    database.writer().execute("INSERT INTO t VALUES (3, 1000)")
    wh.run_once()
    assert set(states(wh).values()) == {"active"}
    assert read(wh, "sums") == Bag.of([(3, 151)])
    database.writer().execute("DELETE FROM t WHERE id = 1")
    wh.run_once()
    assert read(wh, "sums") == Bag.of([(2, 51)])
    assert all(v.equal for v in wh.verify())
