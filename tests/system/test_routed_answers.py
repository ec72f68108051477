"""Queries over tables, answered from views: the same rows of the same commit, and never older."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import DataType

import steadyview
from steadyview.catalog.lease import Holder, Lease
from steadyview.errors import QueryRefused, StorageUnavailable, TooStale
from steadyview.query import as_of
from steadyview.runtime.asking import QueryAnswer
from steadyview.runtime.remote import Wanted
from steadyview.runtime.routes import Route
from steadyview.runtime.staleness import OnStale, Staleness
from steadyview.runtime.warehouse import Warehouse
from steadyview.views.routing import Routed
from tests.crash.running import Running, published
from tests.system.databases import PostgresDatabase, SqliteFile, write_project
from tests.system.maintained import bag, table_bag
from tests.system.test_answers import GROUPED, World, commit, rows_of
from tests.system.test_refreshes import view
from tests.views.routes import Pair, pair

HOUR = timedelta(hours=1)
TABLES = GROUPED.format("s.")


def columns_of(answer: QueryAnswer) -> list[tuple[str, DataType]]:
    return [(f.name, f.dataType) for f in answer.frame.schema.fields]


# --- generated -----------------------------------------------------------------------------------


def routed_pairs(count: int) -> list[Pair]:
    """Pairs of a view and a query that the view answers, by every rule as often."""
    found: dict[str, list[Pair]] = {}
    seed = 50_000
    while sum(map(len, found.values())) < count:
        seed += 1
        tried = pair(random.Random(seed))
        if isinstance(tried.found, Routed):
            kept = found.setdefault(tried.found.rule, [])
            kept += [tried] if len(kept) < count // 3 else []
    return [p for kept in found.values() for p in kept]


def test_generated_queries_have_the_same_answers_from_views_and_from_tables(
    tmp_path: Path, spark: SparkSession
) -> None:
    dice = random.Random(7)
    pairs = routed_pairs(6)
    database = SqliteFile(tmp_path / "s.db")
    for table in "rq":
        database.create(table, "a INTEGER, b INTEGER, c INTEGER")
    views = {f"v{i}": p.view for i, p in enumerate(pairs)}
    with steadyview.open(
        write_project(tmp_path / "project", {"s": database}, views), spark=spark
    ) as wh:
        wh.run_once()
        for table in dice.choices("rq", k=8):
            row = [dice.choice((None, 0, 1, 2)) for _ in "abc"]
            database.writer().execute(f"INSERT INTO {table} VALUES (?, ?, ?)", *row)
        for tried in pairs:
            routed = wh.query_at(tried.query, route="require")
            assert routed.route.taken is not None
            asked = wh.query_at(tried.query, at=routed.cn, route="off")
            assert columns_of(routed) == columns_of(asked), tried
            assert rows_of(routed) == rows_of(asked), tried
    database.close()


# --- types ---------------------------------------------------------------------------------------

LINES = "FROM pg.lines l"
TYPED = {
    "by_day": f"""SELECT l.day, l.kind, l.q, COUNT(*) AS n, SUM(l.price) AS s, COUNT(l.price) AS k,
        SUM(l.q) AS sq, MIN(l.price) AS low, MAX(l.ratio) AS high {LINES}
        GROUP BY l.day, l.kind, l.q""",
    "dear": f"SELECT l.id, l.kind, l.price, l.ratio, l.day {LINES} WHERE l.price > 10",
}
TYPED_QUERIES = (
    f"SELECT l.kind, AVG(l.price), SUM(l.price), COUNT(l.price), count(*) {LINES} GROUP BY l.kind",
    f"SELECT year(l.day) AS y, AVG(l.q), SUM(l.q), COUNT(DISTINCT l.kind) {LINES} GROUP BY 1",
    f"SELECT MAX(l.ratio), MIN(l.price), SUM(l.price) / COUNT(*) {LINES} WHERE l.kind = 'it''s'",
    f"SELECT l.day, l.price * 2, l.ratio {LINES} WHERE l.price > 10 AND l.ratio > 0.5 ORDER BY 1",
    f"SELECT l.kind, AVG(l.price) {LINES} WHERE l.price > 10 GROUP BY l.kind HAVING COUNT(*) > 1",
    f"SELECT DISTINCT l.kind {LINES} ORDER BY l.kind DESC LIMIT 2",
)


def test_columns_have_the_names_types_and_digits_that_spark_gives_the_query_itself(
    tmp_path: Path, spark: SparkSession
) -> None:
    database = PostgresDatabase()
    database.create(
        "lines",
        "id bigint PRIMARY KEY, kind text, price numeric(9,3), q int, ratio double precision,"
        " day date",
    )
    database.writer().execute(
        "INSERT INTO lines SELECT i, (ARRAY['a', 'it''s', NULL])[i % 3 + 1], i * 1.237 / 3,"
        " i % 4, i / 7.0, DATE '2026-01-01' + (i % 400)::int FROM generate_series(1, 60) i"
    )
    folder = write_project(tmp_path / "project", {"pg": database}, TYPED)
    with steadyview.open(folder, spark=spark) as wh:
        wh.run_once()
        for sql in TYPED_QUERIES:
            routed, asked = (wh.query_at(sql, route=way) for way in ("require", "off"))
            fields = [
                [(f.name, f.dataType) for f in a.frame.schema.fields] for a in (routed, asked)
            ]
            assert fields[0] == fields[1], sql
            rows = [a.frame.toArrow().to_pylist() for a in (routed, asked)]
            assert rows[0] == rows[1] if "ORDER" in sql else rows_of(routed) == rows_of(asked)
    database.close()


# --- how old -------------------------------------------------------------------------------------


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    made.keep(0)
    yield made
    made.database.close()


def opened(world: World, tmp_path: Path, spark: SparkSession, *policies: str) -> Warehouse:
    """Views of the same text, of these policies."""
    texts = {
        f"v_{policy}": view(f"v_{policy}", f"'steadyview.policy' = '{policy}'", TABLES)
        for policy in policies
    }
    folder = write_project(tmp_path / "project", {"s": world.database}, texts)
    wh = steadyview.open(folder, spark=spark)
    wh.run_once()
    return wh


def test_what_was_committed_before_the_query_is_in_its_answer(
    world: World, tmp_path: Path, spark: SparkSession
) -> None:
    with opened(world, tmp_path, spark, "immediate", "dpda") as wh:
        for seed in range(3):
            commit(wh, world, random.Random(seed), 2)
            answer = wh.query_at(TABLES)
            assert answer.route.taken is not None
            assert (answer.route.taken.view, answer.cn) == ("v_immediate", world.last)
            assert answer.chosen.cost.rows > 0
            assert set(answer.chosen.ages.values()) == {0.0}
            assert rows_of(answer) == world.expected(TABLES, world.last)
        for cn in world.states:
            answer = wh.query_at(TABLES, at=cn)
            assert (answer.route.taken is not None, answer.cn) == (True, cn)
            assert rows_of(answer) == world.expected(TABLES, cn)
        assert {v.name: v.cn for v in wh.status().views}["v_dpda"] == 0


@pytest.mark.parametrize("policy", ["ipda", "dpda", "snapshot"])
def test_a_deferred_view_is_not_moved_by_a_query_that_did_not_name_it(
    world: World, tmp_path: Path, spark: SparkSession, policy: str
) -> None:
    with opened(world, tmp_path, spark, policy) as wh:
        commit(wh, world, random.Random(policy), 3)
        before = [(v.cn, v.valid.end_cn) for v in wh.status().views if v.valid]
        assert before == [(0, 1)]
        answer = wh.query_at(TABLES)
        assert (answer.route.taken, answer.cn, answer.chosen.way) == (None, world.last, "live")
        assert rows_of(answer) == world.expected(TABLES, world.last)
        old = wh.query_at(TABLES, staleness=Staleness(HOUR))
        assert old.route.taken is not None
        assert rows_of(old) == world.expected(TABLES, old.cn)
        new = wh.query_at(TABLES, staleness=Staleness(timedelta(microseconds=1)))
        assert (new.route.taken, new.cn) == (None, world.last)
        new.close()
        found = wh.query_at(TABLES, at=0)
        assert found.route.taken is not None
        assert rows_of(found) == world.expected(TABLES, 0)
        beyond = wh.query_at(TABLES, at=world.last)
        assert rows_of(beyond) == world.expected(TABLES, world.last)
        shown = wh.query_at(TABLES, route="require", staleness=Staleness(as_published=True))
        assert rows_of(shown) == world.expected(TABLES, 0)
        assert [v.cn for v in wh.status().views] == [0], "what is shown stays"


def test_a_view_that_is_required_is_carried_or_says_why_not(
    world: World, tmp_path: Path, spark: SparkSession
) -> None:
    with opened(world, tmp_path, spark, "dpda") as wh:
        commit(wh, world, random.Random(2), 3)
        answer = wh.query_at(TABLES, route="require")
        assert (answer.cn, answer.chosen.carried) == (world.last, ("v_dpda",))
        assert rows_of(answer) == world.expected(TABLES, world.last)
        for sql, why in (
            (f"{TABLES} HAVING SUM(u.t) > 1", "SUM"),
            ("SELECT COUNT(*) FROM s.t", "same tables"),
            ("SELECT v.n FROM v_dpda v JOIN s.t q ON v.g = q.g", "beside tables"),
        ):
            with pytest.raises(QueryRefused, match="cannot be answered from a view") as refused:
                wh.query_at(sql, route="require")
            assert why in (refused.value.detail or "")
        with pytest.raises(TooStale):
            wh.query_at(
                "SELECT * FROM v_dpda",
                staleness=Staleness(timedelta(microseconds=1), as_published=True),
            )
        commit(wh, world, random.Random(3), 1)
        late = Staleness(timedelta(microseconds=1), OnStale.fail)
        with pytest.raises(TooStale):
            wh.query_at(TABLES, route="require", staleness=late)


def test_explain_tells_which_view_answers_and_why_the_others_do_not(
    world: World, tmp_path: Path, spark: SparkSession
) -> None:
    views = {
        "now": TABLES,
        "late": view("late", "'steadyview.policy' = 'dpda'", TABLES),
        "few": "SELECT COUNT(*) AS n FROM s.t t JOIN s.u u ON u.t = t.id WHERE u.x > 5",
        "other": "SELECT t.g FROM s.t t",
    }
    folder = write_project(tmp_path / "project", {"s": world.database}, views)
    with steadyview.open(folder, spark=spark) as wh:
        wh.run_once()
        sql = "SELECT COUNT(*) FROM s.u x JOIN s.t y ON y.id = x.t"
        plan = wh.routes(Wanted(sql))
        assert plan.taken is not None
        assert (plan.taken.view, plan.taken.rule) == ("now", "coarser groups")
        assert {o.view: o.why_not for o in plan.offers} == {
            "now": None,
            "late": "it is deferred: what it shows may be older than its tables",
        }
        assert {t.view: t.rule for t in plan.turned} == {"few": "where", "other": "from"}
        assert steadyview_plan(plan) == plan
        assert wh.routes(Wanted("SELECT * FROM now")).why == "it reads views: now"
        assert wh.routes(Wanted(sql, route=Route.off)).taken is None
        assert wh.query_at(sql).route == plan


def steadyview_plan(plan):
    return type(plan).of(plan.to_dict())


def test_the_run_answers_and_explains_for_other_commands(
    world: World, tmp_path: Path, spark: SparkSession
) -> None:
    with opened(world, tmp_path, spark, "immediate") as wh, Running(wh) as running:
        running.until(published)
        world.database.writer().execute("INSERT INTO u VALUES (1, 5)")
        with steadyview.open(tmp_path / "project") as other:
            told = other.told(Wanted(TABLES, route=Route.require))
            world.keep(told.facts.cn)
            assert told.facts.route is not None
            assert told.facts.route["view"] == "v_immediate"
            assert table_bag(told.table) == world.expected(TABLES, told.facts.cn)
            plan = other.routes(Wanted(TABLES))
            assert plan.taken is not None
            assert plan.taken.rule == "same text"


def test_a_query_that_cannot_capture_what_it_needs_is_to_be_asked_again(
    world: World, tmp_path: Path, spark: SparkSession
) -> None:
    with opened(world, tmp_path, spark, "immediate") as wh:
        world.database.writer().execute("INSERT INTO u VALUES (1, 5)")
        other = Holder(1, "elsewhere", 0, "test")
        with Lease.acquire(wh.project.warehouse, other):
            hour = wh.query_at(TABLES, staleness=Staleness(HOUR))
            assert rows_of(hour) == world.expected(TABLES, 0)
            with pytest.raises(StorageUnavailable, match="cannot be captured"):
                wh.query_at(TABLES, route="require")


# --- tables --------------------------------------------------------------------------------------


def test_a_source_is_asked_for_the_rows_that_constants_name(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    usual = as_of._question

    def noted(relation, columns, only):
        asked.append(only)
        return usual(relation, columns, only)

    monkeypatch.setattr(as_of, "_question", noted)
    database = SqliteFile(tmp_path / "s.db")
    database.create("p", "id INTEGER PRIMARY KEY, name TEXT COLLATE NOCASE, n INTEGER")
    writer = database.writer()
    writer.execute("INSERT INTO p VALUES (1, 'Ann', 1), (2, 'ann', 2), (3, NULL, 3), (4, 'B', 4)")
    folder = write_project(tmp_path / "project", {"s": database}, {"ids": "SELECT id FROM s.p"})
    with steadyview.open(folder, spark=spark) as wh:
        wh.run_once()
        writer.execute("UPDATE p SET name = 'Ann' WHERE id IN (3, 4)")
        writer.execute("UPDATE p SET name = 'C', n = 9 WHERE id = 1")
        writer.execute("DELETE FROM p WHERE id = 2")
        newest = wh.query_at("SELECT COUNT(*) FROM s.p", route="off").cn
        asked.clear()
        for name in ("id IN (1, 2, 4)", "name = 'Ann'", "'ann' = name"):
            sql = f"SELECT id, name, n FROM s.p WHERE {name}"
            for cn in range(newest + 1):
                found = rows_of(wh.query_at(sql, at=cn))
                whole = rows_of(wh.query_at(f"{sql} OR 1 = 0", at=cn))
                assert found == whole, (name, cn)
                assert asked.pop() is None
                assert asked.pop() is not None
    database.close()


def test_the_valid_time_of_an_answer_is_also_that_of_the_tables_it_reads(
    world: World, tmp_path: Path, spark: SparkSession
) -> None:
    with opened(world, tmp_path, spark, "immediate") as wh:
        # changes the table, and no row of the view
        world.database.writer().execute("INSERT INTO t VALUES (77, 'zz')")
        wh.run_once()
        for sql in ("SELECT v.n, q.id FROM v_immediate v JOIN s.t q", "SELECT q.id FROM s.t q"):
            answer = wh.query_at(sql)
            assert (answer.cn, answer.valid_time.first) == (1, 1)
            assert wh.query_at(sql, at=0).valid_time.end == 1
            assert answer.chosen.ages.keys() == {"s"}
            assert len(bag(answer.frame))
