"""Views that are recomputed: each change is the difference of two states, read like any other."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import steadyview
from steadyview.algebra import Bag, Row
from steadyview.errors import OutsideRetention
from steadyview.runtime.checks import ViewCheck
from steadyview.runtime.file_reading import ReadableView
from steadyview.runtime.publisher import Publisher
from steadyview.runtime.subscribing import Start
from steadyview.runtime.warehouse import Warehouse
from steadyview.warehouse.view_store import ViewStore
from tests.conftest import SOAK
from tests.system.databases import SqliteFile, write_project
from tests.system.maintained import bag, rolling, table_bag
from tests.system.test_refreshes import view

ROWS = (
    "SELECT x, y, IF(y = 3, CAST('NaN' AS DOUBLE), -CAST(y AS DOUBLE)) AS z, note FROM s.t"
)
MEDIANS = "SELECT x, MEDIAN(y) AS m, COUNT(*) AS n FROM s.t GROUP BY x"
STRONG, COMPLETE = "'steadyview.level' = 'strong'", "'steadyview.level' = 'complete'"
VIEWS = {
    "exact": ROWS,
    "whole": view("whole", "'steadyview.policy' = 'snapshot'", ROWS),
    "over_whole": "SELECT w.x, w.note, u.k FROM whole w LEFT JOIN s.u ON u.x = w.x",
    "sums": "SELECT note, COUNT(*) AS n, MIN(x) AS low FROM whole GROUP BY note",
    "medians": view("medians", "'steadyview.fallback' = 'recompute'", MEDIANS),
    "over_medians": "SELECT m.m, u.k FROM medians m JOIN s.u ON u.x = m.x",
    "held": view("held", "'steadyview.policy' = 'ipda'", "SELECT COUNT(*) AS n FROM medians"),
    "pretending": view("pretending", COMPLETE, "SELECT x FROM whole"),
    "asking": view("asking", STRONG, "SELECT x FROM whole"),
}
FEW, RECOMPUTED = ("exact", "whole", "sums"), ("medians", "over_medians", "held")
Opened = Callable[..., Warehouse]


@pytest.fixture
def database(tmp_path: Path) -> Iterator[SqliteFile]:
    made = SqliteFile(tmp_path / "s.db")
    made.create("t", "x INTEGER, y INTEGER, note TEXT")
    made.create("u", "x INTEGER, k INTEGER")
    made.create("other", "x INTEGER")
    made.writer().execute("INSERT INTO t VALUES (1, 0, 'a'), (1, 0, 'a'), (NULL, 3, NULL)")
    made.writer().execute("INSERT INTO u VALUES (1, 1), (2, 2), (2, 2)")
    yield made
    made.close()


@pytest.fixture
def opened(database: SqliteFile, tmp_path: Path, spark: SparkSession) -> Iterator[Opened]:
    """Opens a warehouse with the first states of some of the views."""
    with ExitStack() as closing:

        def made(*names: str) -> Warehouse:
            views = {name: VIEWS[name] for name in names}
            folder = write_project(tmp_path / "project", {"s": database}, views)
            wh = closing.enter_context(steadyview.open(folder, spark=spark))
            wh.run_once()
            return wh

        yield made


def change(database: SqliteFile, dice: random.Random) -> None:
    x, y = dice.choice((1, 2, 3, "NULL")), dice.choice((0, 1, 3, "NULL"))
    database.writer().execute(
        dice.choice(
            (
                f"INSERT INTO t VALUES ({x}, {y}, 'a'), ({x}, {y}, 'a'), ({x}, {y}, NULL)",
                f"UPDATE t SET y = {y} WHERE x IS {x}",
                "UPDATE t SET note = note || ''",
                f"DELETE FROM t WHERE x IS {x} AND rowid % 2 = 0",
                f"UPDATE u SET k = k + 1 WHERE x IS {x}",
            )
        )
    )


def shown(wh: Warehouse) -> dict[str, int | None]:
    return {v.name: v.cn for v in wh.status().views}


def exact(rows: Bag[Row]) -> dict[str, int]:
    """Rows that can be compared: NaN is NaN, and -0.0 is 0.0."""
    found: dict[str, int] = {}
    for row, count in rows:
        key = repr(tuple(value + 0.0 if isinstance(value, float) else value for value in row))
        found[key] = found.get(key, 0) + count
    return {key: count for key, count in found.items() if count}


@pytest.mark.parametrize("seed", range(20 if SOAK else 1))
def test_every_state_that_was_shown_can_be_read_and_changes_lead_from_one_to_the_next(
    opened: Opened, database: SqliteFile, seed: int
) -> None:
    dice, wh = random.Random(seed), opened(*FEW, "over_whole", *RECOMPUTED)
    states = {0: exact(bag(wh.view("whole").read()))}
    for step in range(5):
        for _ in range(dice.randrange(1, 4)):
            change(database, dice)
        wh.run_once()
        last = wh.status().cn
        if dice.random() < 0.7 and last > max(states):
            at = dice.randrange(max(states) + 1, last + 1)
            wh.refresh(["whole"], at)
            states[at] = exact(bag(wh.view("exact").read(at=at)))
        if step == 2:
            with rolling():
                wh.run_once()
    wh.run_once()
    children = shown(wh)
    assert children["over_whole"] == children["sums"] == max(states)
    assert children["over_medians"] == children["medians"] == wh.status().cn
    assert [v.view for v in wh.verify() if not v.equal] == []
    readable = ReadableView(wh.project.root, "whole")
    for cn in range(wh.status().cn + 1):
        if cn in states:
            assert exact(bag(wh.view("whole").read(at=cn))) == states[cn], cn
            found = [table_bag(t) for part in readable.parts(cn) for t in part.rows()]
            assert exact(sum(found, Bag())) == states[cn], cn
        elif cn < max(states):
            with pytest.raises(OutsideRetention, match=f"no state at cn {cn}"):
                wh.view("whole").read(at=cn)
    assert {c.cn for c in wh.view("whole").history(100)} <= states.keys()
    for cn in (0, sorted(states)[1]):
        rows = wh.view("whole").changes(cn).collect()
        net = Bag((tuple(row)[:4], row._count) for row in rows)
        newest = exact(bag(wh.view("whole").read(at=cn)) + net)
        assert newest == states[max(states)], cn


def test_a_refresh_is_one_change_of_a_range(opened: Opened, database: SqliteFile) -> None:
    wh = opened("exact", "whole")
    with wh.subscribe("whole", "r", Start(changes_only=True)) as reader:
        reader.next()
        for x in range(3):
            database.writer().execute(f"INSERT INTO t VALUES ({x}, 1, 'new')")
            wh.run_once()
        assert reader.next() is None
        wh.refresh(["whole"])
        delivery = reader.next()
        assert delivery is not None
        assert (delivery.cn, delivery.ranges, delivery.commits) == (3, {3: 0}, 1)
        (rows,) = delivery.tables()
        assert set(rows["_cn"].to_pylist()) == {3}
        # a row that went and came back is no change, and yet nothing is known of in between
        database.writer().execute("DELETE FROM t WHERE note = 'new'")
        wh.run_once()
        for x in range(3):
            database.writer().execute(f"INSERT INTO t VALUES ({x}, 1, 'new')")
            wh.run_once()
        wh.refresh(["whole"])
        assert reader.next() is None
    row = wh._catalog.views.get("whole")
    assert [(g.low, g.high) for g in wh._catalog.gaps.of([row.id])] == [(0, 3), (3, 7)]
    valid = wh.query_at("SELECT * FROM whole").valid_time
    assert (valid.first, valid.end) == (7, None)
    assert wh.query_at("SELECT * FROM whole", at=3).valid_time.end == 4


def test_a_view_over_one_has_no_higher_level_and_takes_it_along(
    opened: Opened, database: SqliteFile
) -> None:
    wh = opened(*FEW, "asking", "pretending")
    checks = {c.name: c for c in wh.check() if isinstance(c, ViewCheck)}
    assert checks["pretending"].code == "LEVEL"
    levels = {v.name: v.level for v in wh.status().views if v.name != "pretending"}
    assert {n for n, level in levels.items() if level == "complete"} == {"exact"}
    database.writer().execute("INSERT INTO t VALUES (2, 2, 'b')")
    wh.run_once()
    assert shown(wh)["sums"] == 0
    assert wh.refresh(["sums"]).along == ("whole",)
    assert shown(wh)["sums"] == shown(wh)["whole"] == 1
    with pytest.raises(OutsideRetention, match="no view goes back"):
        wh.refresh(["sums"], 0)


def test_a_refresh_that_changes_nothing_stores_nothing(
    opened: Opened, database: SqliteFile
) -> None:
    wh = opened("exact", "whole")
    before = wh._catalog.views.get("whole").delta_version
    assert wh.refresh(["whole"]).cn == 0
    database.writer().execute("INSERT INTO other VALUES (1)")
    assert wh.refresh(["whole"]).cn == 1
    assert wh._catalog.views.get("whole").delta_version == before
    assert exact(bag(wh.view("whole").read())) == exact(bag(wh.view("exact").read(at=0)))


def test_what_a_refresh_left_that_was_cut_short_is_shown_by_the_next_and_by_nobody_else(
    opened: Opened, database: SqliteFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    wh = opened(*FEW)
    for x in range(4):
        database.writer().execute(f"INSERT INTO t VALUES ({x}, 1, 'b')")
        wh.run_once()

    def cut_short(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Publisher, "publish", cut_short)
        with pytest.raises(KeyboardInterrupt):
            wh.refresh(["sums"])
    database.writer().execute("INSERT INTO t VALUES (9, 1, 'b')")
    wh.run_once()
    assert shown(wh)["sums"] == shown(wh)["whole"] == 0, "a child is never beyond its parent"
    with pytest.raises(OutsideRetention, match="states at cn 0 and cn 4"):
        wh.refresh(["whole"], 2)
    assert wh.refresh(["sums"], 4).along == ("whole",)
    assert shown(wh)["sums"] == shown(wh)["whole"] == 4
    assert [v.view for v in wh.verify() if not v.equal] == []
    wh.refresh(["sums"])
    assert [v.view for v in wh.verify() if not v.equal] == []


def test_a_warehouse_of_whole_states_goes_on_with_changes(
    opened: Opened, database: SqliteFile
) -> None:
    wh = opened(*FEW, "medians", "over_medians")
    with wh._catalog._database.write() as connection:
        for name in ("whole", "medians"):
            row = wh._catalog.views.get(name)
            shutil.rmtree(ViewStore(wh.project.warehouse, row, wh._plan(name).shape).delta.path)
            connection.execute("UPDATE views SET delta_version = NULL WHERE id = ?", (row.id,))
    before = exact(bag(wh.view("whole").read()))
    assert wh.query_at("SELECT * FROM whole").cn == 0
    with wh.subscribe("whole", "r") as reader:
        state = reader.next()
        assert state is not None
        assert sum(table.num_rows for table in state.tables()) == sum(before.values())
        assert reader.next() is None
        database.writer().execute("INSERT INTO t VALUES (2, 1, 'b')")
        wh.run_once()
        wh.refresh(["whole"])
        assert {v.state for v in wh.status().views} == {"active"}
        delivery = reader.next()
        assert delivery is not None
        assert [table.num_rows for table in delivery.tables()] == [1]
    assert exact(bag(wh.view("whole").read(at=0))) == before
    assert [v.view for v in wh.verify() if not v.equal] == []
