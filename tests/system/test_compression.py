"""Compression: every moment that can be asked for is the right one, and no reader notices.

The measure is SQLite, which computed each view's SELECT after every single commit.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

import steadyview
from steadyview.algebra import Bag, Row
from steadyview.errors import ConfigError, OutsideRetention, StorageDamaged
from steadyview.runtime.clock import SystemClock
from steadyview.runtime.file_reading import state_parts
from steadyview.runtime.housekeeping import Housekeeping
from steadyview.runtime.kept import reach_of, shape_of
from steadyview.runtime.subscribing import Start
from steadyview.runtime.valid_times import validity
from steadyview.runtime.warehouse import Warehouse
from steadyview.warehouse.change_rows import cns_of
from steadyview.warehouse.view_store import ViewStore
from tests.crash.running import Running
from tests.system.databases import SqliteFile, write_project, write_view
from tests.system.maintained import bag, capturing, delta_rows, rolling, table_bag
from tests.system.test_refreshes import change, view
from tests.system.test_subscriptions import Copy, all_of, read_for_a_while, streamed
from tests.system.wall import Wall

GROUPED = (
    "SELECT t.g, COUNT(*) AS n, SUM(u.x) AS x FROM s.t JOIN s.u ON u.t = t.id GROUP BY t.g"
)
OVER = "SELECT v.n, t.id FROM now v JOIN s.t ON v.g = t.g"
VIEWS = {
    "now": GROUPED,
    "plain": "SELECT t.g, u.x FROM s.t LEFT JOIN s.u ON u.t = t.id",
    "held": view("held", "'steadyview.policy' = 'ipda'", GROUPED),
    "late": view("late", "'steadyview.policy' = 'dpda'", GROUPED),
    "rough": view("rough", "'steadyview.level' = 'strong'", GROUPED),
    "over": OVER,
    "over_late": view("over_late", "'steadyview.policy' = 'dpda'", OVER),
}
DEFERRED = ("held", "late", "over_late")
FEW = {name: VIEWS[name] for name in ("now", "plain", "over_late")}
Oracle = dict[int, dict[str, Bag[Row]]]
"""By cn and view, the rows."""


@pytest.fixture
def database(tmp_path: Path) -> Iterator[SqliteFile]:
    made = SqliteFile(tmp_path / "s.db")
    made.create("t", "id INTEGER PRIMARY KEY, g TEXT")
    made.create("u", "t INTEGER, x INTEGER")
    made.writer().execute("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, NULL)")
    made.writer().execute("INSERT INTO u VALUES (1, 10), (2, 20), (2, NULL), (2, 20)")
    yield made
    made.close()


@pytest.fixture
def wh(database: SqliteFile, tmp_path: Path, spark: SparkSession) -> Iterator[Warehouse]:
    """A project with few views."""
    folder = write_project(tmp_path / "project", {"s": database}, FEW)
    with steadyview.open(folder, spark=spark) as opened:
        opened.run_once()
        yield opened


def computed(database: SqliteFile) -> dict[str, Bag[Row]]:
    """Every view's rows by SQLite, of what the database holds now."""
    grouped = GROUPED.replace("s.", "")
    texts = dict.fromkeys(("now", "held", "late", "rough"), grouped)
    texts["plain"] = VIEWS["plain"].replace("s.", "")
    texts |= dict.fromkeys(
        ("over", "over_late"), f"SELECT v.n, t.id FROM ({grouped}) v JOIN t ON v.g = t.g"
    )
    return {name: Bag.of(database.writer().execute(text)) for name, text in texts.items()}


def commit(
    wh: Warehouse, database: SqliteFile, dice: random.Random, oracle: Oracle, some: int
) -> None:
    """Some commits, each captured by itself, and then a batch."""
    oracle.setdefault(wh.status().cn, computed(database))
    with capturing(wh) as admit:
        for _ in range(some):
            change(database, dice)
            oracle[admit("s")] = computed(database)
    wh.run_once()


def state(wh: Warehouse, name: str, cn: int) -> Bag[Row]:
    """The view's rows at a cn, without Spark."""
    row = wh._catalog.views.get(name)
    parts = state_parts(wh.project.warehouse, wh._catalog, row.id, cn)
    return sum((table_bag(rows) for part in parts for rows in part.rows()), Bag())


def check_states(wh: Warehouse, oracle: Oracle, name: str) -> int:
    """Every moment is right, or refused with the nearest ones; how many are refused."""
    row, refused = wh._catalog.views.get(name), 0
    for cn in range(row.oldest_cn, (row.cn or 0) + 1):
        gap = wh._catalog.gaps.around(row.id, cn)
        if gap is None:
            assert state(wh, name, cn) == oracle[cn][name], (name, cn)
            continue
        refused += 1
        with pytest.raises(OutsideRetention) as error:
            state(wh, name, cn)
        assert f"cn {gap.high}" in str(error.value.detail)
        for end in (gap.low, gap.high):
            assert wh._catalog.gaps.around(row.id, end) is None
    return refused


def check_valid_times(wh: Warehouse, oracle: Oracle, name: str, *, exact: bool) -> None:
    """The rows are those of the whole valid time; where changes are known, of nothing beyond it."""
    row = wh._catalog.views.get(name)
    store = ViewStore(wh.project.warehouse, row, shape_of(row))
    upto = reach_of(row, wh._catalog.refreshes.all().get(row.id)) or 0
    for cn in range(row.oldest_cn, (row.cn or 0) + 1):
        if wh._catalog.gaps.around(row.id, cn) is None:
            found = validity(wh._catalog, store, row, upto, {"s"}, cn)
            last = found.last(max(oracle))
            rows = {k: oracle[k][name] for k in range(found.first, last + 1)}
            assert all(same == oracle[cn][name] for same in rows.values()), (name, cn, found)
            if exact:
                before = oracle.get(found.first - 1, {}).get(name)
                assert found.first == row.oldest_cn or before != oracle[cn][name]
                assert found.end is None or oracle[found.end][name] != oracle[cn][name]


@pytest.mark.parametrize("seed", range(8 if os.environ.get("STEADYVIEW_SOAK") else 1))
def test_every_moment_that_can_be_had_is_right_and_so_is_every_readers_copy(
    wh: Warehouse, database: SqliteFile, seed: int
) -> None:
    for name, text in VIEWS.items():
        write_view(wh.project.root, name, text)
    wh.run_once()
    dice, oracle = random.Random(seed), Oracle()
    copies = {name: Copy() for name in VIEWS}
    for step in range(6):
        commit(wh, database, dice, oracle, dice.randrange(2, 6))
        if dice.random() < 0.5:
            wh.refresh(dice.sample(DEFERRED, dice.randrange(1, 3)))
        for name, copy in copies.items():
            with wh.subscribe(name, f"r_{name}") as reader:
                read_for_a_while(reader, copy, dice)
            assert copy.cn < 0 or copy.rows == oracle[copy.cn][name], (name, copy.cn)
        for name in dice.sample(list(VIEWS), 4):
            shown = wh._catalog.views.get(name).cn or 0
            wh.compress(name, dice.choice((None, dice.randint(0, shown))))
        if step == 3:
            with rolling():
                wh.run_once()
            Housekeeping(wh._parts).now()
    wh.refresh(DEFERRED)
    lost = {name: check_states(wh, oracle, name) for name in VIEWS}
    assert lost["now"], lost
    for name in VIEWS:
        # what comes of a parent's range is known as that range alone
        check_valid_times(wh, oracle, name, exact=name in ("now", "plain", "held", "late"))
        with wh.subscribe(name, f"r_{name}") as reader:
            all_of(reader, copies[name])
        with wh.subscribe(name, f"late_{name}", Start("start")) as reader:
            late = Copy()
            all_of(reader, late)
        for copy in (copies[name], late):
            assert copy.rows == oracle[copy.cn][name], (name, copy.cn)
    newest = wh.status().cn
    with_state = [c for c in range(newest) if not wh._catalog.gaps.around(1, c)]
    verdicts = [v for at in (dice.choice(with_state), newest) for v in wh.verify(None, at)]
    assert [v for v in verdicts if not (v.equal or v.no_state)] == []
    for name in VIEWS:
        assert bag(wh.view(name).read()) == oracle[newest][name]


def five_commits(wh: Warehouse, database: SqliteFile, last: str | None = None) -> None:
    """A group comes, grows three times, and goes; then perhaps one commit more."""
    statements = ["INSERT INTO u VALUES (1, 5)"] * 4 + ["DELETE FROM u WHERE x = 5"]
    statements += [last] if last else []
    with capturing(wh) as admit:
        for statement in statements:
            database.writer().execute(statement)
            admit("s")
    wh.run_once()


def test_a_range_that_came_back_to_where_it_began_is_known_though_it_left_no_row(
    wh: Warehouse, database: SqliteFile
) -> None:
    five_commits(wh, database)
    done = wh.compress("now")
    assert [(r.after, r.upto, r.commits) for r in done.ranges] == [(0, 5, 5)]
    assert done.bytes_after < done.bytes_before
    assert delta_rows(wh, "now") == []
    (line,) = wh.view("now").history()
    assert (line.cn, line.since, line.commits, line.added, line.removed) == (5, 0, 5, 0, 0)
    assert wh.query("SELECT * FROM now", at=0).valid_time.end == 1
    assert wh.query("SELECT * FROM now", at=5).valid_time.first == 5
    assert wh.compress("now").ranges == done.ranges, "nothing is left to do"


def test_a_moment_inside_is_refused_with_the_nearest_that_can_be_had(
    wh: Warehouse, database: SqliteFile
) -> None:
    five_commits(wh, database)
    wh.compress("now")
    for refused in (
        lambda: wh.query("SELECT * FROM now", at=3),
        lambda: wh.view("now").read(at=3),
        lambda: wh.verify(["now"], 3),
        lambda: wh.subscribe("now", "r", Start(3)),
        lambda: wh.refresh(["over_late"], 3),
    ):
        with pytest.raises(OutsideRetention) as error:
            refused()
        assert "no state at cn 3" in error.value.message
        assert "5 changes after cn 0 up to cn 5 were compressed" in str(error.value.detail)
        assert "it has states at cn 0 and cn 5" in str(error.value.detail)
    assert wh.refresh(["over_late"]).cn == 5
    (inherited,) = wh._catalog.gaps.of([wh._catalog.views.get("over_late").id])
    assert (inherited.low, inherited.high) == (0, 5)
    with wh.subscribe("now", "r", Start(0)) as reader:
        assert [d.cn for d in all_of(reader, Copy())] == [0]


def test_a_range_reaches_over_nothing_that_anybody_has_or_may_be_given_again(
    wh: Warehouse, database: SqliteFile
) -> None:
    copy = Copy()
    with wh.subscribe("now", "slow", Start(0, manual=True)) as reader:
        all_of(reader, copy, acknowledge=False)
        wh.acknowledge("slow", 0)
        five_commits(wh, database)
        for _ in range(2):
            copy.take(reader.next(1))
        assert wh.acknowledge("slow", 1)
    five_commits(wh, database)
    done = wh.compress("now")
    assert [(r.after, r.upto) for r in done.ranges] == [(2, 10)], "(1, 2] was handed out"
    late = Copy()
    late.rows, late.cn = copy.rows, copy.cn
    with wh.subscribe("now", "slow") as reader:
        (delivery,) = all_of(reader, late)
        assert (delivery.cn, delivery.commits, delivery.ranges) == (10, 2, {10: 2})
    assert late.rows == computed(database)["now"]


def test_what_is_compressed_while_a_reader_is_at_work_is_one_change_to_it(
    wh: Warehouse, database: SqliteFile
) -> None:
    five_commits(wh, database, "INSERT INTO u VALUES (1, 7)")
    copy = Copy()
    with wh.subscribe("plain", "r", Start(0)) as reader:
        first = reader.next()
        assert first is not None
        copy.take(first)
        reader.acknowledge()
        # it knows where it will cut, and has been given none of it yet
        reader._cuts = [2, 4, 6]
        wh.compress("plain")
        (delivery,) = all_of(reader, copy)
        assert (delivery.cn, delivery.ranges) == (6, {6: 0})
    assert copy.rows == computed(database)["plain"]


def test_a_stream_is_given_what_it_was_given_and_goes_on(
    wh: Warehouse, database: SqliteFile, tmp_path: Path
) -> None:
    copy = Copy()
    streamed(wh, "now", tmp_path / "there", copy)
    five_commits(wh, database, "INSERT INTO u VALUES (1, 7)")
    streamed(wh, "now", tmp_path / "there", copy)
    assert copy.cn == 6
    five_commits(wh, database, "INSERT INTO u VALUES (3, 1)")
    done = wh.compress("now")
    assert [(r.after, r.upto) for r in done.ranges] == [(6, 12)], "(0, 6] was handed out"
    streamed(wh, "now", tmp_path / "there", copy)
    assert copy.cn == 12
    assert copy.rows == computed(database)["now"]
    wh._catalog.streams.forget_before(wh._clock.now_us())
    assert [(r.after, r.upto) for r in wh.compress("now").ranges] == [(0, 12)]


def test_the_table_of_changes_keeps_what_it_has(wh: Warehouse, database: SqliteFile) -> None:
    folder = wh.project.warehouse / "changes" / "plain"
    five_commits(wh, database)
    before = DeltaTable(folder).to_pyarrow_table()
    wh.compress("plain")
    five_commits(wh, database)
    found = DeltaTable(folder).to_pyarrow_table()
    assert found.filter(pc.field("_cn") <= 5).num_rows == before.num_rows
    shutil.rmtree(folder)
    wh.run_once()
    cns = DeltaTable(folder).to_pyarrow_table()["_cn"].unique().to_pylist()
    assert min(cns) == 6, "the five commits before were one that left nothing"


def test_a_file_asks_for_it_and_a_run_keeps_it_up(
    database: SqliteFile, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    wall, hour = Wall(monkeypatch), 3_600_000_000
    # some minutes past an hour, so that no commits of one batch lie in two
    wall.move_on(timedelta(microseconds=hour - SystemClock().now_us() % hour + hour // 6))
    asked = view("now", "'steadyview.compress' = 'hour after 2 hours'", GROUPED)
    folder = write_project(tmp_path / "project", {"s": database}, {"now": asked})
    with steadyview.open(folder, spark=spark) as wh:
        wh.run_once()
        times = []
        for _ in range(5):
            five_commits(wh, database)
            times.append(wh._catalog.commits.time_of(wh.status().cn))
            wall.move_on(timedelta(minutes=61))
        wh.run_once()
        row = wh._catalog.views.get("now")
        gaps = [g for g in wh._catalog.gaps.of([row.id]) if g.compressed]
        horizon = (wh._clock.now_us() - 2 * hour) // hour * hour
        assert gaps
        assert not any(g.pending for g in gaps)
        for gap in gaps:
            first, last = (wh._catalog.commits.time_of(cn) for cn in (gap.low + 1, gap.high))
            assert first // hour == last // hour, "a range lies within an hour"
            assert last < horizon
        assert sum(g.commits or 0 for g in gaps) == sum(5 for time in times if time < horizon)
        write_view(folder, "now", GROUPED)
        assert wh.run_once().transactions == 0
        assert wh._catalog.views.get("now").id == row.id, "nothing was rebuilt"


def test_it_is_done_by_a_run_that_is_up(wh: Warehouse, database: SqliteFile) -> None:
    five_commits(wh, database)
    with Running(wh) as running, steadyview.open(wh.project.root) as other:
        running.until(lambda status: any((v.name, v.cn) == ("now", 5) for v in status.views))
        assert [(r.after, r.upto) for r in other.compress("now", keep="day").ranges] == [(0, 5)]
        with pytest.raises(OutsideRetention, match="no commit 99"):
            other.compress("now", 99)


def test_what_cannot_be_compressed_is_told_and_nothing_is_lost(
    wh: Warehouse, database: SqliteFile
) -> None:
    five_commits(wh, database)
    future = "2999-01-01T00:00:00Z"
    for wrong, kind, message in (
        (("nwo",), ConfigError, 'no view "nwo"'),
        (("now", 99), OutsideRetention, "no commit 99"),
        (("over_late", 3), OutsideRetention, "does not show cn 3"),
        (("now", future), OutsideRetention, "no state of 2999"),
        (("now", 3, "week"), ConfigError, '"week" is no period'),
    ):
        with pytest.raises(kind, match=message):
            wh.compress(*wrong)
    wh._catalog.views.forget_before(wh._catalog.views.get("now").id, 2)
    with pytest.raises(OutsideRetention, match="nothing to compress up to cn 1"):
        wh.compress("now", 1)
    row = wh._catalog.views.get("plain")
    shutil.rmtree(ViewStore(wh.project.warehouse, row, shape_of(row)).delta.path)
    with pytest.raises(StorageDamaged, match="is missing"):
        wh.compress("plain")
    assert wh._catalog.gaps.of([row.id]) == []
    assert bag(wh.view("now").read()) == computed(database)["now"]


def test_files_of_other_ranges_stay(wh: Warehouse, database: SqliteFile) -> None:
    for _ in range(3):
        five_commits(wh, database)
    row = wh._catalog.views.get("plain")
    store = ViewStore(wh.project.warehouse, row, shape_of(row))
    before = {f.relative: cns_of(store, f) for f in store.delta.files()}
    wh.compress("plain", 5)
    after = {f.relative for f in store.delta.files()}
    assert {path for path, cns in before.items() if cns.min() > 5} <= after
    assert not {path for path, cns in before.items() if cns.max() <= 5} & after


def test_who_holds_logs_and_changes_back_is_told_with_what_ends_it(
    database: SqliteFile, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_project(tmp_path / "p", {"s": database}, FEW, hold_back="1 B")
    with steadyview.open(folder, spark=spark) as wh:
        wh.run_once()
        with wh.subscribe("now", "slow"):
            pass
        for _ in range(2):
            five_commits(wh, database)
        assert wh.status().holds == [], "the retention asks for all of it"
        monkeypatch.setattr(Housekeeping, "_cutoff", lambda self: wh.status().cn)
        wh.run_once()
        found = {(h.kind, h.name): h for h in wh.status().holds}
        assert found.keys() == {("subscription", "slow"), ("view", "over_late")}
        assert all(h.cn == 0 and h.bytes > 0 and h.too_much for h in found.values())
        slow, late = found["subscription", "slow"], found["view", "over_late"]
        assert slow.release == "steadyview subscription drop slow"
        refreshed = "steadyview refresh over_late, or steadyview view rebuild over_late"
        assert late.release == refreshed
        wh.drop_subscription("slow")
        assert [h.name for h in wh.status().holds] == ["over_late"]
        wh.refresh(["over_late"])
        assert wh.status().holds == []
