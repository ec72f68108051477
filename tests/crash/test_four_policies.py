"""One SELECT under four policies, killed again and again: they agree, and so do copies of them.

`make soak` kills fifty times instead of six.
"""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from steadyview.errors import OutsideRetention
from steadyview.runtime.file_reading import ReadableView
from tests.conftest import SOAK
from tests.crash import commits
from tests.crash.copier import as_text
from tests.crash.keepers import ROOT, Keeper
from tests.crash.shop import VIEWS, Shop, comparable, new_shop
from tests.crash.test_killed import Writers

KILLS = 50 if SOAK else 6
SHORTEST, LONGEST = 1.0, 6.0 if SOAK else 4.0
"""Seconds of a life; most begin when it is at work, some with its process."""
EARLY = 0.2
LATER = 1.0
"""Seconds by which the one may outlive the other."""
AT = 20
COMPRESS = ""
"""What the views' files say of compression, as a further property."""
POLICIES = {
    "totals": "'steadyview.policy' = 'immediate'",
    "totals_held": "'steadyview.policy' = 'ipda', 'steadyview.schedule' = 'every 1 second'",
    "totals_late": "'steadyview.policy' = 'dpda', 'steadyview.schedule' = 'every 2 seconds'",
    "totals_whole": "'steadyview.policy' = 'snapshot', 'steadyview.schedule' = 'every 2 seconds'",
}
ABOVE = "SELECT orders, COUNT(*) AS regions FROM totals_whole GROUP BY orders"
COPIED = [*POLICIES, "above"]


@pytest.fixture
def project(tmp_path: Path):
    shop = new_shop(tmp_path / "shop", views=())
    for name, properties in POLICIES.items():
        listed = ", ".join(p for p in (properties, COMPRESS) if p)
        create = f"CREATE MATERIALIZED VIEW {name} TBLPROPERTIES ({listed}) AS {VIEWS['totals']}"
        shop.add_view(name, create)
    shop.add_view("above", ABOVE)
    shop.begin()
    yield shop
    shop.database.drop()


def copier(shop: Shop, *first: str) -> subprocess.Popen:
    words = [*first, str(shop.folder), str(shop.folder / "copies.db"), *COPIED]
    path = f"{ROOT / 'src'}:{ROOT}"
    command = [sys.executable, "-m", "tests.crash.copier", *words]
    return subprocess.Popen(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": path})


def lived(shop: Shop, spark, dice: random.Random) -> None:
    """`run` and whoever copies at work, until both are killed, the one or the other first."""
    keeper, copying = Keeper(shop.folder, spark), copier(shop)
    keeper.tell("run")
    if dice.random() > EARLY:
        keeper.answer()
    waits = (dice.uniform(SHORTEST, LONGEST), dice.uniform(0, LATER))
    for process, wait in zip(dice.sample([keeper.process, copying], 2), waits, strict=True):
        threading.Event().wait(wait)
        assert process.poll() is None, "it ended by itself"
        process.send_signal(signal.SIGKILL)
    keeper.end()
    copying.wait()


def copy_of(shop: Shop, view: str) -> tuple[int, Counter[str]]:
    """Its position, and its rows."""
    with closing(sqlite3.connect(shop.folder / "copies.db")) as kept:
        ((cn,),) = kept.execute("SELECT cn FROM positions WHERE view = ?", (view,)).fetchall()
        rows = kept.execute("SELECT row, count FROM rows WHERE view = ?", (view,)).fetchall()
        return cn, Counter(dict(rows))


def rows_at(shop: Shop, view: str, cn: int) -> list[list[object]] | None:
    """The view's rows; None where it has no state."""
    try:
        parts = ReadableView(shop.folder, view).parts(cn)
    except OutsideRetention:
        return None
    tables = (table for part in parts for table in part.rows())
    return [list(row.values()) for table in tables for row in table.to_pylist()]


def check_agree(shop: Shop, cns: list[int], dice: random.Random) -> int:
    """At these cns all views that have a state there show the same, and what they should."""
    compared = 0
    for cn in cns:
        found = {view: rows_at(shop, view, cn) for view in POLICIES}
        there = [comparable(rows) for rows in found.values() if rows is not None]
        assert all(rows == there[0] for rows in there), (cn, found)
        compared += len(there) > 1
        if there and dice.random() < 0.3:
            seen = commits.seen_at(shop.warehouse, cn)["shop"]
            right = shop.crm_state({"totals": there[0]}, seen)
            assert right is not None, f"no state of the sources gives cn {cn}"
    return compared


@pytest.mark.timeout(60 * KILLS + 300)
def test_killed_at_random_the_four_policies_agree_and_every_copy_is_its_view(project, spark):
    dice = random.Random(KILLS)
    keeper = Keeper(project.folder, spark)
    keeper.ask("once")
    keeper.end()
    with Writers(project):
        for _ in range(KILLS):
            lived(project, spark, dice)
    keeper = Keeper(project.folder, spark)
    keeper.ask("once")
    refreshed = keeper.ask("changed", view="totals_whole")
    assert len(refreshed) > 1, "the schedule was not kept"
    some = dice.sample(refreshed, min(len(refreshed), AT // 2))
    last = commits.last_cn(project.warehouse)
    assert check_agree(project, some, dice) == len(some)
    some = [dice.randint(0, last) for _ in range(AT - len(some))]
    assert check_agree(project, some, dice)
    project.sell(2)
    done = keeper.ask("refresh", views=COPIED)
    assert check_agree(project, [done["cn"]], dice) == 1
    assert all(v["equal"] for v in keeper.ask("verify", at=done["cn"], views=COPIED))
    with copier(project, "--once") as copying:
        assert copying.wait() == 0
    for view in COPIED:
        cn, rows = copy_of(project, view)
        shown = rows_at(project, view, cn)
        assert shown is not None
        assert rows == Counter(as_text(row) for row in shown), (view, cn)
        assert cn <= done["cn"]
    keeper.end()
