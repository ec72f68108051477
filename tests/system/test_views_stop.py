"""A view that meets an error stops alone, just before it; a lost column stops its users."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import steadyview
from steadyview.algebra import Bag
from steadyview.changes import StreamPosition
from steadyview.runtime.maintainer import Maintainer
from steadyview.runtime.schemas import known_relations
from steadyview.runtime.status import ViewStatus
from steadyview.runtime.warehouse import Warehouse
from tests.system.databases import PostgresDatabase, SqliteFile, write_project, write_view
from tests.system.maintained import capturing, read


def view_of(wh: Warehouse, name: str) -> ViewStatus:
    return {v.name: v for v in wh.status().views}[name]


def states(wh: Warehouse) -> dict[str, str]:
    return {v.name: v.state for v in wh.status().views}


# --- errors of a view's own expressions ----------------------------------------------------------


@pytest.fixture
def numbers(tmp_path: Path) -> Iterator[SqliteFile]:
    database = SqliteFile(tmp_path / "s.db")
    database.create("r", "x INTEGER, y INTEGER")
    database.create("s", "x INTEGER, z INTEGER")
    database.writer().execute("INSERT INTO r VALUES (1, 4), (2, 2)")
    database.writer().execute("INSERT INTO s VALUES (1, 100), (2, 200), (3, 300)")
    yield database
    database.close()


NUMBERS = {
    "fine": "SELECT r.x, s.z FROM s.r JOIN s.s ON r.x = s.x",
    "division": "SELECT r.x, s.z / r.y AS q FROM s.r JOIN s.s ON r.x = s.x",
    "overflow": "SELECT x, CAST(y * 100 AS SMALLINT) AS small FROM s.r",
    "ratio": "SELECT x, 100 DIV (SUM(y) - 1000) AS q FROM s.r GROUP BY x",
    "divided": "SELECT COUNT(*) AS n, SUM(s.z DIV r.y) AS total FROM s.r JOIN s.s ON r.x = s.x",
}


def test_a_failing_expression_stops_its_view_just_before_the_failing_cn(
    numbers: SqliteFile, tmp_path: Path, spark: SparkSession
) -> None:
    folder = write_project(tmp_path / "project", {"s": numbers}, NUMBERS)
    writer = numbers.writer()
    with steadyview.open(folder, spark=spark) as wh:
        wh.run_once()
        with capturing(wh) as admit:
            for statement in (
                "INSERT INTO r VALUES (3, 3)",
                "UPDATE r SET y = 5 WHERE x = 1",
                "INSERT INTO r VALUES (1, 0)",
                "UPDATE r SET y = 1000 WHERE x = 2",
                "INSERT INTO r VALUES (2, 1)",
            ):
                writer.execute(statement)
                admit("s")
        wh.run_once()
        assert states(wh) == {
            "fine": "active",
            "division": "stopped",
            "ratio": "stopped",
            "divided": "stopped",
            "overflow": "stopped",
        }
        assert {v.name: v.cn for v in wh.status().views} == {
            "fine": 5,
            "division": 2,
            "ratio": 3,
            "divided": 2,
            "overflow": 3,
        }
        assert "DIVIDE_BY_ZERO" in (view_of(wh, "division").error or "")
        assert "SMALLINT" in (view_of(wh, "overflow").error or "")
        assert read(wh, "division") == Bag.of([(1, 20.0), (2, 100.0), (3, 100.0)])
        assert read(wh, "divided") == Bag.of([(3, 220)])
        assert read(wh, "ratio") == Bag.of([(1, 0), (2, 0), (3, 0)])
        assert read(wh, "overflow") == Bag.of([(1, 500), (2, 200), (3, 300), (1, 0)])
        assert all(v.equal for v in wh.verify())
        _stays_until_the_row_is_gone(wh, numbers)
        _is_rebuilt_when_its_sql_is_corrected(wh, folder)


def _stays_until_the_row_is_gone(wh: Warehouse, numbers: SqliteFile) -> None:
    """Later changes move the others; once the row is mended, a first state anew goes on."""
    numbers.writer().execute("INSERT INTO s VALUES (9, 9)")
    wh.run_once()
    assert (view_of(wh, "fine").cn, view_of(wh, "division").cn) == (6, 2)
    assert view_of(wh, "division").state == "stopped"
    assert read(wh, "division") == Bag.of([(1, 20.0), (2, 100.0), (3, 100.0)])
    numbers.writer().execute("DELETE FROM r WHERE y = 0")
    wh.run_once()
    assert (view_of(wh, "division").state, view_of(wh, "division").cn) == ("active", 7)
    assert view_of(wh, "division").error is None
    assert view_of(wh, "overflow").state == "stopped", "its row is still there"
    assert all(v.equal for v in wh.verify(["division", "fine"]))


def _is_rebuilt_when_its_sql_is_corrected(wh: Warehouse, folder: Path) -> None:
    corrected = NUMBERS["overflow"].replace("SMALLINT", "INT")
    write_view(folder, "overflow", corrected)
    wh.run_once()
    assert (view_of(wh, "overflow").state, view_of(wh, "overflow").cn) == ("active", 7)
    assert view_of(wh, "overflow").error is None
    assert all(v.equal for v in wh.verify(["overflow", "fine"]))


def test_a_view_that_fails_in_its_first_state_stops_alone(
    numbers: SqliteFile, tmp_path: Path, spark: SparkSession
) -> None:
    numbers.writer().execute("INSERT INTO r VALUES (1, 0)")
    folder = write_project(tmp_path / "project", {"s": numbers}, NUMBERS)
    with steadyview.open(folder, spark=spark) as wh:
        wh.run_once()
        assert states(wh)["fine"] == states(wh)["overflow"] == "active"
        assert view_of(wh, "division").cn is None
        assert "DIVIDE_BY_ZERO" in (view_of(wh, "division").error or "")
        numbers.writer().execute("DELETE FROM r WHERE y = 0")
        wh.run_once()
        assert set(states(wh).values()) == {"active"}
        assert all(v.equal for v in wh.verify())


def test_a_first_state_holds_nothing_that_was_lost_after_its_snapshot(
    numbers: SqliteFile, tmp_path: Path, spark: SparkSession
) -> None:
    folder = write_project(tmp_path / "project", {"s": numbers}, {"fine": NUMBERS["fine"]})
    writer = numbers.writer()
    with steadyview.open(folder, spark=spark) as wh:
        wh.run_once()
        write_view(folder, "added", "SELECT x, y FROM s.r")
        with capturing(wh) as admit:

            def late(source: str, position: StreamPosition) -> None:
                """A bad value is admitted after the snapshot and before the moment's cn is read."""
                if not writer.execute("SELECT 1 FROM r WHERE x = 9"):
                    writer.execute("INSERT INTO r VALUES (9, 'nine')")
                admit(source)

            plans = wh._plans(known_relations(wh._parts))
            maintainer = Maintainer(wh._parts, plans, late)
            maintainer.reconcile()
            maintainer.cycle(frozenset({"s"}), building=True)
            assert (view_of(wh, "added").state, view_of(wh, "added").cn) == ("building", None)
            writer.execute("UPDATE r SET y = 9 WHERE x = 9")
            maintainer.cycle(frozenset({"s"}), building=True)
        assert read(wh, "added") == Bag.of([(1, 4), (2, 2), (9, 9)])
        assert all(v.equal for v in wh.verify(["added"]))


# --- what a source loses -------------------------------------------------------------------------

ITEMS = {
    "names": "SELECT id, name FROM pg.items",
    "amounts": "SELECT id, amount FROM pg.items",
    "joined": "SELECT i.name, k.label FROM pg.items i JOIN pg.kinds k ON k.id = i.kind",
    "labels": "SELECT label, COUNT(*) AS n FROM pg.kinds GROUP BY label",
}


@pytest.fixture
def items(tmp_path: Path) -> Iterator[PostgresDatabase]:
    database = PostgresDatabase()
    database.create("items", "id bigint PRIMARY KEY, name text, amount numeric(10,2), kind int")
    database.create("kinds", "id int PRIMARY KEY, label text")
    writer = database.writer()
    writer.execute("INSERT INTO kinds VALUES (1, 'one'), (2, 'two')")
    writer.execute("INSERT INTO items VALUES (1, 'a', 1.50, 1), (2, 'b', NULL, 2)")
    write_project(tmp_path / "project", {"pg": database}, ITEMS)
    yield database
    database.close()


@pytest.fixture
def wh(items: PostgresDatabase, tmp_path: Path, spark: SparkSession) -> Iterator[Warehouse]:
    with steadyview.open(tmp_path / "project", spark=spark) as opened:
        opened.run_once()
        assert set(states(opened).values()) == {"active"}
        yield opened


def assert_only_amounts_stopped(wh: Warehouse, name: str = "amounts") -> None:
    others = {n: s for n, s in states(wh).items() if n != name}
    assert view_of(wh, name).state == "stopped", wh.status()
    assert set(others.values()) == {"active"}
    newest = wh.status().cn
    assert {v.cn for v in wh.status().views if v.name != name} == {newest}
    assert all(v.equal for v in wh.verify(list(others)))


def test_a_dropped_column_stops_the_views_that_use_it(
    wh: Warehouse, items: PostgresDatabase
) -> None:
    writer = items.writer()
    writer.execute("INSERT INTO items VALUES (3, 'c', 3.00, 1)")
    writer.execute("ALTER TABLE items DROP COLUMN amount")
    writer.execute("INSERT INTO items VALUES (4, 'd', 2)")
    writer.execute("UPDATE kinds SET label = 'uno' WHERE id = 1")
    wh.run_once()
    assert_only_amounts_stopped(wh)
    assert "amount" in (view_of(wh, "amounts").error or "")
    assert read(wh, "amounts", at=0) == Bag.of([(1, Decimal("1.50")), (2, None)])
    assert read(wh, "joined").map(lambda row: row) == Bag.of(
        [("a", "uno"), ("c", "uno"), ("b", "two"), ("d", "two")]
    )


def test_a_column_dropped_in_silence_stops_its_views_at_the_next_question(
    wh: Warehouse, items: PostgresDatabase
) -> None:
    """No row of the table changes afterwards: only a lookup meets the missing column."""
    writer = items.writer()
    writer.execute("ALTER TABLE items DROP COLUMN name")
    writer.execute("INSERT INTO kinds VALUES (3, 'three')")
    wh.run_once()
    assert view_of(wh, "joined").state == "stopped"
    assert "name" in (view_of(wh, "joined").error or "")
    assert states(wh)["amounts"] == states(wh)["labels"] == "active"
    assert view_of(wh, "labels").cn == wh.status().cn
    assert all(v.equal for v in wh.verify(["amounts", "labels"]))


def test_a_retyped_column_stops_the_views_that_use_it(
    wh: Warehouse, items: PostgresDatabase
) -> None:
    writer = items.writer()
    writer.execute("ALTER TABLE items ALTER COLUMN amount TYPE text")
    writer.execute("INSERT INTO items VALUES (4, 'd', 'much', 2)")
    wh.run_once()
    assert_only_amounts_stopped(wh)
    assert "amount" in (view_of(wh, "amounts").error or "")


def test_a_value_that_cannot_be_kept_exactly_stops_the_views_that_use_it(
    wh: Warehouse, items: PostgresDatabase
) -> None:
    items.writer().execute("INSERT INTO items VALUES (4, 'd', 'NaN', 2)")
    wh.run_once()
    assert_only_amounts_stopped(wh)
    assert "NaN" in (view_of(wh, "amounts").error or "")


def test_an_added_column_stops_nothing_and_serves_new_views(
    wh: Warehouse, items: PostgresDatabase, tmp_path: Path
) -> None:
    writer = items.writer()
    writer.execute("ALTER TABLE items ADD COLUMN colour text DEFAULT 'grey'")
    writer.execute("INSERT INTO items VALUES (4, 'd', 4.00, 2, 'red')")
    wh.run_once()
    assert set(states(wh).values()) == {"active"}
    write_view(tmp_path / "project", "colours", "SELECT id, colour FROM pg.items")
    wh.run_once()
    writer.execute("UPDATE items SET colour = 'blue' WHERE id = 1")
    wh.run_once()
    assert read(wh, "colours") == Bag.of([(1, "blue"), (2, "grey"), (4, "red")])
    assert set(states(wh).values()) == {"active"}
    assert all(v.equal for v in wh.verify())
