"""Killed again and again after some seconds, with writers on, every life makes durable progress.

`make soak` does it with sixty lives instead of three.
"""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import sys
import threading
from contextlib import closing, suppress
from pathlib import Path

import pytest

from tests.crash.checks import check_all
from tests.crash.keepers import Keeper
from tests.crash.test_killed import Writers
from tests.processes.test_signals import steadyview_run

LIVES = int(os.environ.get("STEADYVIEW_LIVES", "3"))
SHORTEST, LONGEST = 10.0, 30.0 if LIVES > 6 else 20.0
LONG = 20.0
"""Seconds: half of that, and more where the machine is busy, go into starting Spark."""


def busy() -> float:
    """How many times slower than alone a process is here, by what others do: 1 to 4."""
    return min(max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1)), 4.0)


def known(warehouse: Path) -> tuple[int, list[int | None]]:
    """The newest admitted cn, and the cn of every view."""
    with closing(sqlite3.connect(warehouse / "catalog.db", timeout=30)) as catalog:
        ((last,),) = catalog.execute("SELECT last_cn FROM warehouse").fetchall()
        views = catalog.execute("SELECT cn FROM views WHERE state <> 'dropped'").fetchall()
        return last, [cn for (cn,) in views]


def live(folder: Path, seconds: float) -> None:
    """A life of `steadyview run` and its Spark, ended by SIGKILL."""
    with steadyview_run(folder) as process:
        reader = threading.Thread(target=process.stdout.read)
        reader.start()
        threading.Event().wait(seconds)
        os.killpg(process.pid, signal.SIGKILL)
        reader.join()


def counted(shop, question: str) -> list[tuple[int]]:
    """An answer of the catalog; nothing while it is being made."""
    with closing(sqlite3.connect(shop.warehouse / "catalog.db", timeout=30)) as catalog:
        with suppress(sqlite3.OperationalError):
            return catalog.execute(question).fetchall()
        return []


def until_captured(shop) -> None:
    """A life that ends when both sources have a position: from there on nothing may be missed."""
    asked = "SELECT count(*) FROM sources WHERE position IS NOT NULL"
    with steadyview_run(shop.folder):
        for _ in range(600):
            threading.Event().wait(0.1)
            if (shop.warehouse / "catalog.db").exists() and counted(shop, asked) == [(2,)]:
                return
    pytest.fail("capture did not begin")


def check_views_grow(lives: list[list[int | None]], lengths: list[float]) -> None:
    """Once some view has a state, every life that is long enough adds to it, and often others."""
    reached = [sum(cn or 0 for cn in views) for views in lives]
    begun = next((i for i, cn in enumerate(reached) if cn), len(lives))
    assert begun <= len(lives) // 2, f"views got no first state for too long: {lives}"
    for life in range(begun + 1, len(lives)):
        if lengths[life] >= LONG:
            told = f"life {life} of {lengths[life]:.0f} s added nothing: {lives}"
            assert reached[life - 1] < reached[life], told
    assert len(lives) < begun + 3 or reached[begun] < reached[-1], f"nothing was added: {lives}"
    for life in range(begun, len(lives) - 4):
        assert reached[life] < reached[life + 4], f"four lives added nothing: {lives}"


def test_lives_in_which_only_capture_goes_on_are_not_called_progress() -> None:
    short = [10.0] * 6
    check_views_grow([[None], [3], [3], [3], [9], [12]], short)
    wrong = ([[None]] * 6, [[None], [3], [3], [3], [3], [3]], [[None]] * 4 + [[3], [4]])
    for lives in wrong:
        with pytest.raises(AssertionError):
            check_views_grow(lives, short)
    with pytest.raises(AssertionError):
        check_views_grow([[3], [3], [9]], [10.0, 25.0, 25.0])


@pytest.mark.slow
@pytest.mark.timeout(180 * LIVES + 600)
def test_every_life_makes_progress_and_the_last_one_catches_up(shop):
    lengths, slower = random.Random(7), busy()
    progress: list[tuple[int, list[int | None]]] = []
    lived: list[float] = []
    until_captured(shop)
    with Writers(shop):
        for _ in range(LIVES):
            lived.append(lengths.uniform(SHORTEST, LONGEST))
            live(shop.folder, slower * lived[-1])
            progress.append(known(shop.warehouse))
            sys.stderr.write(f"{lived[-1]:.0f} s: {progress[-1]}\n")
    captured = [last for last, _ in progress]
    assert all(a < b for a, b in zip([0, *captured], captured, strict=False)), progress
    check_views_grow([views for _, views in progress], lived)
    if LIVES > 6:
        behind = [last - min(cn or 0 for cn in views) for last, views in progress]
        assert min(behind[LIVES // 2 :]) < 600, f"the backlog grows without bound: {behind}"
    keeper = Keeper(shop.folder)
    keeper.ask("once")
    check_all(shop, keeper)
    keeper.end()
