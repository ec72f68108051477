"""Answers over views of any policies and over tables of sources: of one cn, and as old as allowed.

The measure is SQLite itself: the same query over the database as it was after that very commit.
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import steadyview
from steadyview.algebra import Bag, Row
from steadyview.errors import OutsideRetention, QueryRefused, TooStale
from steadyview.runtime.asking import QueryAnswer
from steadyview.runtime.staleness import OnStale, Staleness
from steadyview.runtime.status import Status
from steadyview.runtime.warehouse import Warehouse
from tests.crash.running import Running
from tests.system.databases import SqliteFile, write_project
from tests.system.maintained import bag, capturing
from tests.system.test_refreshes import change, view

GROUPED = (
    "SELECT t.g, COUNT(*) AS n, SUM(u.x) AS x FROM {0}t t JOIN {0}u u ON u.t = t.id GROUP BY t.g"
)
TEXTS = {
    "now": GROUPED,
    "held": GROUPED,
    "late": GROUPED,
    "rough": GROUPED,
    "whole": GROUPED,
    "over_late": f"SELECT SUM(n) AS n FROM ({GROUPED})",
}
POLICY = {
    "held": "'steadyview.policy' = 'ipda'",
    "late": "'steadyview.policy' = 'dpda'",
    "rough": "'steadyview.policy' = 'dpda', 'steadyview.level' = 'strong'",
    "whole": "'steadyview.policy' = 'snapshot'",
}
VIEWS = {
    name: view(name, POLICY.get(name, ""), text.format("s.")) for name, text in TEXTS.items()
} | {"over_late": "SELECT SUM(n) AS n FROM late"}
QUERIES = (
    "SELECT a.g, a.n, b.x FROM now a FULL JOIN late b ON a.g <=> b.g",
    "SELECT a.g, a.n, b.x FROM held a FULL JOIN late b ON a.g <=> b.g",
    "SELECT a.g, a.n, b.x FROM rough a FULL JOIN held b ON a.g <=> b.g",
    "SELECT a.g, a.n, b.x FROM whole a FULL JOIN now b ON a.g <=> b.g",
    "SELECT a.n, b.x FROM over_late a CROSS JOIN now b",
    "SELECT a.g, a.n, q.id FROM now a FULL JOIN s.t q ON a.g <=> q.g",
    "SELECT q.g, COUNT(*) AS c FROM late a JOIN s.t q ON a.g <=> q.g GROUP BY q.g",
    "WITH u AS (SELECT 1 AS one) SELECT s.u.x, one, now.n FROM s.u CROSS JOIN u LEFT JOIN now"
    " ON now.n = s.u.x",
    "SELECT COUNT(*) AS c, SUM(x) AS x FROM s.u",
)


class World:
    """The database, and what each query gives after each commit of it, by SQLite."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "s.db"
        self.database = SqliteFile(self.path)
        self.database.create("t", "id INTEGER PRIMARY KEY, g TEXT")
        self.database.create("u", "t INTEGER, x INTEGER")
        self.database.writer().execute("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, NULL)")
        self.database.writer().execute("INSERT INTO u VALUES (1, 10), (2, 20), (2, NULL)")
        self.states: dict[int, dict[str, list[tuple]]] = {}

    def keep(self, cn: int) -> None:
        with sqlite3.connect(self.path) as connection:
            self.states[cn] = {
                table: connection.execute(f"SELECT * FROM {table}").fetchall() for table in "tu"
            }

    @property
    def last(self) -> int:
        """The newest cn; a change that changed nothing has none."""
        return max(self.states)

    def expected(self, sql: str, cn: int) -> Bag[Row]:
        with sqlite3.connect(":memory:") as connection:
            connection.execute("ATTACH ':memory:' AS s")
            connection.execute("CREATE TABLE s.t (id, g)")
            connection.execute("CREATE TABLE s.u (t, x)")
            for table, rows in self.states[cn].items():
                connection.executemany(f"INSERT INTO s.{table} VALUES (?, ?)", rows)
            for name, text in TEXTS.items():
                connection.execute(f"CREATE TEMP VIEW {name} AS {text.format('s.')}")
            rows = connection.execute(sql.replace("<=>", "IS"))
            return Bag.of(rows.fetchall())


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    made.keep(0)
    yield made
    made.database.close()


@pytest.fixture
def wh(world: World, tmp_path: Path, spark: SparkSession) -> Iterator[Warehouse]:
    folder = write_project(tmp_path / "project", {"s": world.database}, VIEWS)
    with steadyview.open(folder, spark=spark) as opened:
        opened.run_once()
        yield opened


def commit(wh: Warehouse, world: World, dice: random.Random, times: int) -> None:
    """Each a commit of its own, captured and not yet in any view."""
    with capturing(wh) as admit:
        for _ in range(times):
            change(world.database, dice)
            world.keep(admit("s"))


def rows_of(answer: QueryAnswer) -> Bag[Row]:
    found = bag(answer.frame)
    answer.close()
    return found


@pytest.mark.parametrize("seed", range(2))
def test_an_answer_is_what_sqlite_says_at_its_cn_whatever_it_reads(
    wh: Warehouse, world: World, seed: int
) -> None:
    dice = random.Random(seed)
    for step in range(4):
        commit(wh, world, dice, dice.randrange(1, 4))
        if dice.random() < 0.7:
            wh.run_once()
        if step == 2:
            wh.refresh(["late", "held", "rough", "whole"])
        before = {v.name: v.cn for v in wh.status().views}
        for sql in dice.sample(QUERIES, 3):
            answer = wh.query_at(sql)
            valid = answer.valid_time
            ends = answer.cn + 1 if valid.end is None else valid.end
            assert valid.first <= answer.cn < ends, sql
            found = rows_of(answer)
            assert found == world.expected(sql, answer.cn), (sql, answer.cn)
            same = [world.expected(sql, cn) for cn in range(valid.first, ends)]
            assert all(found == other for other in same), (sql, valid)
        assert {v.name: v.cn for v in wh.status().views} == before, "what is shown stays"


@pytest.mark.parametrize("sql", QUERIES[:7])
def test_an_answer_of_0_s_shows_all_that_was_committed(
    wh: Warehouse, world: World, sql: str
) -> None:
    dice = random.Random(sql)
    commit(wh, world, dice, 3)
    answer = wh.query_at(sql, staleness=Staleness(timedelta(0)))
    assert (answer.cn, answer.chosen.way) == (world.last, "compensated")
    assert rows_of(answer) == world.expected(sql, world.last)
    shown = {v.name: v.cn for v in wh.status().views}
    assert shown["late"] == shown["held"] == 0


def test_the_next_refresh_shows_what_was_carried_for_a_query(wh: Warehouse, world: World) -> None:
    commit(wh, world, random.Random(1), 2)
    wh.query_at(QUERIES[1], staleness=Staleness(timedelta(0))).close()
    commit(wh, world, random.Random(2), 2)
    for to in sorted({1, 2, world.last} & {*world.states}):
        wh.refresh(["late", "held", "rough"] if to == world.last else ["late", "held"], to)
        for name in ("late", "held"):
            sql = f"SELECT * FROM {name}"
            assert bag(wh.view(name).read()) == world.expected(sql, to)
    assert [v.view for v in wh.verify() if not v.equal] == []


def test_ipda_views_are_read_at_any_cn_that_is_propagated(wh: Warehouse, world: World) -> None:
    commit(wh, world, random.Random(3), 3)
    wh.run_once()
    for cn in world.states:
        found = rows_of(wh.query_at("SELECT * FROM held", at=cn))
        assert found == world.expected("SELECT * FROM held", cn)
    with pytest.raises(OutsideRetention):
        wh.query_at("SELECT * FROM late", at=world.last)


def test_tables_of_sources_are_read_as_of_any_cn_that_the_log_reaches(
    wh: Warehouse, world: World
) -> None:
    commit(wh, world, random.Random(4), 4)
    wh.run_once()
    sql = "SELECT q.id, q.g, v.n FROM s.t q LEFT JOIN now v ON v.g <=> q.g"
    for cn in world.states:
        answer = wh.query_at(sql, at=cn)
        assert answer.cn == cn
        assert rows_of(answer) == world.expected(sql, cn)


def test_what_is_published_apart_is_refused_where_nothing_may_be_carried(
    wh: Warehouse, world: World
) -> None:
    world.database.writer().execute("INSERT INTO u VALUES (1, 1)")
    wh.run_once()
    with pytest.raises(OutsideRetention, match="no moment in common"):
        wh.query_at(QUERIES[0], staleness=Staleness(as_published=True))
    wh.refresh(["late"])
    answer = wh.query_at(QUERIES[0], staleness=Staleness(as_published=True))
    assert answer.chosen.way == "as published"
    answer.close()


def test_an_answer_that_is_too_old_is_refused_or_waited_for(wh: Warehouse, world: World) -> None:
    commit(wh, world, random.Random(5), 1)
    bound = timedelta(microseconds=1)
    for on_stale in (OnStale.fail, OnStale.wait):
        staleness = Staleness(bound, on_stale, timedelta(seconds=0.2))
        with pytest.raises(TooStale, match='"s"'):
            wh.query_at("SELECT * FROM now", staleness=staleness)
    hours = Staleness(timedelta(hours=1), OnStale.fail)
    answer = wh.query_at("SELECT * FROM now", staleness=hours)
    assert 0 < answer.chosen.ages["s"] < 3600


def test_what_is_no_view_and_no_table_of_a_source_is_not_read(wh: Warehouse) -> None:
    for sql, message in (
        ("SELECT * FROM s.v", '"s.v" is not a view, nor a table of a source'),
        ("SELECT * FROM text.`/etc/passwd`", "is not a view, nor a table of a source"),
        ("SELECT * FROM now JOIN csv.`/etc/passwd`", "is not a view"),
        ("DESCRIBE s.t", '"s.t" is not a view'),
        ("EXPLAIN SELECT * FROM s.t", "EXPLAIN of a query over tables"),
        ("SELECT java_method('a', 'b') FROM s.t", "java_method"),
    ):
        with pytest.raises(QueryRefused, match=message):
            wh.query_at(sql)


def test_a_query_has_the_run_bring_what_is_missing(wh: Warehouse, world: World) -> None:
    dice = random.Random(6)
    with Running(wh) as running:
        running.until(published_but_deferred)
        for sql in QUERIES[:5]:
            change(world.database, dice)
            answer = wh.query_at(sql, staleness=Staleness(timedelta(0)))
            world.keep(answer.cn)
            assert rows_of(answer) == world.expected(sql, answer.cn), sql
        running.until(published_but_deferred)
        fresh = Staleness(timedelta(seconds=20), OnStale.fail)
        answer = wh.query_at("SELECT * FROM now", staleness=fresh)
        assert answer.chosen.way == "as published"
        assert rows_of(answer) == world.expected("SELECT * FROM now", answer.cn)
        waited = Staleness(timedelta(seconds=20), OnStale.wait)
        wh.query_at("SELECT * FROM now", staleness=waited).close()


def published_but_deferred(status: Status) -> bool:
    return all(v.cn == status.cn for v in status.views if v.name == "now")
