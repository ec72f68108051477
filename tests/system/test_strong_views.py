"""Views at level strong: one state per batch, the right one, and no other that can be read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import steadyview
from steadyview.algebra import Bag, Row
from steadyview.engine import tagged_log, window_input
from steadyview.errors import OutsideRetention, SteadyviewError
from steadyview.runtime import inputs, pieces
from steadyview.runtime.file_reading import ReadableView
from steadyview.runtime.warehouse import Warehouse
from steadyview.warehouse import node_statement, view_store
from tests.system.databases import SqliteFile, Writer, write_project, write_view
from tests.system.maintained import bag, capturing, read

LEVEL = "CREATE MATERIALIZED VIEW {} TBLPROPERTIES ('steadyview.level' = '{}') AS {}"
SUMS = "SELECT b.z, COUNT(*) AS n, SUM(a.y) AS y FROM s.a JOIN s.b ON a.x = b.x GROUP BY b.z"
LEFT = "SELECT a.x, a.y, b.z FROM s.a LEFT JOIN s.b ON a.x = b.x"
LEAST = "SELECT x, MIN(y) AS low, COUNT(*) AS n FROM s.a GROUP BY x"
GROUPS = "(SELECT x, COUNT(*) AS n FROM s.a GROUP BY x)"
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


def at_level(name: str, level: str, select: str) -> str:
    return LEVEL.format(name, level, select)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[SqliteFile]:
    database = SqliteFile(tmp_path / "s.db")
    database.create("a", "x INTEGER, y INTEGER")
    database.create("b", "x INTEGER, z INTEGER")
    yield database
    database.close()


def commit(
    wh: Warehouse, database: SqliteFile, statements: Sequence[str], source: str = "s"
) -> None:
    """Each a transaction of its own, captured and not yet in any view."""
    writer: Writer = database.writer()
    with capturing(wh) as admit:
        for statement in statements:
            writer.execute(statement)
            admit(source)


def state(wh: Warehouse, view: str, at: int) -> Bag[Row] | None:
    """The view's rows at the cn; None: it says that it has no state there."""
    try:
        return read(wh, view, at=at)
    except OutsideRetention:
        return None


def ends(wh: Warehouse, view: str) -> list[int]:
    row = wh._catalog.views.get(view)
    assert row.cn is not None
    return [cn for cn in range(row.oldest_cn, row.cn + 1) if state(wh, view, cn) is not None]


def gaps(wh: Warehouse, view: str) -> list[tuple[int, int]]:
    return [(g.low, g.high) for g in wh._catalog.gaps.of([wh._catalog.views.get(view).id])]


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces.SIZE, "rows", 4)
    monkeypatch.setattr(pieces, "WARM", 0)
    monkeypatch.setattr(pieces, "QUICK", -1.0)
    monkeypatch.setattr(pieces, "SLOW", 1_000.0)


@pytest.mark.usefixtures("small_pieces")
def test_a_strong_view_has_the_complete_ones_states_at_the_ends_of_pieces_and_no_other(
    database: SqliteFile, tmp_path: Path, spark: SparkSession
) -> None:
    same = {"sums": SUMS, "joined": LEFT, "least": LEAST}
    views = dict(same)
    views |= {f"strong_{n}": at_level(f"strong_{n}", "strong", s) for n, s in same.items()}
    views["over"] = "SELECT n, SUM(y) AS y FROM strong_sums GROUP BY n"
    folder = write_project(tmp_path / "project", {"s": database}, views)
    with steadyview.open(folder, spark=spark) as wh:
        wh.run_once()
        commit(wh, database, STATEMENTS)
        wh.run_once()
        recent = reversed(wh._catalog.batches.recent(100))
        stops = sorted({0, *(b.to_cn for b in recent)})
        last = len(STATEMENTS)
        assert 3 < len(stops) < last
        for name in same:
            assert ends(wh, name) == list(range(last + 1))
            assert ends(wh, f"strong_{name}") == stops
            for cn in stops:
                assert read(wh, name, at=cn) == read(wh, f"strong_{name}", at=cn), (name, cn)
        assert ends(wh, "over") == stops
        for cn in stops:
            again = wh.query("SELECT n, SUM(y) AS y FROM sums GROUP BY n", at=cn)
            assert read(wh, "over", at=cn) == bag(again), cn
        assert all(v.equal for v in wh.verify(nodes=True))
        _refused_between(wh, folder, stops)
        levels = {v.name: v.level for v in wh.status().views}
        assert levels["over"] == levels["strong_sums"] == "strong"
        assert "level  strong: one state per batch" in wh.explain("over").text
        assert wh.graph().to_dict()["nodes"]
        hidden = {v.level for v in wh.graph().vertices if v.kind == "node"}
        assert hidden == {"complete"}, "the nodes below MIN are shared"


def _refused_between(wh: Warehouse, folder: Path, stops: Sequence[int]) -> None:
    """Reading between two states names both, wherever it is asked."""
    low, high = next((a, b) for a, b in zip(stops, stops[1:], strict=False) if b - a > 1)
    asked: list[Any] = [
        lambda: wh.view("strong_sums").read(at=low + 1),
        lambda: wh.query("SELECT * FROM strong_sums", at=low + 1),
        lambda: wh.query("SELECT * FROM sums JOIN over USING (n)", at=high - 1),
        lambda: ReadableView(folder, "strong_sums").parts(at=high - 1),
        lambda: wh.verify(["strong_sums"], low + 1),
    ]
    for ask in asked:
        with pytest.raises(OutsideRetention, match="has no state at cn") as refused:
            ask()
        assert f"states at cn {low} and cn {high}" in (refused.value.detail or "")
        assert "level complete" in (refused.value.hint or "")
    verdicts = {v.view: v for v in wh.verify(at=low + 1, nodes=True) if v.part == "rows"}
    assert {n for n, v in verdicts.items() if v.no_state} == {
        "strong_sums",
        "strong_joined",
        "strong_least",
        "over",
    }
    assert all(v.equal for n, v in verdicts.items() if not v.no_state)
    told = {c.cn: c.since for c in wh.view("strong_sums").history()}
    assert told[high] == low
    assert set(told) <= set(stops)
    assert {c.since for c in wh.view("sums").history()} == {None}


def test_a_node_that_a_complete_view_reads_too_is_complete(
    database: SqliteFile, tmp_path: Path, spark: SparkSession
) -> None:
    views = {
        "strong": at_level("strong", "strong", f"SELECT n, COUNT(*) AS c FROM {GROUPS} GROUP BY n"),
        "other": f"SELECT n, SUM(x) AS x FROM {GROUPS} GROUP BY n",
    }
    folder = write_project(tmp_path / "project", {"s": database}, views)
    with steadyview.open(folder, spark=spark) as wh:
        wh.run_once()
        hidden = [v.name for v in wh.graph().vertices if v.kind == "node"]
        assert len(hidden) == 1
        commit(wh, database, STATEMENTS[:5])
        wh.run_once()
        assert (gaps(wh, hidden[0]), gaps(wh, "other")) == ([], [])
        assert gaps(wh, "strong") == [(0, 5)]
        assert {v.level for v in wh.graph().vertices if v.kind == "node"} == {"complete"}
        assert all(v.equal for v in wh.verify(at=3, nodes=True) if v.view != "strong")
        # with the other view gone for good, nobody needs each state of the node
        wh.drop("other")
        assert {v.level for v in wh.graph().vertices if v.kind == "node"} == {"strong"}
        commit(wh, database, STATEMENTS[5:])
        wh.run_once()
        assert gaps(wh, hidden[0]) == [(5, 11)]
        verdicts = wh.verify(at=8, nodes=True)
        assert {v.view for v in verdicts if v.no_state} == {"strong", hidden[0]}
        # it comes back: of the node it has what is there, and from now on all
        write_view(folder, "other", views["other"])
        wh.run_once()
        commit(wh, database, ["INSERT INTO a VALUES (4, 1)", "INSERT INTO a VALUES (4, 2)"])
        wh.run_once()
        assert (ends(wh, "other"), gaps(wh, hidden[0])) == ([11, 12, 13], [(5, 11)])
        assert all(v.equal for v in wh.verify(nodes=True))
        assert all(v.equal for v in wh.verify(["other"], 12, nodes=True))


def test_all_that_only_strong_views_are_made_of_is_taken_in_one_step(
    database: SqliteFile, tmp_path: Path, spark: SparkSession
) -> None:
    texts = {
        "least": LEAST,
        "nested": f"SELECT n, MAX(x) AS x FROM {GROUPS} GROUP BY n",
        "without": "SELECT x FROM s.a EXCEPT SELECT x FROM s.b",
        "outer": f"SELECT z, n FROM s.b FULL JOIN {GROUPS} AS g ON g.x = b.x",
    }
    views = {n: at_level(n, "strong", s) for n, s in texts.items()}
    folder = write_project(tmp_path / "project", {"s": database}, views)
    with steadyview.open(folder, spark=spark) as wh:
        wh.run_once()
        for statements in (STATEMENTS[:6], STATEMENTS[6:]):
            commit(wh, database, statements)
            wh.run_once()
        kept = [v for v in wh.graph().vertices if v.kind in ("node", "view")]
        assert len(kept) > len(views) + 3
        assert {v.level for v in kept} == {"strong"}
        for vertex in kept:
            assert gaps(wh, vertex.name) == [(0, 6), (6, 11)]
        assert all(v.equal for v in wh.verify(nodes=True))
        assert all(v.equal for v in wh.verify(at=6, nodes=True))


def test_another_level_holds_from_where_the_view_stands(
    database: SqliteFile, tmp_path: Path, spark: SparkSession
) -> None:
    folder = write_project(tmp_path / "project", {"s": database}, {"v": SUMS, "w": SUMS})
    with steadyview.open(folder, spark=spark) as wh:
        wh.run_once()
        before = wh._catalog.views.get("v").id
        commit(wh, database, STATEMENTS[:3])
        wh.run_once()
        for number, level in enumerate(("strong", "complete", "strong"), 1):
            write_view(folder, "v", at_level("v", level, SUMS))
            commit(wh, database, STATEMENTS[3 * number : 3 * number + 3])
            wh.run_once()
        assert wh._catalog.views.get("v").id == before
        assert ends(wh, "v") == [0, 1, 2, 3, 6, 7, 8, 9, 11]
        for cn in ends(wh, "v"):
            assert read(wh, "v", at=cn) == read(wh, "w", at=cn), cn


def test_a_reader_comes_and_goes_on_only_where_its_strong_parent_has_a_state(
    database: SqliteFile, tmp_path: Path, spark: SparkSession
) -> None:
    other = SqliteFile(tmp_path / "o.db")
    other.create("names", "n INTEGER, name TEXT")
    other.writer().execute("INSERT INTO names VALUES (1, 'one'), (2, 'two'), (4, 'four')")
    views = {"sums": at_level("sums", "strong", SUMS)}
    folder = write_project(tmp_path / "project", {"s": database, "o": other}, views)
    select = "SELECT z, name FROM sums LEFT JOIN o.names ON names.n = sums.n"
    with steadyview.open(folder, spark=spark) as wh:
        wh.run_once()
        commit(wh, database, STATEMENTS[:5])
        wh.run_once()
        # built later than what it reads
        write_view(folder, "named", select)
        wh.run_once()
        assert ends(wh, "named") == [5]
        # left behind by what it reads, twice
        away = (tmp_path / "o.db").rename(tmp_path / "away.db")
        for statements in (STATEMENTS[5:8], STATEMENTS[8:]):
            commit_alone(wh, database, statements)
        assert [v.cn for v in wh.status().views] == [5, 11]
        newest = wh.query_at("SELECT * FROM sums LEFT JOIN named USING (z)")
        assert newest.cn == 5
        away.rename(tmp_path / "o.db")
        wh.run_once()
        assert [v.cn for v in wh.status().views] == [11, 11]
        assert (ends(wh, "sums"), ends(wh, "named")) == ([0, 5, 8, 11], [5, 11])
        assert all(v.equal for v in wh.verify())
        assert all(v.equal for v in wh.verify(at=5))
    other.close()


def test_a_view_over_two_strong_ones_is_built_once_both_have_a_state_at_one_commit(
    database: SqliteFile, tmp_path: Path, spark: SparkSession
) -> None:
    other = SqliteFile(tmp_path / "o.db")
    other.create("names", "n INTEGER, name TEXT")
    views = {
        "sums": at_level("sums", "strong", SUMS),
        "names": at_level("names", "strong", "SELECT DISTINCT n, name FROM o.names"),
    }
    folder = write_project(tmp_path / "project", {"s": database, "o": other}, views)
    name = "INSERT INTO names VALUES ({}, 'name')"
    with steadyview.open(folder, spark=spark) as wh:
        wh.run_once()
        away = (tmp_path / "s.db").rename(tmp_path / "away.db")
        commit_alone(wh, other, [name.format(1), name.format(2)], "o")
        away.rename(tmp_path / "s.db")
        away = (tmp_path / "o.db").rename(tmp_path / "away.db")
        commit_alone(wh, database, STATEMENTS[:3])
        assert {v.name: v.cn for v in wh.status().views} == {"sums": 5, "names": 2}
        assert gaps(wh, "sums") == [(0, 5)]
        write_view(folder, "both", "SELECT z, name FROM sums JOIN names USING (n)")
        with pytest.raises(SteadyviewError):
            wh.run_once()
        assert {v.name: v.state for v in wh.status().views}["both"] == "building"
        away.rename(tmp_path / "o.db")
        for _ in range(2):
            wh.run_once()
        assert {v.name: v.cn for v in wh.status().views} == dict.fromkeys([*views, "both"], 5)
        assert all(v.equal for v in wh.verify())
    other.close()


def commit_alone(
    wh: Warehouse, database: SqliteFile, statements: Sequence[str], source: str = "s"
) -> None:
    """Transactions that a run takes up while another source is away."""
    commit(wh, database, statements, source)
    with pytest.raises(SteadyviewError):
        wh.run_once()


def test_a_value_that_is_gone_by_the_end_of_a_batch_stops_no_strong_view(
    database: SqliteFile, tmp_path: Path, spark: SparkSession
) -> None:
    quotients = "SELECT x, 100 DIV y AS q FROM s.a"
    views = {
        "each": quotients,
        "strong": at_level("strong", "strong", quotients),
        "over": "SELECT COUNT(*) AS n, SUM(q) AS q FROM strong",
    }
    folder = write_project(tmp_path / "project", {"s": database}, views)
    with steadyview.open(folder, spark=spark) as wh:
        wh.run_once()
        commit(wh, database, ["INSERT INTO a VALUES (1, 10), (2, 20)"])
        wh.run_once()
        commit(wh, database, ["INSERT INTO a VALUES (3, 0)", "UPDATE a SET y = 50 WHERE x = 3"])
        wh.run_once()
        stands = {v.name: (v.state, v.cn) for v in wh.status().views}
        assert stands == {"each": ("stopped", 1), "strong": ("active", 3), "over": ("active", 3)}
        assert read(wh, "over") == Bag.of([(3, 17)])
        zero = ["INSERT INTO a VALUES (4, 1)", "INSERT INTO a VALUES (5, 0)"]
        commit(wh, database, [*zero, "INSERT INTO a VALUES (6, 1)"])
        wh.run_once()
        stands = {v.name: (v.state, v.cn) for v in wh.status().views}
        assert stands["strong"] == stands["over"] == ("stopped", 3)
        assert read(wh, "over") == Bag.of([(3, 17)])
        commit(wh, database, ["DELETE FROM a WHERE y = 0"])
        wh.run_once()
        assert {v.state for v in wh.status().views} == {"active"}
        assert read(wh, "over") == Bag.of([(5, 217)])
        assert all(v.equal for v in wh.verify())


class Killed(BaseException):
    """What a kill of the process would be."""


@pytest.mark.parametrize("place", ["steps-committed", "delta-committed"])
@pytest.mark.parametrize("level", ["strong", "complete"])
def test_what_a_crash_has_left_of_a_batch_is_ended_where_it_would_have_ended(
    place: str,
    level: str,
    database: SqliteFile,
    tmp_path: Path,
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    views = {"v": at_level("v", "strong", SUMS), "w": "SELECT z, n + 1 AS n FROM v"}
    views["each"] = SUMS
    folder = write_project(tmp_path / "project", {"s": database}, views)

    def killed(here: str) -> None:
        if here == place:
            raise Killed

    with steadyview.open(folder, spark=spark) as wh:
        wh.run_once()
        commit(wh, database, STATEMENTS[:5])
        with monkeypatch.context() as patched:
            patched.setattr(view_store, "crash_point", killed)
            with pytest.raises(Killed):
                wh.run_once()
    write_view(folder, "v", at_level("v", level, SUMS))
    with steadyview.open(folder, spark=spark) as wh:
        commit(wh, database, STATEMENTS[5:9])
        wh.run_once()
        assert {v.cn for v in wh.status().views} == {9}
        assert {0, 5, 9} <= {*ends(wh, "v")}
        for view in ("v", "w"):
            for cn in ends(wh, view):
                (verdict,) = wh.verify([view], cn)
                assert verdict.equal, (view, cn)
        assert ends(wh, "each") == list(range(10))
        assert all(v.equal for v in wh.verify(nodes=True))


def test_many_rows_are_taken_in_one_step_by_spark(
    database: SqliteFile, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    same = {"sums": SUMS, "joined": LEFT}
    views = same | {f"strong_{n}": at_level(f"strong_{n}", "strong", s) for n, s in same.items()}
    folder = write_project(tmp_path / "project", {"s": database}, views)
    with steadyview.open(folder, spark=spark) as wh:
        wh.run_once()
        with monkeypatch.context() as patched:
            for module in (window_input, inputs, tagged_log, node_statement):
                patched.setattr(module, "ARROW_LIMIT", 0)
            for statements in (STATEMENTS[:6], STATEMENTS[6:]):
                commit(wh, database, statements)
                wh.run_once()
        for name in same:
            assert ends(wh, f"strong_{name}") == [0, 6, 11]
            for cn in (6, 11):
                assert read(wh, name, at=cn) == read(wh, f"strong_{name}", at=cn), (name, cn)
        assert all(v.equal for v in wh.verify(nodes=True))
