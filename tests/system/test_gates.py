"""Views as of a moment at their sources' clocks: PostgreSQL and SQLite, the whole product."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import steadyview
from steadyview.algebra import Bag
from steadyview.catalog import from_us
from steadyview.errors import GateOpen
from steadyview.runtime import kept
from steadyview.runtime.warehouse import Warehouse
from steadyview.timing.schedules import RefreshSchedule
from tests.system.databases import LiveDatabase, PostgresDatabase, SqliteFile, write_project
from tests.system.maintained import bag
from tests.system.test_live import running

SECOND = 1_000_000
SELECT = "SELECT t.id, u.x FROM pg.t JOIN lite.u ON u.x = t.id % 3"
DEFERRED = {"held": "ipda", "late": "dpda", "whole": "snapshot"}


def deferred(name: str, policy: str) -> str:
    properties = f"'steadyview.policy' = '{policy}', 'steadyview.schedule' = 'daily at 00:00'"
    return f"CREATE MATERIALIZED VIEW {name} TBLPROPERTIES ({properties}) AS {SELECT}"


@pytest.fixture
def databases(tmp_path: Path) -> Iterator[dict[str, LiveDatabase]]:
    made: dict[str, LiveDatabase] = {
        "pg": PostgresDatabase(),
        "lite": SqliteFile(tmp_path / "lite.db"),
    }
    made["pg"].create("t", "id bigint PRIMARY KEY")
    made["lite"].create("u", "x INTEGER")
    made["lite"].writer().execute("INSERT INTO u VALUES (0), (1), (2)")
    yield made
    for database in made.values():
        database.close()


@pytest.fixture
def project(databases: dict[str, LiveDatabase], tmp_path: Path) -> Path:
    views = {name: deferred(name, policy) for name, policy in DEFERRED.items()}
    folder = tmp_path / "project"
    return write_project(folder, databases, {"now": SELECT, **views}, gate_limit="20s")


class Ticks:
    """Those that the test asks for."""

    def __init__(self) -> None:
        self._times: list[int] = []

    def soon(self, seconds: float) -> int:
        """One more, so many seconds from now."""
        self._times.append(now() + int(seconds * SECOND))
        return self._times[-1]

    def latest(self, time: int) -> int | None:
        return max((t for t in self._times if t <= time), default=None)

    def next(self, time: int) -> int | None:
        return min((t for t in self._times if t > time), default=None)


@pytest.fixture
def ticks(monkeypatch: pytest.MonkeyPatch) -> Ticks:
    """Every schedule names these, as moments of the sources' clocks."""
    made = Ticks()
    told = lambda text, zone: RefreshSchedule(text or "", zone, True, made)  # noqa: E731
    monkeypatch.setattr(kept, "schedule", told)
    return made


def now() -> int:
    return time.time_ns() // 1000


def after(moment: int) -> None:
    threading.Event().wait(max(moment - now(), 0) / SECOND)


def until_all_show(wh: Warehouse, moment: int) -> int:
    """The cn of a time, once every deferred view shows it or more."""
    deadline, pause = time.monotonic() + 60, threading.Event()
    while True:
        gate = wh._catalog.gates.at(moment)
        shown = {v.name: v.cn or -1 for v in wh.status().views}
        cn = None if gate is None else gate.cn
        if cn is not None and all(shown[name] >= cn for name in DEFERRED):
            return cn
        assert time.monotonic() < deadline, (gate, wh.status())
        pause.wait(0.05)


def test_views_of_all_policies_show_what_their_sources_committed_by_the_tick(
    project: Path, databases: dict[str, LiveDatabase], spark: SparkSession, ticks: Ticks
) -> None:
    pg, lite = databases["pg"].writer(), databases["lite"].writer()
    with steadyview.open(project, spark=spark) as wh:
        wh.run_once()
        with running(wh):
            tick = ticks.soon(4)
            after(tick - SECOND // 2)
            pg.execute("INSERT INTO t VALUES (1)")
            lite.execute("INSERT INTO u VALUES (1)")
            after(tick + SECOND // 5)
            pg.execute("INSERT INTO t VALUES (2)")
            cn = until_all_show(wh, tick)
        gate = wh._catalog.gates.at(tick)
        assert gate is not None
        assert gate.told == {}, gate
        for name in ("now", *DEFERRED):
            assert bag(wh.view(name).read(at=from_us(tick))) == Bag.of([(1, 1), (1, 1)]), name
        answer = wh.query_at("SELECT * FROM late", from_us(tick))
        assert (answer.cn, answer.warnings) == (cn, ())
        assert all(v.equal for v in wh.verify(list(DEFERRED), at=cn))


def test_a_tick_that_passed_while_nobody_worked_is_exact_for_who_can_tell(
    project: Path, databases: dict[str, LiveDatabase], spark: SparkSession, ticks: Ticks
) -> None:
    """`run --once`, some time later: PostgreSQL's commit times say what came before."""
    pg = databases["pg"].writer()
    with steadyview.open(project, spark=spark) as wh:
        wh.run_once()
        tick = ticks.soon(1)
        with wh._following():
            # the gate is open before its time has come, and then nobody is there
            pass
        assert now() < tick
        pg.execute("INSERT INTO t VALUES (1)")
        after(tick + SECOND // 20)
        pg.execute("INSERT INTO t VALUES (2)")
        after(tick + SECOND)
        with pytest.raises(GateOpen) as told:
            wh.refresh(["late"], from_us(tick))
        assert '"lite", "pg"' in str(told.value.detail)
        (open_,) = wh.status().gates
        assert (open_.time, open_.sources) == (from_us(tick), ["lite", "pg"])
        wh.run_once()
        assert wh.status().gates == []
        shown = {v.name: v for v in wh.status().views}
        newest = wh.status().cn
        assert newest == 2
        for name in DEFERRED:
            assert shown[name].cn == newest - 1
            assert bag(wh.view(name).read()) == Bag.of([(1, 1)])
            assert shown[name].refresh is not None
            assert (shown[name].refresh.bound, shown[name].refresh.told) == (from_us(tick), {})
        done = wh.refresh(["late"], newest)
        assert done.target is not None
        assert done.target.meant is None
        (first, *_) = wh.view("now").history()
        assert first.bound == ()
        assert [b.time for c in wh.view("now").history() for b in c.bound] == [from_us(tick)]


def test_what_a_time_means_is_told_and_so_is_a_source_that_was_silent(
    project: Path, databases: dict[str, LiveDatabase], spark: SparkSession, ticks: Ticks
) -> None:
    pg = databases["pg"].writer()
    with steadyview.open(project, spark=spark) as wh:
        wh.run_once()
        pg.execute("INSERT INTO t VALUES (1)")
        wh.run_once()
        loose = from_us(wh._catalog.commits.time_of(wh.status().cn) + 1)
        meant = wh.refresh(["late"], loose).target
        assert meant is not None
        assert meant.meant is not None
        assert not meant.meant.bound
        pg.execute("INSERT INTO t VALUES (2)")
        tick = ticks.soon(0.5)
        with wh._following():
            pass
        after(tick)
        with wh._lease("test"):
            wh._catalog.gates.bind(tick, {"lite": "silent"}, now())
        bound = from_us(tick)
        assert wh.refresh(["held"], bound).target.meant.told == {"lite": "silent"}
        for at in (None, bound):
            told = wh.query_at("SELECT * FROM held", at).warnings
            assert any('source "lite" was not heard from' in text for text in told), at
        assert wh.query_at("SELECT * FROM now").warnings == ()
        (shown,) = [v for v in wh.status().views if v.name == "held"]
        assert shown.refresh is not None
        assert (shown.refresh.bound, shown.refresh.told) == (bound, {"lite": "silent"})
        (commit,) = [c for c in wh.view("now").history() if c.bound]
        assert commit.bound[0].told == {"lite": "silent"}
