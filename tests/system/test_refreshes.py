"""Deferred views: refreshed together to one moment, each right there, whatever its policy."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import steadyview
from steadyview.catalog.clock import from_us
from steadyview.errors import ConfigError, OutsideRetention, ViewStopped
from steadyview.runtime.warehouse import Warehouse
from tests.system.databases import SqliteFile, write_project
from tests.system.maintained import bag

SELECT = "SELECT t.g, COUNT(*) AS n, SUM(u.x) AS x, MIN(u.x) AS low FROM s.t JOIN s.u ON u.t = t.id"
POLICIES = {
    "now": "",
    "held": "'steadyview.policy' = 'ipda'",
    "late": "'steadyview.policy' = 'dpda'",
    "rough": "'steadyview.policy' = 'dpda', 'steadyview.level' = 'strong'",
    "whole": "'steadyview.policy' = 'snapshot'",
}
CHILDREN = {
    "over_late": "SELECT SUM(n) AS n, MIN(low) AS low FROM late",
    "over_both": "SELECT l.g, l.n, h.x FROM late l LEFT JOIN held h ON l.g <=> h.g",
    "over_whole": "SELECT w.g, w.n, u.x FROM whole w LEFT JOIN s.u ON u.t = w.n",
}
PARENTS = {"over_late": ["late"], "over_both": ["late", "held"], "over_whole": ["whole"]}
DEFERRED = ("held", "late", "rough", "whole", *CHILDREN)


def view(name: str, properties: str, select: str) -> str:
    listed = f"TBLPROPERTIES ({properties}) " if properties else ""
    return f"CREATE MATERIALIZED VIEW {name} {listed}AS {select}"


@pytest.fixture
def database(tmp_path: Path) -> Iterator[SqliteFile]:
    made = SqliteFile(tmp_path / "s.db")
    made.create("t", "id INTEGER PRIMARY KEY, g TEXT")
    made.create("u", "t INTEGER, x INTEGER")
    made.writer().execute("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, NULL)")
    made.writer().execute("INSERT INTO u VALUES (1, 10), (2, 20), (2, NULL)")
    yield made
    made.close()


@pytest.fixture
def project(database: SqliteFile, tmp_path: Path) -> Path:
    grouped = f"{SELECT} GROUP BY t.g"
    views = {name: view(name, props, grouped) for name, props in POLICIES.items()}
    return write_project(tmp_path / "project", {"s": database}, views | CHILDREN)


def change(database: SqliteFile, dice: random.Random) -> None:
    some = dice.randrange(1, 4)
    statement = dice.choice(
        (
            f"INSERT INTO u VALUES ({some}, {dice.choice((1, 2, 3, 'NULL'))})",
            f"UPDATE t SET g = {dice.choice(('NULL', repr('a'), repr('c')))} WHERE id = {some}",
            f"UPDATE u SET x = x - 1 WHERE t = {some}",
            f"DELETE FROM u WHERE t = {some} AND rowid % 2 = 0",
        )
    )
    database.writer().execute(statement)


def shown(wh: Warehouse) -> dict[str, int | None]:
    return {v.name: v.cn for v in wh.status().views}


def check(wh: Warehouse) -> None:
    """Every view shows what its SELECT gave at its own cn; the immediate one is the measure."""
    cns = shown(wh)
    for name in POLICIES:
        assert bag(wh.view(name).read()) == bag(wh.view("now").read(at=cns[name])), (name, cns)
    assert [v.view for v in wh.verify() if not v.equal] == []


@pytest.mark.parametrize("seed", range(2))
def test_any_views_refreshed_to_any_moment_are_right_there(
    project: Path, database: SqliteFile, spark: SparkSession, seed: int
) -> None:
    dice = random.Random(seed)
    with steadyview.open(project, spark=spark) as wh:
        wh.run_once()
        for _ in range(6):
            for _ in range(dice.randrange(1, 4)):
                change(database, dice)
            if dice.random() < 0.7:
                wh.run_once()
            before = shown(wh)
            names = dice.sample(DEFERRED, dice.randrange(1, 4))
            last = wh.status().cn
            lowest = max(before[name] or 0 for name in DEFERRED)
            to = dice.choice((None, *range(lowest, last + 1)))
            done = wh.refresh(names, to)
            after = shown(wh)
            assert {after[name] for name in names} == {done.cn}
            assert done.cn == (wh.status().cn if to is None else to)
            for name in set(DEFERRED) - {*names, *done.along}:
                assert after[name] == before[name], name
            for child, parents in PARENTS.items():
                assert after[child] <= min(after[p] for p in parents)
        check(wh)
        wh.refresh([], everything=True)
        assert len(set(shown(wh).values())) == 1
        check(wh)


def test_a_deferred_view_shows_its_last_refresh_until_the_next(
    project: Path, database: SqliteFile, spark: SparkSession
) -> None:
    with steadyview.open(project, spark=spark) as wh:
        wh.run_once()
        first = shown(wh)
        database.writer().execute("INSERT INTO u VALUES (1, 1)")
        wh.run_once()
        assert shown(wh) == {**first, "now": wh.status().cn}
        told = {v.name: v.refresh for v in wh.status().views}
        assert told["now"] is None
        assert (told["late"].policy, told["late"].schedule) == ("dpda", "on demand")
        # what ipda has propagated needs only to be shown
        assert told["held"].propagated == wh.status().cn
        assert told["late"].propagated == first["late"]
        asked = wh.status().cn
        assert wh.refresh(["over_both"], asked).along == ("held", "late")
        assert {shown(wh)[n] for n in ("over_both", "held", "late", "over_late")} >= {asked}
        wh.run_once()
        # what reads refreshed views alone follows them by itself
        assert shown(wh)["over_late"] == asked


def test_another_policy_builds_nothing_anew_and_shows_what_is_there(
    project: Path, database: SqliteFile, spark: SparkSession
) -> None:
    def write(policy: str) -> None:
        properties = f"'steadyview.policy' = '{policy}'"
        text = view("held", properties, f"{SELECT} GROUP BY t.g")
        (project / "views" / "held.sql").write_text(text)

    with steadyview.open(project, spark=spark) as wh:
        wh.run_once()
        row = wh._catalog.views.get("held")
        for policy, moves in (("immediate", True), ("dpda", False), ("ipda", False)):
            database.writer().execute("INSERT INTO u VALUES (1, 1)")
            wh.run_once()
            before = shown(wh)["held"]
            write(policy)
            # nothing was committed since: what is propagated is shown all the same
            wh.run_once()
            assert shown(wh)["held"] == (wh.status().cn if moves else before), policy
        assert wh._catalog.views.get("held").id == row.id
        check(wh)


def test_what_cannot_be_refreshed_is_told_and_nothing_moves(
    project: Path, database: SqliteFile, spark: SparkSession
) -> None:
    with steadyview.open(project, spark=spark) as wh:
        wh.run_once()
        for x in range(4):
            database.writer().execute(f"INSERT INTO u VALUES (1, {x})")
            wh.run_once()
        last = wh.status().cn
        wh.refresh(["rough"])
        wh.refresh(["late"], last - 1)
        before = shown(wh)
        for names, to, kind, said in (
            (["late"], last - 2, OutsideRetention, "no view goes back"),
            (["now"], last - 1, ConfigError, "it is immediate"),
            (["lat"], None, ConfigError, 'did you mean "late"'),
            (["held", "late"], last + 5, OutsideRetention, "there is no commit"),
            (["late"], "2099-01-01", OutsideRetention, "still to come"),
            ([], None, ConfigError, "name the views"),
        ):
            with pytest.raises(kind) as told:
                wh.refresh(names, to)
            assert said in str(told.value), (names, to)
            assert shown(wh) == before


def test_a_moment_to_come_is_waited_for(
    project: Path, database: SqliteFile, spark: SparkSession
) -> None:
    with steadyview.open(project, spark=spark) as wh:
        wh.run_once()
        soon = from_us(wh._clock.now_us() + 3_000_000)
        database.writer().execute("INSERT INTO u VALUES (1, 1)")
        wh.run_once()
        done = wh.refresh(["late"], soon, wait=from_us(10_000_000) - from_us(0))
        assert done.cn == wh.status().cn
        assert wh._clock.now_us() >= int(soon.timestamp() * 1_000_000)


def test_a_value_that_cannot_be_computed_moves_no_view_of_the_refresh(
    database: SqliteFile, tmp_path: Path, spark: SparkSession
) -> None:
    quotient = "SELECT u.t, 6 DIV u.x AS q FROM s.u"
    views = {
        "broken": view("broken", POLICIES["late"], quotient),
        "held_broken": view("held_broken", POLICIES["held"], quotient),
        "late": view("late", POLICIES["late"], "SELECT g FROM s.t"),
        "now": "SELECT x FROM s.u",
    }
    folder = write_project(tmp_path / "project", {"s": database}, views)
    with steadyview.open(folder, spark=spark) as wh:
        wh.run_once()
        database.writer().execute("INSERT INTO u VALUES (1, 0)")
        wh.run_once()
        assert {v.name: v.state for v in wh.status().views}["held_broken"] == "stopped"
        before = shown(wh)
        with pytest.raises(ViewStopped) as told:
            wh.refresh(["late", "broken"])
        assert 'view "broken" cannot be refreshed' in str(told.value)
        assert "DIVIDE_BY_ZERO" in str(told.value)
        assert shown(wh) == before
        assert wh.refresh(["late"]).cn == wh.status().cn
        assert wh.refresh(["broken"], before["now"] - 1).cn == before["now"] - 1


class Still:
    """A clock that is put forward by hand."""

    def __init__(self, time: int) -> None:
        self.time = time

    def now_us(self) -> int:
        return self.time

    def steady_us(self) -> int:
        return self.time


def test_views_of_one_schedule_are_refreshed_to_its_latest_tick(
    database: SqliteFile, tmp_path: Path, spark: SparkSession
) -> None:
    hourly = "'steadyview.schedule' = 'every 1 hour'"
    daily = "'steadyview.schedule' = 'daily at 06:00', 'steadyview.refresh_to' = 'end of day'"
    views = {
        "late": view("late", f"{POLICIES['late']}, {hourly}", "SELECT x FROM s.u"),
        "held": view("held", f"{POLICIES['held']}, {hourly}", "SELECT x FROM s.u"),
        "daily": view("daily", f"{POLICIES['late']}, {daily}", "SELECT x FROM s.u"),
    }
    folder = write_project(tmp_path / "project", {"s": database}, views)
    hour, day = 3_600_000_000, 86_400_000_000
    midnight = 20_000 * day
    with steadyview.open(folder, spark=spark) as wh:
        clock = wh._clock = Still(midnight - 5 * hour)

        def commit(at: int) -> int:
            clock.time = at
            database.writer().execute("INSERT INTO u VALUES (1, 1)")
            wh.run_once()
            return wh.status().cn

        wh.run_once()
        first = commit(midnight - hour // 2)
        assert shown(wh) == {"late": first - 1, "held": first - 1, "daily": first - 1}
        second = commit(midnight + hour // 2)
        # 00:00 has passed: as of then the second commit was still to come
        assert shown(wh) == {"late": first, "held": first, "daily": first - 1}
        third = commit(midnight + 6 * hour + hour // 2)
        assert third == second + 1
        assert shown(wh) == {"late": second, "held": second, "daily": first}
        due = {v.name: v.refresh.due for v in wh.status().views}
        assert due["late"] == from_us(midnight + 7 * hour)
        assert due["daily"] == from_us(midnight + day + 6 * hour)
        # a missed tick runs once, and to the latest one
        clock.time = midnight + 10 * hour
        wh.run_once()
        assert shown(wh) == {"late": third, "held": third, "daily": first}


def test_a_running_run_refreshes_for_others(
    project: Path, database: SqliteFile, spark: SparkSession
) -> None:
    stop = threading.Event()
    with steadyview.open(project, spark=spark) as keeper, steadyview.open(project) as other:
        keeper.run_once()
        database.writer().execute("INSERT INTO u VALUES (2, 5)")
        thread = threading.Thread(target=keeper.run, args=(stop,))
        thread.start()
        try:
            while other.status().holder is None or not other.status().holder.get("socket"):
                assert thread.is_alive()
                stop.wait(0.05)
            done = other.refresh(["late", "held"])
            assert done.views == ("late", "held")
            assert shown(other)["late"] == shown(other)["held"] == done.cn == 1
            with pytest.raises(ConfigError):
                other.refresh(["nothing"])
        finally:
            stop.set()
            thread.join()
