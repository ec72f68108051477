"""A long first build keeps what it has read, however often it is killed, while writers go on.

Orders at PostgreSQL and customers at SQLite are read in spans of some rows. Writers change rows,
move them from span to span by their key, delete them and bring new ones.
"""

from __future__ import annotations

import random
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

import steadyview
from steadyview.errors import StorageUnavailable
from steadyview.runtime import building
from steadyview.runtime.batch import Batch
from steadyview.runtime.maintainer import Maintainer
from tests.crash.keepers import Keeper, Killed
from tests.crash.test_full_disk import disk
from tests.system.databases import PostgresDatabase, SqliteFile, write_project, write_view

__all__ = ["disk"]
SPAN = 60
VIEWS = {
    "sold": """
        SELECT c.region, COUNT(*) AS orders, SUM(o.amount) AS total
        FROM shop.orders o JOIN crm.customers c ON c.id = o.customer GROUP BY c.region
    """,
    "big": "SELECT o.id, o.note, t.name FROM shop.orders o JOIN crm.tiers t ON t.least < o.amount",
}
QUICK = "SELECT t.name FROM crm.tiers t"
LONG = """SELECT o.id, o.amount, o.customer FROM shop.orders o"""
SPANS = "SELECT source, number, rows IS NOT NULL FROM spans ORDER BY build, source, number"


class Shop:
    """Two databases of some hundred rows, and what changes them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "project"
        self.shop, self.crm = PostgresDatabase(), SqliteFile(folder / "crm.db")
        key = "id int PRIMARY KEY"
        self.shop.create("orders", f"{key}, customer int, amount int, note text")
        self.crm.create("customers", "id INTEGER PRIMARY KEY, region TEXT")
        self.crm.create("tiers", "name TEXT, least INTEGER")
        self._orders, self._customers = self.shop.writer(), self.crm.writer()
        self._random = random.Random(3)
        orders = "SELECT n, n % 100 + 1, n % 90, repeat('x', 900) FROM generate_series(1, 300) n"
        self._orders.execute(f"INSERT INTO orders {orders}")
        self._orders.execute("ANALYZE orders")
        with self._customers.transaction() as writer:
            for n in range(1, 171):
                writer.execute("INSERT INTO customers VALUES (?, ?)", n, f"region {n % 4}")
            writer.execute("INSERT INTO tiers VALUES ('gold', 80), ('gold', 80), (NULL, 60)")
        write_project(self.folder, {"shop": self.shop, "crm": self.crm}, VIEWS)

    @property
    def warehouse(self) -> Path:
        return self.folder / "warehouse"

    def change(self) -> None:
        """Rows move to other spans by their key, change in place, go, and come."""
        one, other, third = self._random.sample(range(1, 301), 3)
        with self._orders.transaction() as writer:
            writer.execute("UPDATE orders SET id = id + 10000 WHERE id = ?", one)
            writer.execute("UPDATE orders SET id = ? WHERE id = 10000 + ?", one, other)
            writer.execute("UPDATE orders SET amount = amount + 7 WHERE id = ?", third)
            writer.execute("DELETE FROM orders WHERE id = ?", other)
            writer.execute("INSERT INTO orders VALUES (?, 5, 60, 'new')", -self._next())
        with self._customers.transaction() as writer:
            writer.execute("UPDATE customers SET id = 500 - id WHERE id = ?", one % 100 + 1)
            writer.execute("UPDATE customers SET region = NULL WHERE id = ?", other % 100 + 1)
            writer.execute("DELETE FROM customers WHERE id = ?", third % 100 + 1)
            writer.execute("UPDATE tiers SET least = least - 1")

    def _next(self) -> int:
        ((found,),) = self._orders.execute("SELECT 1 - least(min(id), 0) FROM orders")
        return found

    def expected(self, view: str) -> list[str]:
        """The view over what the databases hold now, by SQLite."""
        with closing(sqlite3.connect(":memory:")) as db:
            db.execute("CREATE TABLE orders (id, customer, amount, note)")
            db.execute("CREATE TABLE customers (id, region)")
            db.execute("CREATE TABLE tiers (name, least)")
            orders = self._orders.execute("SELECT * FROM orders")
            db.executemany("INSERT INTO orders VALUES (?, ?, ?, ?)", orders)
            for table in ("customers", "tiers"):
                rows = self._customers.execute(f"SELECT * FROM {table}")
                db.executemany(f"INSERT INTO {table} VALUES (?, ?)", rows)
            text = VIEWS[view].replace("shop.", "").replace("crm.", "")
            return sorted(repr(tuple(row)) for row in db.execute(text).fetchall())

    def asked(self, sql: str) -> list[tuple]:
        """What the catalog's file says."""
        with closing(sqlite3.connect(self.warehouse / "catalog.db", timeout=30)) as catalog:
            return catalog.execute(sql).fetchall()

    def files(self) -> dict[str, tuple[int, int]]:
        """The stored spans, each with what changes when it is written again."""
        found = sorted((self.warehouse / "builds").rglob("*.parquet"))
        return {str(p): (p.stat().st_ino, p.stat().st_mtime_ns) for p in found}

    def close(self) -> None:
        self.shop.close()
        self.crm.close()


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    shop = Shop(tmp_path)
    yield shop
    shop.close()


@pytest.fixture
def small_spans(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "SPAN", SPAN)


class Writers:
    """The databases change all the time, until the block ends."""

    def __init__(self, shop: Shop) -> None:
        self._shop, self._end = shop, threading.Event()
        self._thread = threading.Thread(target=self._write)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def _write(self) -> None:
        while not self._end.wait(0.3):
            self._shop.change()


class Stopped(Exception):
    """In the place of a kill: nothing of ours catches it."""


@pytest.fixture
def stop_after(monkeypatch: pytest.MonkeyPatch, small_spans: None):
    """Have builds stop after so many spans (None: never) from now on."""

    def set_up(spans: int | None) -> None:
        left = [spans]

        def reached(point: str) -> None:
            if point == "span-stored" and left[0] is not None:
                left[0] -= 1
                if not left[0]:
                    raise Stopped

        monkeypatch.setattr(building, "crash_point", reached)

    return set_up


@pytest.fixture
def begun(shop: Shop, spark, stop_after) -> Iterator[steadyview.Warehouse]:
    """A build that was stopped after three spans, of orders or of customers; then all changed."""
    with steadyview.open(shop.folder, spark=spark) as wh:
        stop_after(3)
        with pytest.raises(Stopped):
            wh.run_once()
        stop_after(None)
        shop.change()
        yield wh


def reads(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """A list that grows with every span that is read."""
    found: list[tuple[str, int]] = []
    keep = building.Building._keep

    def kept(self, build, span, written):
        found.append((span.relation.source, span.number))
        return keep(self, build, span, written)

    monkeypatch.setattr(building.Building, "_keep", kept)
    return found


def check_here(shop: Shop, wh: steadyview.Warehouse, views=tuple(VIEWS)) -> None:
    """Views are what the databases say, and the first state of each what `verify` finds."""
    wh.run_once()
    for view in views:
        rows = sorted(repr(tuple(row)) for row in wh.view(view).read().collect())
        assert rows == shop.expected(view), view
    start = max(cn for (cn,) in shop.asked("SELECT start_cn FROM views"))
    for at in (start, None):
        assert all(verdict.equal for verdict in wh.verify(None, at))


def life(shop: Shop, spark, crash_at: str | None) -> None:
    keeper = Keeper(shop.folder, spark)
    try:
        keeper.ask("once", crash_at=crash_at, span=SPAN)
    finally:
        keeper.end()


def check_now(shop: Shop, reader: Keeper) -> None:
    """Views are what the databases say; nobody writes meanwhile."""
    reader.ask("once", span=SPAN)
    for view in VIEWS:
        rows = sorted(repr(tuple(row)) for row in reader.ask("rows", view=view))
        assert rows == shop.expected(view), view


def test_killed_after_every_span_each_life_goes_on_and_no_span_is_read_twice(shop, spark):
    before = {view: shop.expected(view) for view in VIEWS}
    with pytest.raises(Killed):
        life(shop, spark, "build-begun")
    ((cn,),) = shop.asked("SELECT cn FROM builds")
    spans = shop.asked(SPANS)
    counts = {name: sum(s[0] == name for s in spans) for name in ("shop", "crm")}
    assert min(counts.values()) > 2, counts
    kept: dict[str, tuple[int, int]] = {}
    with Writers(shop):
        for number in range(1, len(spans) + 1):
            point = "span-stored" if number % 2 else "span-written:2"
            with pytest.raises(Killed):
                life(shop, spark, point if number < len(spans) else "span-stored")
            stored = [s for s in shop.asked(SPANS) if s[2]]
            assert len(stored) == number
            assert shop.files().items() >= kept.items(), "a finished span was written again"
            done = {p for p in shop.files() if _number(p) in {(s[0], s[1]) for s in stored}}
            kept = {p: at for p, at in shop.files().items() if p in done}
    assert len(kept) == len(spans)
    keeper = Keeper(shop.folder, spark)
    keeper.ask("once", span=SPAN)
    assert shop.asked("SELECT * FROM builds") == []
    assert shop.files() == {}
    starts = dict(shop.asked("SELECT name, start_cn FROM views"))
    assert starts == dict.fromkeys(VIEWS, cn)
    for view, rows in before.items():
        found = sorted(repr(tuple(row)) for row in keeper.ask("rows", view=view, at=cn))
        assert found == rows, "the state when the build began"
    for at in (cn, cn + 1, None):
        assert all(v["equal"] for v in keeper.ask("verify", at=at))
    shop.change()
    check_now(shop, keeper)
    keeper.end()


def test_what_was_stored_is_not_read_again_and_the_rest_is(begun, shop, monkeypatch):
    stored = [(s[0], s[1]) for s in shop.asked(SPANS) if s[2]]
    every = [(s[0], s[1]) for s in shop.asked(SPANS)]
    read = reads(monkeypatch)
    begun.run_once()
    assert sorted(read) == sorted(set(every) - set(stored))
    check_here(shop, begun)


def test_a_damaged_and_a_missing_span_are_read_again(begun, shop, monkeypatch):
    damaged, missing, _ = map(Path, shop.files())
    content = bytearray(damaged.read_bytes())
    content[len(content) // 3] ^= 255
    damaged.write_bytes(content)
    missing.unlink()
    stored = [(s[0], s[1]) for s in shop.asked(SPANS) if s[2]]
    read = reads(monkeypatch)
    begun.run_once()
    assert {s for s in stored if s in read} == {_number(str(damaged)), _number(str(missing))}
    check_here(shop, begun)


def test_the_log_is_kept_as_long_as_a_build_needs_it(begun, shop, spark, stop_after):
    stop_after(1)
    with pytest.raises(Stopped):
        begun.run_once()
    begun.close()
    assert shop.asked("SELECT last_cn > 0 FROM warehouse") == [(1,)]
    keeper = Keeper(shop.folder, spark)
    keeper.ask("tidy")
    assert shop.asked("SELECT oldest_cn FROM warehouse") == shop.asked("SELECT cn FROM builds")
    assert len(shop.files()) == 4
    check_now(shop, keeper)
    assert all(v["equal"] for v in keeper.ask("verify"))
    keeper.ask("tidy")
    ((oldest,),) = shop.asked("SELECT oldest_cn FROM warehouse")
    assert oldest > 0
    keeper.end()


def test_a_changed_text_begins_anew_and_leaves_nothing_behind(begun, shop):
    ((old,),) = shop.asked("SELECT id FROM builds")
    for view in VIEWS:
        write_view(shop.folder, view, VIEWS[view].replace("SELECT", "SELECT 1 AS one,"))
    begun.run_once()
    assert shop.asked("SELECT * FROM builds") == shop.asked("SELECT * FROM spans") == []
    assert list((shop.warehouse / "builds").iterdir()) == []
    ((start,),) = shop.asked("SELECT DISTINCT start_cn FROM views WHERE state = 'active'")
    assert start > 0, "not the cn of the build before"
    assert all(verdict.equal for verdict in begun.verify(None, start))
    assert old == 1


def test_views_that_are_gone_leave_nothing_behind(begun, shop):
    for view in VIEWS:
        (shop.folder / "views" / f"{view}.sql").unlink()
    write_view(shop.folder, "quick", QUICK)
    (shop.warehouse / "builds" / "99").mkdir()
    begun.run_once()
    assert shop.asked("SELECT * FROM builds") == []
    assert list((shop.warehouse / "builds").iterdir()) == []


def test_one_of_two_views_gone_the_other_goes_on(begun, shop, monkeypatch):
    (shop.folder / "views" / "big.sql").unlink()
    read = reads(monkeypatch)
    begun.run_once()
    assert len(read) == len(set(read)) < 8
    check_here(shop, begun, ["sold"])


def test_a_view_that_comes_later_has_a_build_of_its_own(begun, shop, spark, stop_after):
    write_view(shop.folder, "later", LONG)
    stop_after(100)
    begun.run_once()
    starts = dict(shop.asked("SELECT name, start_cn FROM views"))
    assert starts["later"] > starts["sold"] == starts["big"] == 0
    check_here(shop, begun)


def test_quick_views_do_not_wait_and_progress_is_told(shop, spark, stop_after):
    write_view(shop.folder, "quick", QUICK)
    with steadyview.open(shop.folder, spark=spark) as wh:
        stop_after(2)
        with pytest.raises(Stopped):
            wh.run_once()
        views = {v.name: v for v in wh.status().views}
        assert (views["quick"].state, views["quick"].progress) == ("active", None)
        assert views["sold"].state == views["big"].state == "building"
        assert "rows read" in str(views["sold"].progress)
        assert "crm.customers: 120 of about 180 rows read" in str(views["sold"].progress)
        stop_after(None)
        wh.run_once()
        assert {v.progress for v in wh.status().views} == {None}
        check_here(shop, wh)


def test_a_wish_to_end_is_heard_between_spans(shop, spark, monkeypatch, small_spans):
    keep = building.Building._keep

    def kept(self, build, span, written):
        self.end()
        return keep(self, build, span, written)

    with steadyview.open(shop.folder, spark=spark) as wh:
        with monkeypatch.context() as patched:
            patched.setattr(building.Building, "_keep", kept)
            patched.setattr("steadyview.runtime.keeping.TRIES", 1)
            wh.run_once()
        assert 1 <= len(shop.files()) <= 2
        assert {v.state for v in wh.status().views} == {"building"}
        check_here(shop, wh)


@pytest.mark.parametrize(
    ("statement", "where"),
    [
        ("TRUNCATE orders", "shop"),
        ("ALTER TABLE orders ALTER amount TYPE int USING amount + 1", "shop"),
        ("DROP TRIGGER {}", "crm"),
    ],
)
def test_a_loss_meanwhile_discards_what_was_read(begun, shop, statement, where):
    writer = getattr(shop, where).writer()
    if "{}" in statement:
        sql = "SELECT name FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = 'customers'"
        statement = statement.format(writer.execute(sql)[0][0])
    writer.execute(statement)
    writer.execute(
        "INSERT INTO orders VALUES (77777, 1, 90, 'new')"
        if where == "shop"
        else "INSERT INTO customers VALUES (7777, 'lost')"
    )
    begun.run_once()
    ((start,),) = shop.asked("SELECT DISTINCT start_cn FROM views WHERE state = 'active'")
    assert start > 0, "not the cn of the build before"
    check_here(shop, begun)


def test_a_loss_found_beside_while_a_first_state_is_computed_begins_it_again(
    shop, spark, monkeypatch, small_spans
):
    maintainers, writer = [], shop.crm.writer()
    computed, made = Batch.first_states, Maintainer.__init__

    def remembered(self, *given):
        made(self, *given)
        maintainers.append(self)

    def disturbed(self):
        monkeypatch.setattr(Batch, "first_states", computed)
        sql = "SELECT name FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = 'customers'"
        for (name,) in writer.execute(sql):
            writer.execute(f"DROP TRIGGER {name}")
        writer.execute("UPDATE customers SET region = 'unseen'")
        assert maintainers[0].examine(["crm"])
        return computed(self)

    monkeypatch.setattr(Maintainer, "__init__", remembered)
    monkeypatch.setattr(Batch, "first_states", disturbed)
    with steadyview.open(shop.folder, spark=spark) as wh:
        check_here(shop, wh)


def test_a_value_that_one_view_cannot_take_does_not_hold_up_the_other(shop, spark, small_spans):
    shop.crm.writer().execute("UPDATE customers SET region = x'00ff' WHERE id = 150")
    write_view(shop.folder, "ids", "SELECT c.id FROM crm.customers c")
    with steadyview.open(shop.folder, spark=spark) as wh:
        wh.run_once()
        states = {v.name: v.state for v in wh.status().views}
        assert states == {"sold": "stopped", "big": "active", "ids": "active"}
        assert shop.asked("SELECT * FROM builds") == []


def test_a_full_disk_loses_nothing_that_was_read(shop, spark, disk, stop_after, monkeypatch):
    (shop.folder / "warehouse").symlink_to(disk.folder)
    with steadyview.open(shop.folder, spark=spark) as wh:
        stop_after(3)
        with pytest.raises(Stopped):
            wh.run_once()
        stop_after(None)
        shop.change()
        kept = shop.files()
        for free in (0, 40_000, 80_000):
            disk.leave(free)
            with pytest.raises(StorageUnavailable, match="disk full"):
                wh.run_once()
            assert shop.files().items() >= kept.items()
        disk.free_up()
        read = reads(monkeypatch)
        check_here(shop, wh)
        assert not {_number(p) for p in kept} & set(read)


def test_a_source_begun_anew_discards_what_was_read(begun, shop):
    begun.resnapshot("shop")
    assert shop.asked("SELECT * FROM builds") == []
    check_here(shop, begun)
    assert list((shop.warehouse / "builds").iterdir()) == []


def _number(path: str) -> tuple[str, int]:
    name = Path(path).stem
    return name.partition("-")[0], int(name.rpartition("-")[2])
