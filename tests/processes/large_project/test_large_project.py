"""A project of 25 views over two databases under writers, and `run` killed all the time.

Each life ends by SIGKILL: at a crash point, or at a random moment. A last life catches up. Then
DuckDB makes the same of the views' texts at random cns, over the tables that the test has
remembered itself, and `verify` finds views, hidden nodes and states equal. In `make test` some
lives, cns and nodes; in `make soak` every crash point once, all nodes at twenty cns.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from steadyview.crash_points import BATCH, BUILD, LIFE, TIDYING
from tests.conftest import SOAK
from tests.crash import commits
from tests.crash.keepers import Keeper
from tests.processes.large_project.lives import Lives
from tests.processes.large_project.spark_host import spark_host
from tests.processes.large_project.store import VIEWS, Store
from tests.processes.large_project.truth import Rows, recomputed, texts_of

POINTS = (*BUILD, *LIFE, *BATCH, *TIDYING) if SOAK else ("steps-committed",)
KILLS, LONGEST = (12, 20.0) if SOAK else (1, 8.0)
CNS = 20 if SOAK else 2
VERIFIED = None if SOAK else ["region_report", "rivals", "surplus"]
"""The views that `verify` looks at, with all nodes below them; None: all."""
CONSTRUCTS = """JOIN; LEFT JOIN; RIGHT JOIN; FULL OUTER JOIN; LEFT SEMI JOIN; LEFT ANTI JOIN; <=>
WHERE EXISTS; WHERE NOT EXISTS; OR EXISTS; NOT EXISTS; IN (SELECT; NOT IN (SELECT; OR c.id IN
SELECT DISTINCT; UNION; UNION ALL; INTERSECT; INTERSECT ALL; EXCEPT; EXCEPT ALL; VALUES; WITH
COUNT(*); COUNT(; SUM(; AVG(; MIN(; MAX(; GROUP BY; HAVING"""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store(tmp_path)
    yield store
    store.close()


def test_the_project_has_25_views_and_every_construct() -> None:
    texts = texts_of(VIEWS)
    assert len(texts) == 25
    words = [" ".join(text.split()) for text in texts.values()]
    listed = CONSTRUCTS.replace("\n", "; ").split("; ")
    assert [c for c in listed if not any(c in text for text in words)] == []
    assert max(depth(view, texts) for view in texts) == 4


def depth(view: str, texts: dict[str, str]) -> int:
    """How many views stand above each other, this one the highest."""
    words = texts[view].split()
    read = {b for a, b in zip(words, words[1:], strict=False) if a in ("FROM", "JOIN")}
    return 1 + max((depth(name.strip("()"), texts) for name in read & texts.keys()), default=0)


def test_rows_that_differ_are_told_and_averages_may_differ_a_little() -> None:
    rows = Rows([("a", 1, 0.5), ("a", 1, 0.5), (None, 2, None)], frozenset({2}))
    assert rows.equal([[None, 2, None], ["a", 1, 0.5000001], ["a", 1, 0.5]])
    for wrong in (
        [["a", 1, 0.5], [None, 2, None]],
        [["a", 1, 0.5], ["a", 1, 0.6], [None, 2, None]],
        [["a", 1, 0.5], ["a", 2, 0.5], [None, 2, None]],
        [["a", 1, 0.5], ["a", 1, 0.5], [None, 2, 0.5]],
    ):
        assert not rows.equal(wrong)


@pytest.mark.slow
@pytest.mark.timeout(7200 if SOAK else 900)
def test_killed_everywhere_every_view_and_node_is_right_at_every_cn_looked_at(store: Store) -> None:
    began = time.monotonic()
    with spark_host() as spark:
        lives = Lives(store.folder, spark)
        live_and_die(store, lives)
        keeper = Keeper(store.folder, spark)
        keeper.ask("once")
        check(store, keeper)
        keeper.end()
    assert lives.missed == []
    told(f"all in all {time.monotonic() - began:.0f} s")


# --- lives -----------------------------------------------------------------------------------


def live_and_die(store: Store, lives: Lives) -> None:
    with store.writers() as writers:
        for point in in_order(POINTS):
            PREPARED.get(point, nothing)(store, lives)
            lives.killed_at(TURN.get(point, point), *COMMANDS.get(point, ()))
        lives.killed_when("built", lambda: built(store))
        moments = random.Random(5)
        for kill in range(KILLS):
            lives.killed_after(moments.uniform(2.0, LONGEST), alone=SOAK and kill % 3 == 0)
    told(f"{len(lives.ended)} lives, committed: {writers.committed}")


def in_order(points: tuple[str, ...]) -> list[str]:
    """First what ends the first life of a view, then what changes it, then the rest."""
    first = [*BUILD, "table-placed", *LIFE]
    return sorted(points, key=lambda p: first.index(p) if p in first else len(first))


def nothing(store: Store, lives: Lives) -> None:
    pass


def build_then_edit(store: Store, lives: Lives) -> None:
    lives.killed_when("built", lambda: built(store))
    edit(store, lives)


def edit(store: Store, lives: Lives) -> None:
    """Another text of the same meaning: the view and what reads it is built anew."""
    file = store.file("customer_sales")
    file.write_text(file.read_text().replace("MIN(", "MIN(0 + "))


def take_file_away(store: Store, lives: Lives) -> None:
    file = store.file("unpaid")
    file.rename(file.with_suffix(".gone"))


def put_file_back(store: Store, lives: Lives) -> None:
    file = store.file("unpaid")
    file.with_suffix(".gone").rename(file)


def finish_renaming(store: Store, lives: Lives) -> None:
    lives.killed_when("renamed", store.file("equals").exists)


PREPARED: dict[str, Callable[[Store, Lives], None]] = {
    "view-added": build_then_edit,
    "given-up": edit,
    "paused": take_file_away,
    "change-recorded": put_file_back,
    "file-changed": finish_renaming,
}
"""What is done before the life that is to end there."""
TURN = {"view-added": "view-added:2"}
"""The first is a hidden node below the view that is edited."""
COMMANDS = {
    "change-recorded": ("view", "rename", "peers", "equals"),
    "file-changed": ("view", "rename", "equals", "peers"),
}


def built(store: Store) -> bool:
    """Whether every view can be read."""
    return len(texts_of(VIEWS).keys() & commits.starts(store.warehouse).keys()) == 25


# --- judging ---------------------------------------------------------------------------------


def check(store: Store, keeper: Keeper) -> None:
    """Views and nodes now and at random cns, by DuckDB and by the product."""
    commits.check_order(store.warehouse)
    views = {v["name"]: v for v in keeper.ask("status")["views"]}
    newest = commits.last_cn(store.warehouse)
    assert views.keys() == texts_of(VIEWS).keys()
    assert {(v["state"], v["cn"], v["error"]) for v in views.values()} == {("active", newest, None)}
    oldest = max(commits.starts(store.warehouse).values())
    cns = [newest, *random.Random(newest).sample(range(oldest, newest), CNS - 1)]
    for cn in cns:
        check_recomputed(store, keeper, cn)
    for cn in cns if SOAK else cns[:1]:
        check_verified(keeper, cn, newest)


def check_verified(keeper: Keeper, cn: int, newest: int) -> None:
    """Views, hidden nodes below them, and their states: these are kept at the newest cn."""
    began = time.monotonic()
    verdicts: list[dict[str, Any]] = keeper.ask("verify", at=cn, views=VERIFIED, nodes=True)
    assert [v for v in verdicts if not v["equal"]] == [], cn
    parts = [(v["view"].startswith("~"), v["part"]) for v in verdicts]
    views, nodes = parts.count((False, "rows")), parts.count((True, "rows"))
    states = len(parts) - views - nodes
    assert views == len(VERIFIED or texts_of(VIEWS))
    assert nodes > 2
    assert cn < newest or states > 2
    took = time.monotonic() - began
    told(f"cn {cn}: {views} views, {nodes} nodes, {states} states equal, {took:.0f} s")


def check_recomputed(store: Store, keeper: Keeper, cn: int) -> None:
    """Every view is what DuckDB makes of its text over the remembered tables."""
    shown: dict[str, int] = dict(keeper.ask("rows", view="progress", at=cn))
    tables = {source: store.tables(source, number) for source, number in shown.items()}
    for view, rows in recomputed(texts_of(store.folder / "views"), tables).items():
        found = keeper.ask("rows", view=view, at=cn)
        assert rows.equal(found), f"{view} at cn {cn}:\n{found}\ninstead of\n{rows.rows}"
    told(f"cn {cn}: 25 views recomputed, {shown}")


def told(line: str) -> None:
    sys.stderr.write(f"{line}\n")
