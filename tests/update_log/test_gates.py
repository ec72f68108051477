"""What a gate binds, on real servers: exact by the sources' own commit times, whatever is killed.

PostgreSQL tells when it committed each transaction (`track_commit_timestamp`): that is the measure.
A SQLite file does not; its writer notes the time before and after each commit.
"""

from __future__ import annotations

import os
import random
import select
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from itertools import count
from pathlib import Path

import psycopg
import pytest

from examples.embedded_postgres import EmbeddedPostgres, embedded_postgres
from steadyview.catalog import BoundTime, Catalog, Holder, Lease
from steadyview.crash_points import GATES, VARIABLE
from steadyview.errors import ClockAhead
from steadyview.runtime import kept
from steadyview.runtime.clock import SystemClock
from steadyview.sources.sqlite.monitor import ON_TIME_MICROSECONDS
from steadyview.update_log import UpdateLog
from tests.update_log import gated
from tests.update_log.gated import SECOND, Captured, captured

ROOT = Path(__file__).parents[2]
ME = Holder(0, "", 0, "the successor")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedPostgres]:
    folder = tmp_path_factory.mktemp("server") / "data"
    with embedded_postgres(folder, track_commit_timestamp="on") as made:
        yield made


class World:
    """Two databases and their users, and what the catalog bound."""

    def __init__(self, folder: Path, server: EmbeddedPostgres) -> None:
        self.folder, self.server = folder, server
        self.name = f"gates_{folder.name}".lower().replace("-", "_")[:60]
        self.url = server.create_database(self.name)
        gated.new_world(folder, self.url)
        self.looks: dict[int, tuple[int, int]] = {}
        """When each row was committed to the file: not before, and not after."""
        self._numbers = count(1)

    def commit(self, *sources: str) -> None:
        """One row each, in a transaction of its own."""
        number = next(self._numbers)
        if "pg" in sources:
            with psycopg.connect(self.url, autocommit=True) as pg:
                pg.execute("INSERT INTO t VALUES (%s)", [number])
        if "lite" in sources:
            before = time.time_ns() // 1000
            with closing(sqlite3.connect(self.folder / "lite.db", timeout=60)) as lite, lite:
                lite.execute("INSERT INTO t VALUES (?)", [number])
            self.looks[number] = (before, time.time_ns() // 1000)

    def committed(self) -> dict[int, int]:
        """By row, when PostgreSQL committed it."""
        sql = (
            "SELECT id, (extract(epoch FROM pg_xact_commit_timestamp(xmin)) * 1000000)::bigint"
            " FROM t"
        )
        with psycopg.connect(self.url) as pg:
            return dict(pg.execute(sql).fetchall())

    def catalog(self) -> Catalog:
        return Catalog.open(self.folder / "warehouse", SystemClock())

    def rows(self, source: str, catalog: Catalog) -> dict[int, int]:
        """By row, the cn of its commit."""
        log = UpdateLog(self.folder / "warehouse" / "log")
        found = {}
        for relation in catalog.sources.schemas(source):
            table = log.rows(relation.name)
            seqs = table.column("_seq").to_pylist()
            for row, seq in zip(table.column("c0").to_pylist(), seqs, strict=True):
                if (cn := catalog.commits.cn_of(source, seq)) is not None:
                    found[row] = cn
        return found

    def check(self, bound: BoundTime, catalog: Catalog) -> tuple[int, int]:
        """The time's cn is right for each source that is not told; rows on either side of it."""
        assert bound.cn is not None
        sides = [0, 0]
        if "pg" not in bound.told:
            cns = self.rows("pg", catalog)
            for row, at in self.committed().items():
                if row < min(cns, default=0):
                    continue  # from before capture began
                shown = cns.get(row, bound.cn + 1) <= bound.cn
                assert shown == (at <= bound.time), (row, at - bound.time, bound)
                sides[at > bound.time] += 1
        if "lite" not in bound.told:
            cns = self.rows("lite", catalog)
            for row, (before, after) in self.looks.items():
                if row < min(cns, default=0):
                    continue
                shown = cns.get(row, bound.cn + 1) <= bound.cn
                if after <= bound.time:
                    assert shown, (row, after - bound.time, bound)
                elif before > bound.time + ON_TIME_MICROSECONDS:
                    assert not shown, (row, before - bound.time, bound)
        return sides[0], sides[1]

    def drop(self) -> None:
        with self.server.connect() as connection:
            slots = "SELECT slot_name FROM pg_replication_slots WHERE database = %s"
            for (slot,) in connection.execute(slots, [self.name]).fetchall():
                until(lambda s=slot: self._dropped(connection, s), "a slot that is not active")
        self.server.drop_database(self.name)

    @staticmethod
    def _dropped(connection: psycopg.Connection, slot: str) -> bool:
        try:
            connection.execute("SELECT pg_drop_replication_slot(%s)", [slot])
        except psycopg.errors.ObjectInUse:
            return False
        return True


@pytest.fixture
def world(
    tmp_path: Path, server: EmbeddedPostgres, monkeypatch: pytest.MonkeyPatch
) -> Iterator[World]:
    monkeypatch.setattr(kept, "schedule", kept.schedule)
    made = World(tmp_path, server)
    yield made
    made.drop()


def until(done: Callable[[], bool], what: str, seconds: float = 60) -> None:
    deadline, pause = time.monotonic() + seconds, threading.Event()
    while not done():
        assert time.monotonic() < deadline, f"not seen: {what}"
        pause.wait(0.02)


def bound(catalog: Catalog) -> list[BoundTime]:
    return catalog.gates.of(0, 10**9)


def bound_at(catalog: Catalog, moment: int) -> BoundTime:
    found = catalog.gates.at(moment)
    assert found is not None, "there is no gate"
    assert found.cn is not None, found
    return found


def next_tick(seconds: int, least: float = 0.3) -> int:
    now = time.time_ns() // 1000
    return ((now + int(least * SECOND)) // (seconds * SECOND) + 1) * seconds * SECOND


def wait_until(moment: int) -> None:
    threading.Event().wait(max(moment - time.time_ns() // 1000, 0) / SECOND)


@contextmanager
def writing(world: World, *sources: str) -> Iterator[None]:
    """Somebody commits at these sources, again and again."""
    stop, dice = threading.Event(), random.Random(7)

    def write() -> None:
        while not stop.wait(dice.random() / 20):
            world.commit(*sources)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield
    finally:
        stop.set()
        writer.join()


@contextmanager
def another(world: World, seconds: int, crash_at: str = "") -> Iterator[subprocess.Popen[bytes]]:
    """A process that captures, until it is killed."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.update_log.gated", world.folder, world.url, str(seconds)],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([*sys.path, str(ROOT)]),
            VARIABLE: crash_at,
        },
        cwd=ROOT,
        stdout=subprocess.PIPE,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture
def life(world: World) -> Iterator[Captured]:
    gated.tick_every(1)
    made = captured(world.folder, world.url)
    made.captures.start()
    yield made
    made.end()


def test_every_bound_time_separates_what_its_sources_committed(
    world: World, life: Captured
) -> None:
    """Under writers at both, a gate every second."""
    with writing(world, "pg"), writing(world, "lite"):
        until(lambda: len(bound(life.catalog)) >= 6, "six times bound", 30)
    last = next_tick(1)
    until(lambda: any(b.time >= last for b in bound(life.catalog)), "all admitted")
    sides = [world.check(gate, life.catalog) for gate in bound(life.catalog)]
    assert sum(1 for before, after in sides if before and after) >= 3
    exact = [gate for gate in bound(life.catalog) if not gate.told]
    assert len(exact) >= 3, bound(life.catalog)
    assert not any("pg" in gate.told for gate in bound(life.catalog)), bound(life.catalog)
    # nobody waited long: a gate is closed when all were heard from, and that is soon
    waited = sorted((gate.bound or 0) - gate.time for gate in exact)
    assert waited[len(waited) // 2] < SECOND, waited


def test_a_time_at_which_nobody_captured_is_bound_exactly_by_the_next_life(world: World) -> None:
    gated.tick_every(3)
    first = captured(world.folder, world.url)
    first.captures.start()
    world.commit("pg", "lite")
    until(lambda: first.catalog.commits.last_cn() == 2, "both admitted")
    first.end()
    moment = next_tick(3)
    world.commit("pg")
    wait_until(moment + SECOND // 20)
    world.commit("pg", "lite")
    world.commit("pg")
    second = captured(world.folder, world.url)
    try:
        second.captures.start()
        second.captures.close_gates()
        found = bound_at(second.catalog, moment)
        # it says so where it cannot know: a file does not tell when it was written
        assert found.told == {"lite": "mixed"}
        assert world.check(found, second.catalog) == (2, 2)
    finally:
        second.end()


@pytest.mark.parametrize("point", [*GATES, "admitted:2"])
def test_killed_here_the_time_is_bound_once_and_right(world: World, point: str) -> None:
    seconds = 2
    with writing(world, "pg", "lite"), another(world, seconds, point) as process:
        assert process.wait(60) == -signal.SIGKILL
        with closing(world.catalog()) as catalog:
            before = bound(catalog)
        gated.tick_every(seconds)
        later = captured(world.folder, world.url)
        later.captures.start()
        until(lambda: len(bound(later.catalog)) >= len(before) + 2, "two times more", 30)
    last = next_tick(seconds)
    try:
        until(lambda: bound(later.catalog)[-1].time >= last, "all admitted")
        found = bound(later.catalog)
        assert found[: len(before)] == before
        sides = [world.check(gate, later.catalog) for gate in found]
        assert any(before and after for before, after in sides)
        cns = [gate.cn for gate in found]
        assert cns == sorted(cns)
    finally:
        later.end()


def test_after_the_limit_a_time_is_bound_without_a_source_that_is_silent(world: World) -> None:
    gated.tick_every(4)
    life = captured(world.folder, world.url, limit=timedelta(seconds=1))
    life.captures.start()
    try:
        world.commit("pg", "lite")
        until(lambda: life.catalog.commits.last_cn() == 2, "both admitted")
        moment = next_tick(4, 0.6)
        life.captures.stop_one("pg")
        wait_until(moment + SECOND // 5)
        world.commit("lite")
        held = life.captures._threads["lite"]
        until(lambda: held.held, "what the file has is held back", 1)
        assert life.catalog.commits.last_cn() == 2
        (gate,) = life.captures.conditions.gates.waiting()
        assert (gate.time, gate.missing()) == (moment, ["pg"])
        until(lambda: life.catalog.gates.at(moment).cn is not None, "closed", 5)
        found = bound_at(life.catalog, moment)
        assert found.told == {"pg": "silent"}
        assert found.cn == 2
        assert (found.bound or 0) >= moment + SECOND
        until(lambda: life.catalog.commits.last_cn() == 3, "released")
    finally:
        life.end()


class Shifted(SystemClock):
    """The machine's clock, and by how much somebody has set it wrong."""

    def __init__(self) -> None:
        self.ahead = 0

    def now_us(self) -> int:
        return super().now_us() + self.ahead


def test_by_a_clock_that_jumped_ahead_nothing_is_admitted_until_it_is_right_again(
    world: World,
) -> None:
    gated.tick_every(3600)
    clock = Shifted()
    life = captured(world.folder, world.url, clock=clock)
    life.captures.start()
    try:
        world.commit("pg", "lite")
        until(lambda: life.catalog.commits.last_cn() == 2, "both admitted")
        clock.ahead = 86_400 * SECOND
        world.commit("pg", "lite")

        def refused() -> bool:
            errors = life.captures.errors()
            return {"pg", "lite"} <= errors.keys()

        until(refused, "both refused")
        errors = life.captures.errors()
        assert all(isinstance(e, ClockAhead) for e in errors.values()), errors
        assert '"pg"' in str(errors["lite"].detail)
        assert life.catalog.commits.last_cn() == 2
        clock.ahead = 0
        until(lambda: life.catalog.commits.last_cn() == 4, "it goes on by itself")
        assert life.catalog.commits.time_of(4) < clock.now_us() + SECOND
        assert life.captures.errors() == {}
    finally:
        life.end()


def test_a_machine_that_is_ahead_from_the_beginning_is_noticed_against_the_server(
    world: World,
) -> None:
    gated.tick_every(3600)
    clock = Shifted()
    clock.ahead = 3600 * SECOND
    life = captured(world.folder, world.url, clock=clock)
    life.captures.start()
    try:
        world.commit("pg")
        until(lambda: "pg" in life.captures.errors(), "refused")
        assert life.catalog.commits.last_cn() == 0
    finally:
        life.end()


def test_a_stopped_process_that_comes_back_after_another_took_over_admits_nothing(
    world: World,
) -> None:
    with another(world, 3600) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"captures\n"
        world.commit("lite")
        with closing(world.catalog()) as catalog:
            until(lambda: catalog.commits.last_cn() == 1, "admitted")
            process.send_signal(signal.SIGSTOP)
            # the lock is lost: as on a file system that forgets it
            (world.folder / "warehouse" / "lease").unlink()
            with Lease.acquire(world.folder / "warehouse", ME), catalog.held():
                before = catalog.sources.states()
                world.commit("lite")
                process.send_signal(signal.SIGCONT)
                # it wakes, captures the row, and is refused
                ready, _, _ = select.select([process.stdout], [], [], 30)
                assert ready, "it was not refused"
                assert process.stdout.readline() == b"LeaseLost\n"
                assert catalog.commits.last_cn() == 1
                assert catalog.sources.states() == before
