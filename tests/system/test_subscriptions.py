"""Readers of changes: whatever happens to them, what each has kept is the view at some cn."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import SparkSession

import steadyview
from steadyview.algebra import Bag, Row
from steadyview.errors import ConfigError, DefiniteError, OutsideRetention, ViewStopped
from steadyview.runtime import subscribing
from steadyview.runtime.housekeeping import Housekeeping
from steadyview.runtime.subscribing import Delivery, Start, Subscriber
from steadyview.runtime.warehouse import Warehouse
from tests.system.databases import SqliteFile, write_project, write_view
from tests.system.maintained import bag, rolling
from tests.system.test_refreshes import change, view

GROUPED = (
    "SELECT t.g, COUNT(*) AS n, SUM(u.x) AS x FROM s.t JOIN s.u ON u.t = t.id GROUP BY t.g"
)
VIEWS = {
    "now": GROUPED,
    "plain": "SELECT t.g, u.x FROM s.t LEFT JOIN s.u ON u.t = t.id",
    "held": view("held", "'steadyview.policy' = 'ipda'", GROUPED),
    "late": view("late", "'steadyview.policy' = 'dpda'", GROUPED),
    "rough": view("rough", "'steadyview.level' = 'strong'", GROUPED),
    "whole": view("whole", "'steadyview.policy' = 'snapshot'", GROUPED),
    "medians": view(
        "medians",
        "'steadyview.fallback' = 'recompute'",
        "SELECT t, MEDIAN(x) AS m FROM s.u GROUP BY t",
    ),
}
DEFERRED = ["held", "late", "whole"]


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
    folder = write_project(tmp_path / "project", {"s": database}, VIEWS)
    with steadyview.open(folder, spark=spark) as opened:
        opened.run_once()
        yield opened


class Copy:
    """What a receiver keeps: rows, and the last cn of them, together."""

    def __init__(self) -> None:
        self.rows: Bag[Row] = Bag()
        self.cn = -1
        self.resets = 0

    def take(self, delivery: Delivery) -> None:
        if delivery.reset:
            self.resets, self.cn = self.resets + 1, -1
        if delivery.state and self.cn < delivery.cn:
            self.rows = Bag()
        for table in delivery.tables():
            self._rows(table)
        self.cn = max(self.cn, delivery.cn)

    def _rows(self, table: pa.Table) -> None:
        seen = set()
        found = []
        for *row, count, cn, _ in zip(*(c.to_pylist() for c in table.columns), strict=True):
            if cn > self.cn:
                found.append((tuple(row), count))
                assert (cn, *row) not in seen or count == 1, "changes are net within a commit"
                seen.add((cn, *row))
        self.rows = self.rows + Bag(found)


def all_of(reader: Subscriber, copy: Copy, *, acknowledge: bool = True) -> list[Delivery]:
    found = []
    while (delivery := reader.next()) is not None:
        copy.take(delivery)
        found.append(delivery)
        if acknowledge:
            reader.acknowledge()
    return found


def read_for_a_while(reader: Subscriber, copy: Copy, dice: random.Random) -> None:
    """What was received is kept and acknowledged, or only kept, or lost with its reader."""
    for _ in range(dice.randrange(4)):
        delivery = reader.next(dice.choice((None, 1, 2)))
        if delivery is None or dice.random() < 0.2:
            return
        copy.take(delivery)
        if dice.random() < 0.3:
            return
        reader.acknowledge()


def check(wh: Warehouse, name: str, copy: Copy) -> None:
    assert copy.rows == bag(wh.view(name).read(at=copy.cn)), (name, copy.cn)


@pytest.mark.parametrize("seed", range(2))
def test_every_copy_is_its_view_whatever_happens_to_readers(
    wh: Warehouse, database: SqliteFile, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(subscribing, "PIECE", 3)
    dice = random.Random(seed)
    copies = {name: Copy() for name in VIEWS}
    early = {name: Copy() for name in VIEWS}
    for step in range(6):
        for _ in range(dice.randrange(1, 5)):
            change(database, dice)
        wh.run_once()
        if dice.random() < 0.4:
            wh.refresh(DEFERRED)
        for name, copy in copies.items():
            with wh.subscribe(name, f"r_{name}") as reader:
                read_for_a_while(reader, copy, dice)
        if step == 3:
            with rolling():
                wh.run_once()
            Housekeeping(wh._parts).now()
    wh.refresh(DEFERRED)
    for name in VIEWS:
        with wh.subscribe(name, f"r_{name}") as reader:
            all_of(reader, copies[name])
        with wh.subscribe(name, f"early_{name}", Start("start")) as reader:
            all_of(reader, early[name])
            assert reader.next() is None
        check(wh, name, copies[name])
        assert copies[name].rows == early[name].rows
        assert copies[name].cn == early[name].cn or name not in ("now", "plain", "held")


def test_a_reader_of_an_ipda_view_gets_what_is_propagated_and_not_shown(
    wh: Warehouse, database: SqliteFile
) -> None:
    copy = Copy()
    database.writer().execute("INSERT INTO u VALUES (1, 7)")
    wh.run_once()
    with wh.subscribe("held", "r") as reader:
        first, then = all_of(reader, copy)
    assert (first.state, first.cn) == (True, 0)
    assert copy.cn == then.cn == wh.status().cn
    assert copy.rows == bag(wh.view("now").read())


def test_one_step_of_a_strong_view_says_which_commits_it_takes_together(
    wh: Warehouse, database: SqliteFile
) -> None:
    with wh.subscribe("rough", "r") as reader:
        all_of(reader, Copy())
        writer = database.writer()
        for x in range(3):
            writer.execute(f"INSERT INTO u VALUES (1, {x})")
            with wh._following() as wait_for:
                snapshot = wh._parts.sources["s"].snapshot()
                wait_for("s", snapshot.horizon)
                snapshot.close()
        wh.run_once()
        (delivery,) = all_of(reader, Copy())
        assert delivery.ranges == {3: 0}
        assert delivery.commits == 1
    with pytest.raises(OutsideRetention, match="no state at cn 2"):
        wh.subscribe("rough", "other", Start(2))


def test_a_view_that_is_built_anew_tells_its_readers_to_begin_again(
    wh: Warehouse, database: SqliteFile
) -> None:
    copy, only = Copy(), Copy()
    with wh.subscribe("plain", "r") as reader:
        all_of(reader, copy)
    with wh.subscribe("plain", "only", Start(changes_only=True)) as reader:
        assert all_of(reader, only) == []
    database.writer().execute("INSERT INTO u VALUES (3, 1)")
    wh.run_once()
    root = wh.project.root
    write_view(root, "plain", "SELECT u.x, t.g, t.id FROM s.t JOIN s.u ON u.t = t.id")
    wh.run_once()
    states = {s.name: s.state for s in wh.subscriptions()}
    assert states == dict.fromkeys(("r", "only"), "its view was built anew")
    with wh.subscribe("plain", "r") as reader:
        (delivery,) = all_of(reader, copy)
        assert (delivery.state, delivery.reset, delivery.epoch) == (True, True, 1)
    check(wh, "plain", copy)
    with wh.subscribe("plain", "only") as reader:
        (delivery,) = all_of(reader, only)
        assert delivery.reset
        assert only.rows == Bag()
    database.writer().execute("INSERT INTO u VALUES (3, 2)")
    wh.run_once()
    with wh.subscribe("plain", "r") as reader:
        (delivery,) = all_of(reader, copy)
        assert not delivery.reset
    check(wh, "plain", copy)


def test_what_a_reader_has_not_acknowledged_is_kept_for_it_and_gone_once_it_is_dropped(
    wh: Warehouse, database: SqliteFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    with wh.subscribe("now", "slow"):
        pass
    for x in range(3):
        database.writer().execute(f"INSERT INTO u VALUES (1, {x})")
        with rolling():
            wh.run_once()
    monkeypatch.setattr(Housekeeping, "_cutoff", lambda self: wh.status().cn)
    wh.run_once()
    (slow,) = wh.subscriptions()
    assert (slow.cn, slow.behind) == (0, 3)
    assert slow.behind_seconds is not None
    assert wh._catalog.views.get("now").oldest_cn == 0
    copy = Copy()
    with wh.subscribe("now", "slow") as reader:
        assert [d.cn for d in all_of(reader, copy, acknowledge=False)][0] == 0
    assert copy.rows == bag(wh.view("now").read())
    wh.drop_subscription("slow")
    wh.run_once()
    assert wh._catalog.views.get("now").oldest_cn == 3
    with pytest.raises(OutsideRetention):
        wh.subscribe("now", "again", Start(0))
    with wh.subscribe("now", "again", Start("start")) as reader:
        (delivery,) = all_of(reader, Copy())
        assert delivery.cn == 3


def test_positions_that_others_move(wh: Warehouse, database: SqliteFile) -> None:
    copy = Copy()
    with wh.subscribe("now", "pipe", Start(manual=True)) as reader:
        assert reader.manual
        assert wh.acknowledge("pipe", 0) is False, "nothing was handed out"
        all_of(reader, copy, acknowledge=False)
        assert wh.acknowledge("pipe", 0)
        database.writer().execute("INSERT INTO u VALUES (1, 1)")
        wh.run_once()
        all_of(reader, copy, acknowledge=False)
        with pytest.raises(ConfigError, match="only changes up to cn 1 were handed out"):
            wh.acknowledge("pipe", 2)
        assert wh.acknowledge("pipe", 0), "again"
    with wh.subscribe("now", "pipe") as reader:
        (delivery,) = all_of(reader, copy, acknowledge=False)
        assert delivery.cn == 1
    assert wh.acknowledge("pipe", 1)
    assert wh.acknowledge("pipe", 0) is False
    assert wh.reset_subscription("pipe", "start") == 0
    assert wh.acknowledge("pipe", 0, epoch=0) is False, "said of what was before the reset"
    with wh.subscribe("now", "pipe") as reader:
        first, _ = all_of(reader, copy, acknowledge=False)
        assert (first.reset, first.cn) == (True, 0)
    check(wh, "now", copy)


def test_what_cannot_be_read_is_told(wh: Warehouse, database: SqliteFile) -> None:
    with wh.subscribe("now", "r") as reader:
        with pytest.raises(ConfigError, match="being read by another process"):
            wh.subscribe("now", "r")
        for wrong, message in (
            (("nwo", "x"), 'no view "nwo"'),
            (("plain", "r"), 'reads view "now"'),
            (("now", "r", Start("start")), "has begun already"),
            (("now", "a/b"), "cannot name a subscription"),
            (("now", "x", Start(99)), "cn 99"),
        ):
            with pytest.raises(DefiniteError, match=message):
                wh.subscribe(*wrong)
        wh.drop_subscription("r")
        with pytest.raises(DefiniteError, match="dropped or reset"):
            reader.next()
    with pytest.raises(ConfigError, match='no subscription "r"'):
        wh.drop_subscription("r")
    with wh.subscribe("now", "r") as reader:
        pass
    wh.drop("now")
    with pytest.raises(ConfigError, match='no view "now"'):
        wh.subscribe("now", "r")
    (left,) = wh.subscriptions()
    assert left.state == "its view is gone"


def test_a_reader_waits_for_what_comes(wh: Warehouse, database: SqliteFile) -> None:
    found: list[int] = []
    stop, first = threading.Event(), threading.Event()

    def follow() -> None:
        with wh.subscribe("now", "f") as reader:
            while not stop.is_set():
                if (delivery := reader.next()) is None:
                    reader.wait(stop)
                    continue
                found.append(delivery.cn)
                reader.acknowledge()
                first.set()
                if delivery.cn == 1:
                    return

    thread = threading.Thread(target=follow)
    thread.start()
    assert first.wait(30)
    database.writer().execute("INSERT INTO u VALUES (1, 1)")
    wh.run_once()
    thread.join(30)
    stop.set()
    assert found == [0, 1]


def streamed(wh: Warehouse, name: str, checkpoint: Path, copy: Copy, **options: object) -> list:
    """What a stream gives until it has caught up: the tables of its batches."""
    found: list[pa.Table] = []
    reader = wh._parts.spark.readStream.format("steadyview").option("changes", True)
    for key, value in {"project": wh.project.root, **options}.items():
        reader = reader.option(key, str(value))
    query = (
        reader.load(name)
        .writeStream.foreachBatch(lambda batch, _: found.append(batch.toArrow()))
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    for table in found:
        ordered = table.sort_by([("_cn", "ascending"), ("_count", "ascending")])
        copy._rows(ordered)
        copy.cn = max([copy.cn, *ordered["_cn"].to_pylist()])
    return found


def test_a_stream_of_spark_begins_with_the_state_and_goes_on_from_its_checkpoint(
    wh: Warehouse, database: SqliteFile, tmp_path: Path
) -> None:
    dice, copy = random.Random(3), Copy()
    for number in range(3):
        batches = streamed(wh, "plain", tmp_path / "there", copy)
        assert len(batches) == 1, number
        check(wh, "plain", copy)
        change(database, dice)
        database.writer().execute("INSERT INTO u VALUES (1, 5)")
        wh.run_once()
    late = Copy()
    streamed(wh, "plain", tmp_path / "from", late, **{"from": 1})
    streamed(wh, "plain", tmp_path / "from", late)
    check(wh, "plain", late)
    write_view(wh.project.root, "plain", "SELECT t.g, u.x FROM s.t JOIN s.u ON u.t = t.id")
    wh.run_once()
    with pytest.raises(StreamingQueryException, match="built anew"):
        streamed(wh, "plain", tmp_path / "there", copy)
    with pytest.raises(StreamingQueryException, match="a stream gives a view's changes"):
        streamed(wh, "plain", tmp_path / "none", copy, changes="false")


def test_changes_as_a_frame_lead_from_one_state_to_the_newest(
    wh: Warehouse, database: SqliteFile
) -> None:
    dice = random.Random(4)
    for _ in range(3):
        change(database, dice)
        wh.run_once()
    for since in (0, 2, wh.status().cn):
        found = wh.view("plain").changes(since)
        assert found.columns == ["g", "x", "_count", "_cn", "_time"]
        net = Bag((tuple(row)[:2], row._count) for row in found.collect())
        assert bag(wh.view("plain").read(at=since)) + net == bag(wh.view("plain").read())
    with pytest.raises(PySparkException, match="cn 99"):
        wh.view("plain").changes(99).collect()


def table_rows(wh: Warehouse, name: str) -> pa.Table:
    return DeltaTable(wh.project.warehouse / "changes" / name).to_pyarrow_table()


def test_change_tables_hold_what_readers_are_given(
    wh: Warehouse, database: SqliteFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    dice = random.Random(5)
    for _ in range(4):
        change(database, dice)
        wh.run_once()
    wh.refresh(["late", "whole"])
    for name in VIEWS:
        copy, table = Copy(), table_rows(wh, name)
        assert table.column_names[-3:] == ["_count", "_cn", "_time"]
        with wh.subscribe(name, f"r_{name}", Start(0)) as reader:
            state = reader.next()
            assert state is not None
            copy.take(state)
            told = Copy()
            all_of(reader, told)
        copy._rows(table.sort_by([("_cn", "ascending"), ("_count", "ascending")]))
        assert copy.rows == bag(wh.view("now" if name == "held" else name).read())
        cns, times = table["_cn"].to_pylist(), table["_time"].to_pylist()
        known = wh._catalog.commits
        assert times == [steadyview.catalog.from_us(known.time_of(cn)) for cn in cns]


def test_a_change_table_begins_anew_with_its_view_and_goes_with_it(
    wh: Warehouse, database: SqliteFile
) -> None:
    database.writer().execute("INSERT INTO u VALUES (1, 1)")
    wh.run_once()
    folder = wh.project.warehouse / "changes" / "plain"
    assert set(table_rows(wh, "plain")["_cn"].to_pylist()) == {1}
    DeltaTable(folder).delete()
    database.writer().execute("INSERT INTO u VALUES (1, 2)")
    wh.run_once()
    assert set(table_rows(wh, "plain")["_cn"].to_pylist()) == {1, 2}, "written anew"
    root = wh.project.root
    write_view(root, "plain", "SELECT u.x FROM s.u")
    wh.run_once()
    assert table_rows(wh, "plain").num_rows == 0
    never = "CREATE MATERIALIZED VIEW plain TBLPROPERTIES ('steadyview.changes' = 'never') AS"
    write_view(root, "plain", f"{never} SELECT u.x FROM s.u")
    wh.run_once()
    assert not folder.exists()
    wh.drop("now")
    wh.run_once()
    assert not (wh.project.warehouse / "changes" / "now").exists()


def test_the_subscription_of_a_dropped_view_says_so(wh: Warehouse) -> None:
    with wh.subscribe("now", "r") as reader:
        wh.drop("now")
        with pytest.raises(ViewStopped, match="is no more"):
            reader.next()
