"""A backlog is published in pieces, and every state on the way is what its SQL says."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import steadyview
from steadyview.algebra import Bag, Row
from steadyview.runtime import pieces
from steadyview.runtime.warehouse import Warehouse
from steadyview.warehouse import apply
from tests.system.databases import SqliteFile, write_project
from tests.system.maintained import capturing, read, stored

VIEWS = {
    "pairs": "SELECT a.x, b.z FROM s.a JOIN s.b ON a.x = b.x",
    "sums": "SELECT b.z, COUNT(*) AS n, SUM(a.y) AS y FROM s.a JOIN s.b ON a.x = b.x GROUP BY b.z",
    "quotients": "SELECT x, 100 DIV y AS q FROM s.a",
    "distinct": "CREATE MATERIALIZED VIEW distinct TBLPROPERTIES ('steadyview.fallback' = "
    "'recompute') AS SELECT DISTINCT x FROM s.a",
}
STATEMENTS = (
    "INSERT INTO a VALUES (1, 10), (2, 20)",
    "INSERT INTO b VALUES (1, 5), (2, 5)",
    "UPDATE a SET y = y + 1",
    "DELETE FROM b WHERE x = 1",
    "INSERT INTO a VALUES (1, 10), (1, 10)",
    "INSERT INTO b VALUES (1, 6), (1, 6), (2, 7)",
    "UPDATE b SET x = 3 - x",
    "DELETE FROM a WHERE y = 11",
    "INSERT INTO a VALUES (2, 0)",
    "UPDATE b SET z = z + 1",
    "DELETE FROM a WHERE x = 1",
)
FAILS_AT = 9


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces.SIZE, "rows", 4)
    monkeypatch.setattr(pieces, "WARM", 0)
    monkeypatch.setattr(pieces, "QUICK", -1.0)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[SqliteFile]:
    database = SqliteFile(tmp_path / "s.db")
    database.create("a", "x INTEGER, y INTEGER")
    database.create("b", "x INTEGER, z INTEGER")
    yield database
    database.close()


def expected(path: Path, sql: str) -> Bag[Row]:
    """The view as SQLite computes it now."""
    select = sql.rpartition(" AS SELECT")[2] if sql.startswith("CREATE") else sql[6:]
    with closing(sqlite3.connect(path)) as db:
        text = f"SELECT{select}".replace("s.a", "a").replace("s.b", "b")
        return Bag.of(db.execute(text.replace("DIV", "/")).fetchall())


@pytest.mark.usefixtures("small_pieces")
def test_a_backlog_is_published_in_pieces_and_every_state_is_right(
    database: SqliteFile, tmp_path: Path, spark: SparkSession
) -> None:
    folder = write_project(tmp_path / "project", {"s": database}, VIEWS)
    states: list[dict[str, Bag[Row]]] = []
    with steadyview.open(folder, spark=spark) as wh:
        wh.run_once()
        with capturing(wh) as admit:
            for statement in ("", *STATEMENTS):
                if statement:
                    database.writer().execute(statement)
                    admit("s")
                states.append({v: expected(tmp_path / "s.db", sql) for v, sql in VIEWS.items()})
        wh.run_once()
        recent = reversed(wh._catalog.batches.recent(100))
        batches = [(b.from_cn, b.to_cn) for b in recent if b.to_cn]
        assert len(batches) > 3
        assert [b[0] for b in batches] == [0, *(b[1] for b in batches[:-1])]
        last = len(STATEMENTS)
        stands = {v.name: (v.state, v.cn) for v in wh.status().views}
        assert stands == {
            "pairs": ("active", last),
            "sums": ("active", last),
            "distinct": ("active", last),
            "quotients": ("stopped", FAILS_AT - 1),
        }
        for cn, state in enumerate(states):
            for view in ("pairs", "sums"):
                assert read(wh, view, at=cn) == state[view], (view, cn)
            if cn < FAILS_AT:
                assert read(wh, "quotients", at=cn) == state["quotients"], cn
        assert read(wh, "distinct") == states[last]["distinct"]


class OnceSomethingIsShown(threading.Event):
    """A wish to stop that comes when the first piece of a backlog is published, or a later one."""

    def __init__(self, wh: Warehouse, view: str = "pairs", cn: int = 1) -> None:
        super().__init__()
        self._wh, self._view, self._cn = wh, view, cn

    def is_set(self) -> bool:
        if not super().is_set() and self._reached():
            self.set()
        return super().is_set()

    def _reached(self) -> bool:
        return (self._wh._catalog.views.get(self._view).cn or 0) >= self._cn


@pytest.mark.usefixtures("small_pieces")
def test_a_wish_to_stop_is_heard_between_two_pieces_and_nothing_is_lost(
    database: SqliteFile, tmp_path: Path, spark: SparkSession
) -> None:
    views = {name: VIEWS[name] for name in ("pairs", "sums", "distinct")}
    folder = write_project(tmp_path / "project", {"s": database}, views)
    states: list[dict[str, Bag[Row]]] = []
    with steadyview.open(folder, spark=spark) as wh:
        wh.run_once()
        with capturing(wh) as admit:
            for statement in ("", *STATEMENTS):
                if statement:
                    database.writer().execute(statement)
                    admit("s")
                states.append({v: expected(tmp_path / "s.db", sql) for v, sql in views.items()})
        wh.run(OnceSomethingIsShown(wh))
        stopped_at = wh._catalog.views.get("pairs").cn
        assert stopped_at is not None
        assert 0 < stopped_at < len(STATEMENTS)
        for view in ("pairs", "sums"):
            assert read(wh, view) == states[stopped_at][view]
        assert read(wh, "distinct", at=0) == states[0]["distinct"]
        wh.run_once()
        assert {v.name: v.cn for v in wh.status().views} == dict.fromkeys(views, len(STATEMENTS))
        for cn, state in enumerate(states):
            for view in ("pairs", "sums"):
                assert read(wh, view, at=cn) == state[view], (view, cn)
        assert read(wh, "distinct") == states[-1]["distinct"]


@pytest.mark.usefixtures("small_pieces")
def test_bases_and_states_are_rolled_before_a_backlog_is_over(
    database: SqliteFile, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apply, "RESIDUAL_FILES", 0)
    folder = write_project(tmp_path / "project", {"s": database}, {"sums": VIEWS["sums"]})
    with steadyview.open(folder, spark=spark) as wh:
        wh.run_once()
        with capturing(wh) as admit:
            for statement in STATEMENTS:
                database.writer().execute(statement)
                admit("s")
        wh.run(OnceSomethingIsShown(wh, "sums", 6))
        shown = wh._catalog.views.get("sums")
        assert shown.cn is not None
        assert 6 <= shown.cn < len(STATEMENTS)
        assert shown.base_cn is not None
        assert 0 < shown.base_cn < shown.cn
        assert stored(wh, "sums").state_cn() == shown.base_cn
        assert all(v.equal for v in wh.verify(["sums"], shown.cn))


def test_a_run_tells_the_warnings_of_view_files_once(
    database: SqliteFile, tmp_path: Path, spark: SparkSession
) -> None:
    views = {"odd": "SELECT x, 'y' AS t FROM s.a WHERE \"y\" = 'y'", "pairs": VIEWS["pairs"]}
    folder = write_project(tmp_path / "project", {"s": database}, views)
    told: list[str] = []
    with steadyview.open(folder, spark=spark) as wh:
        wh.tell = told.append
        wh.run_once()
        (folder / "views" / "pairs.sql").write_text(VIEWS["sums"])
        wh.run_once()
    assert len(told) == 1
    assert told[0].startswith(f"{folder / 'views' / 'odd.sql'}: warning: ")
