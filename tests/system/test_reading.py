"""Reading views: at any cn or time, by other Delta readers, beside a user's own Spark."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import steadyview
from steadyview.algebra import Bag
from steadyview.errors import OutsideRetention
from steadyview.runtime.warehouse import Warehouse
from steadyview.warehouse import apply
from tests.system.databases import SqliteFile, Writer, write_project
from tests.system.maintained import bag, base_table, capturing, read, rolling, stored, table_bag

VIEWS = {
    "bought": """SELECT p.buyer, p.price, w.town
                 FROM shop.purchases p JOIN shop.buyers w ON w.name = p.buyer""",
    "by_town": """SELECT w.town, COUNT(*) AS n, SUM(p.price) AS total, AVG(p.price) AS average,
                         COUNT(p.price) AS priced
                  FROM shop.purchases p JOIN shop.buyers w ON w.name = p.buyer GROUP BY w.town""",
    "overall": "SELECT COUNT(*) AS n, SUM(price) AS total FROM shop.purchases WHERE price > 100",
    "towns": """CREATE MATERIALIZED VIEW towns TBLPROPERTIES ('steadyview.fallback' = 'recompute')
                AS SELECT town FROM (SELECT town, ROW_NUMBER() OVER (PARTITION BY town ORDER BY
                town) AS n FROM shop.buyers) WHERE n = 1""",
}
HISTORY = (
    "INSERT INTO purchases VALUES ('ann', 2.50), ('ann', 2.50)",
    "INSERT INTO purchases VALUES ('bob', NULL)",
    "INSERT INTO purchases VALUES ('ann', 150), ('cid', 7)",
    "UPDATE buyers SET town = 'Rome' WHERE name = 'bob'",
    "DELETE FROM purchases WHERE price = 150",
    "DELETE FROM purchases WHERE buyer = 'ann'",
    "INSERT INTO buyers VALUES ('dan', 'Oslo')",
)
NEWEST = len(HISTORY)


def euro(text: str) -> Decimal:
    return Decimal(text)


BY_TOWN: dict[int, list[tuple[Any, ...]]] = {
    0: [],
    1: [("Bonn", 2, euro("5.00"), euro("2.500000"), 2)],
    2: [("Bonn", 2, euro("5.00"), euro("2.500000"), 2), (None, 1, None, None, 0)],
    3: [
        ("Bonn", 3, euro("155.00"), euro("51.666667"), 3),
        (None, 2, euro("7.00"), euro("7.000000"), 1),
    ],
    4: [
        ("Bonn", 3, euro("155.00"), euro("51.666667"), 3),
        (None, 1, euro("7.00"), euro("7.000000"), 1),
        ("Rome", 1, None, None, 0),
    ],
    6: [(None, 1, euro("7.00"), euro("7.000000"), 1), ("Rome", 1, None, None, 0)],
}


def new_shop(file: Path) -> SqliteFile:
    database = SqliteFile(file)
    database.create("purchases", "buyer TEXT, price DECIMAL(10,2)")
    database.create("buyers", "name TEXT, town TEXT")
    database.writer().execute(
        "INSERT INTO buyers VALUES ('ann', 'Bonn'), ('bob', NULL), ('cid', NULL)"
    )
    return database


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqliteFile]:
    database = new_shop(tmp_path_factory.mktemp("shop") / "shop.db")
    yield database
    database.close()


@pytest.fixture(scope="module")
def wh(
    shop: SqliteFile, tmp_path_factory: pytest.TempPathFactory, spark: SparkSession
) -> Iterator[Warehouse]:
    """Seven commits in two batches; the base was rolled to cn 4, then to cn 7."""
    folder = write_project(tmp_path_factory.mktemp("reading"), {"shop": shop}, VIEWS)
    with steadyview.open(folder, spark=spark) as opened:
        with rolling():
            opened.run_once()
            _commit(opened, shop.writer(), HISTORY[:4])
            _commit(opened, shop.writer(), HISTORY[4:])
        yield opened


def _commit(wh: Warehouse, writer: Writer, statements: tuple[str, ...]) -> None:
    with capturing(wh) as admit:
        for statement in statements:
            writer.execute(statement)
            admit("shop")
    wh.run_once()


@pytest.mark.parametrize("cn", BY_TOWN)
def test_a_read_at_a_cn_shows_that_commit_and_no_later_one(wh: Warehouse, cn: int) -> None:
    """SUM over NULLs only is NULL, NULL is one group, a group without rows is gone."""
    assert read(wh, "by_town", at=cn) == Bag.of(BY_TOWN[cn])


def test_decimals_keep_sparks_types(wh: Warehouse) -> None:
    fields = {f.name: f.dataType.simpleString() for f in wh.view("by_town").read().schema}
    assert fields == {
        "town": "string",
        "n": "bigint",
        "total": "decimal(20,2)",
        "average": "decimal(14,6)",
        "priced": "bigint",
    }


def test_a_global_aggregate_without_rows_is_one_row(wh: Warehouse) -> None:
    shown = [read(wh, "overall", at=cn) for cn in (0, 2, 3, 4, 5, NEWEST)]
    none, one = Bag.of([(0, None)]), Bag.of([(1, euro("150.00"))])
    assert shown == [none, none, one, one, none, none]


def test_reads_on_both_sides_of_the_base_agree_with_recomputation(wh: Warehouse) -> None:
    bases = {wh._catalog.views.get(name).base_cn for name in ("bought", "by_town", "overall")}
    assert bases <= {5, 6, 7}, "the bases were rolled"
    for cn in (1, 5, NEWEST):
        verdicts = wh.verify(["bought", "by_town", "overall"], at=cn)
        assert [(v.cn, v.equal) for v in verdicts] == [(cn, True)] * 3


def test_duplicates_are_counted(wh: Warehouse) -> None:
    assert read(wh, "bought", at=1) == Bag.of([("ann", euro("2.50"), "Bonn")] * 2)


def test_a_time_means_the_last_commit_at_or_before_it(wh: Warehouse) -> None:
    commits = wh._catalog.commits
    third = datetime.fromtimestamp(commits.time_of(3) / 1_000_000, UTC)
    before = third - timedelta(microseconds=1)
    naive = third.replace(tzinfo=None)
    for at, cn in ((third, 3), (third.isoformat(), 3), (before, 2), (naive, 3)):
        assert read(wh, "by_town", at=at) == Bag.of(BY_TOWN[cn])
    answer = wh.query_at("SELECT COUNT(*) FROM bought", at=third)
    assert (answer.cn, answer.time) == (3, third)


@pytest.mark.parametrize("at", [-1, NEWEST + 1])
def test_a_read_outside_of_what_is_kept_is_refused_with_the_oldest_cn(
    wh: Warehouse, at: int
) -> None:
    with pytest.raises(OutsideRetention) as refused:
        wh.view("bought").read(at=at)
    assert f"cn {at}" in refused.value.message
    assert "oldest cn is 0" in str(refused.value.detail)


def test_states_behind_the_retention_are_refused_with_the_oldest_cn(
    wh: Warehouse, shop: SqliteFile, tmp_path: Path, spark: SparkSession
) -> None:
    """A view that starts later has no earlier states; its own first cn is the oldest."""
    late = {**VIEWS, "late": "SELECT name FROM shop.buyers"}
    write_project(wh.project.root, {"shop": shop}, late)
    wh.run_once()
    with pytest.raises(OutsideRetention) as refused:
        wh.view("late").read(at=3)
    assert f"oldest cn is {NEWEST}" in str(refused.value.detail)
    assert read(wh, "late") == Bag.of([("ann",), ("bob",), ("cid",), ("dan",)])


def test_views_in_one_query_are_of_one_cn(wh: Warehouse) -> None:
    sql = "SELECT (SELECT SUM(price) FROM bought), (SELECT SUM(total) FROM by_town)"
    for cn in range(NEWEST + 1):
        rows, totals = wh.query(sql, at=cn).first()
        assert rows == totals


def test_the_history_names_every_commit_that_changed_the_view(wh: Warehouse) -> None:
    found = [(c.cn, c.source, c.added, c.removed) for c in wh.view("by_town").history()]
    assert found == [
        (6, "shop", 0, 1),
        (5, "shop", 1, 1),
        (4, "shop", 2, 1),
        (3, "shop", 2, 2),
        (2, "shop", 1, 0),
        (1, "shop", 1, 0),
    ]
    assert [(c.cn, c.added, c.removed) for c in wh.view("bought").history(limit=2)] == [
        (6, 0, 2),
        (5, 0, 1),
    ]
    assert [(c.cn, c.added, c.removed) for c in wh.view("overall").history()] == [
        (5, 1, 1),
        (3, 1, 1),
    ]


def test_a_recomputed_view_follows(wh: Warehouse) -> None:
    assert read(wh, "towns") == Bag.of([("Bonn",), (None,), ("Rome",), ("Oslo",)])
    assert read(wh, "towns", at=4) == Bag.of([("Bonn",), (None,), ("Rome",)])
    with pytest.raises(OutsideRetention, match="states at cn 0 and cn 4"):
        wh.view("towns").read(at=2)


def test_a_base_is_a_plain_delta_table(wh: Warehouse) -> None:
    for name in ("bought", "by_town", "overall"):
        row = wh._catalog.views.get(name)
        table = base_table(wh, name, row.base_version)
        assert table.column_names == [n for n, _ in wh._plan(name).columns]
        expected = read(wh, name, at=row.base_cn)
        assert table_bag(table) == expected


def test_a_base_is_due_when_its_residual_is_large_beside_it_or_in_many_files(
    wh: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, row = stored(wh, "bought"), wh._catalog.views.get("bought")
    trailing = replace(row, base_cn=0)
    assert not apply.due(store, row)
    assert not apply.due(store, trailing), "a handful of rows waits, however small the base is"
    with monkeypatch.context() as patched:
        patched.setattr(apply, "RESIDUAL_ROWS", 1)
        assert apply.due(store, trailing)
        patched.setattr(apply, "RESIDUAL_SHARE", 1000.0)
        assert not apply.due(store, trailing)
    monkeypatch.setattr(apply, "RESIDUAL_FILES", 1)
    assert apply.due(store, trailing)


def test_a_base_of_several_buckets_is_rolled_bucket_by_bucket(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apply, "_BUCKET_BYTES", 40_000)
    database = SqliteFile(tmp_path / "s.db")
    database.create("r", "x INTEGER, y TEXT")
    writer, luck = database.writer(), random.Random(1)
    rows = ", ".join(f"({i}, '{luck.randbytes(40).hex()}')" for i in range(2000))
    writer.execute(f"INSERT INTO r VALUES {rows}, (NULL, NULL), (NULL, NULL)")
    views = {
        "rows": "SELECT x, y FROM s.r",
        "groups": "SELECT y, COUNT(*) AS n, SUM(x) AS total FROM s.r GROUP BY y",
    }
    folder = write_project(tmp_path / "project", {"s": database}, views)
    with steadyview.open(folder, spark=spark) as wh, rolling():
        wh.run_once()
        writer.execute("INSERT INTO r VALUES (1, 'new'), (NULL, NULL)")
        wh.run_once()
        assert _buckets(wh, "rows") > 1
        assert _buckets(wh, "groups") > 1
        cut = {name: _files(wh, name) for name in views}
        writer.execute("DELETE FROM r WHERE x = 1 AND y = 'new'")
        wh.run_once()
        for name in views:
            kept = cut[name] & _files(wh, name)
            assert kept, "buckets without a change keep their files"
            assert kept != cut[name]
        assert all(v.equal for cn in (0, 2) for v in wh.verify(at=cn))
        assert table_bag(base_table(wh, "rows")) == read(wh, "rows")
    database.close()


def _files(wh: Warehouse, view: str) -> set[str]:
    return {f.relative for f in stored(wh, view).base.files()}


def _buckets(wh: Warehouse, view: str) -> int:
    return apply._buckets_of(stored(wh, view).base.files())


def test_a_users_own_session_stays_untouched(
    tmp_path: Path, spark: SparkSession
) -> None:
    # a file of its own: a log belongs to one warehouse
    shop = new_shop(tmp_path / "own.db")
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    session.conf.set("spark.sql.ansi.enabled", "false")
    session.sql("SELECT 'mine' AS whose").createOrReplaceTempView("bought")
    settings = _settings(session)
    folder = write_project(tmp_path / "project", {"shop": shop}, {"bought": VIEWS["bought"]})
    with steadyview.open(folder, spark=session) as wh:
        wh.run_once()
        assert wh.query("SELECT COUNT(*) FROM bought").first()[0] == len(
            wh.view("bought").read().collect()
        )
        wh.verify()
    assert _settings(session) == settings
    assert [t.name for t in session.catalog.listTables()] == ["bought"]
    assert bag(session.table("bought")) == Bag.of([("mine",)])
    assert session.sql("SELECT 1").first()[0] == 1, "the session goes on"
    shop.close()


def _settings(session: SparkSession) -> dict[str, str]:
    return {row.key: row.value for row in session.sql("SET").collect()}
