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


def check_views_grow(lives: list[list[int | None]]) -> None:
    """From the first life on that gave some view a state, at least every second life adds to it."""
    reached = [sum(cn or 0 for cn in views) for views in lives]
    begun = next((i for i, cn in enumerate(reached) if cn), len(lives))
    assert begun <= len(lives) // 2, f"views got no first state for too long: {lives}"
    for life in range(begun, len(lives) - 2):
        assert reached[life] < reached[life + 2], f"two lives without progress of views: {lives}"


def test_lives_in_which_only_capture_goes_on_are_not_called_progress() -> None:
    check_views_grow([[None], [3], [3], [9], [9], [12]])
    for lives in ([[None]] * 6, [[None], [3], [3], [3], [9], [12]], [[None]] * 4 + [[3], [4]]):
        with pytest.raises(AssertionError):
            check_views_grow(lives)


@pytest.mark.slow
@pytest.mark.timeout(180 * LIVES + 600)
def test_every_life_makes_progress_and_the_last_one_catches_up(shop):
    lengths, slower = random.Random(7), busy()
    progress: list[tuple[int, list[int | None]]] = []
    until_captured(shop)
    with Writers(shop):
        for _ in range(LIVES):
            live(shop.folder, slower * lengths.uniform(SHORTEST, LONGEST))
            progress.append(known(shop.warehouse))
    captured = [last for last, _ in progress]
    assert all(a < b for a, b in zip([0, *captured], captured, strict=False)), progress
    sys.stderr.write(f"captured, views after each life: {progress}\n")
    check_views_grow([views for _, views in progress])
    if LIVES > 6:
        behind = [last - min(cn or 0 for cn in views) for last, views in progress]
        assert min(behind[LIVES // 2 :]) < 600, f"the backlog grows without bound: {behind}"
    keeper = Keeper(shop.folder)
    keeper.ask("once")
    check_all(shop, keeper)
    keeper.end()
