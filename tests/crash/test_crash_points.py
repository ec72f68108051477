"""Killed after any durable step, a warehouse goes on as if nothing had happened.

Every case: a keeper is killed at a crash point in the middle of `run_once` (changes at both
sources, a new view to build, old ones to roll), another one takes over after more changes, and
every view is what the databases say, at every cn looked at, and every table is its view at the cn
that it names, also just after the crash. The same while old files are merged and
forgotten: that comes last, for it leaves no past to look at.
"""

from __future__ import annotations

import itertools

import pytest

import steadyview
from steadyview.crash_points import BATCH, TIDYING
from tests.crash import commits
from tests.crash.checks import (
    check_all,
    check_newest,
    check_rows,
    check_tables,
    crm_at,
    past_cn,
    tables,
)
from tests.crash.keepers import Keeper, Killed
from tests.crash.shop import new_shop

NEW = itertools.cycle(["pairs", "regions"])
"""Each time one of them is new, and the other goes."""


class World:
    """The shop and whoever keeps it now."""

    def __init__(self, folder, spark) -> None:
        self.shop = new_shop(folder)
        self.shop.begin()
        self._spark = spark
        self._keeper: Keeper | None = None
        self._new = ""

    @property
    def keeper(self) -> Keeper:
        if self._keeper is None:
            self._keeper = Keeper(self.shop.folder, self._spark)
        return self._keeper

    def change(self) -> str:
        """Both databases change, and one view makes place for a new one; its name."""
        self.shop.sell()
        self.shop.move()
        new = next(NEW)
        if self._new:
            # without its file alone it would be paused, and go on when it is back
            with steadyview.open(self.shop.folder) as warehouse:
                warehouse.drop(self._new)
        self.shop.add_view(new)
        self._new = new
        return new

    def end(self) -> None:
        if self._keeper is not None:
            self._keeper.end()
            self._keeper = None


@pytest.fixture(scope="module")
def world(tmp_path_factory, spark):
    world = World(tmp_path_factory.mktemp("crash") / "shop", spark)
    world.keeper.ask("once")
    yield world
    world.end()
    world.shop.database.drop()


@pytest.mark.parametrize("point", BATCH)
def test_killed_here_nothing_is_lost_and_nothing_is_twice(world, point):
    new = world.change()
    with pytest.raises(Killed):
        world.keeper.ask("once", crash_at=point)
    world.end()
    left = tables(world.shop, ["sold", "totals"])
    world.shop.sell(1)
    world.shop.move(1)
    world.keeper.ask("once")
    check_newest(world.shop, world.keeper, ["sold", "totals", new])
    check_tables(world.shop, world.keeper, left)
    made = tables(world.shop, ["sold", "totals", new])
    assert {cn for cn, _ in made.values()} == {commits.last_cn(world.shop.warehouse)}
    check_tables(world.shop, world.keeper, made)


def test_killed_between_pieces_what_was_published_stays_and_the_next_life_goes_on(world):
    before = commits.last_cn(world.shop.warehouse)
    world.shop.sell(8)
    world.shop.move(2)
    with pytest.raises(Killed):
        world.keeper.ask("once", crash_at="published:2", piece=6)
    world.end()
    kept = {v["name"]: v["cn"] for v in world.keeper.ask("status")["views"]}
    newest = commits.last_cn(world.shop.warehouse)
    assert len(set(kept.values())) == 1
    (cn,) = set(kept.values())
    assert before < cn < newest
    assert crm_at(world.shop, world.keeper, ["sold", "totals"], cn) is not None
    world.keeper.ask("once", piece=6)
    check_newest(world.shop, world.keeper, list(kept))


def test_after_all_these_crashes_the_past_is_right_too(world):
    world.change()
    world.keeper.ask("once")
    for _ in range(3):
        past = past_cn(world.shop, ["sold", "totals"])
        assert crm_at(world.shop, world.keeper, ["sold", "totals"], past) is not None
    check_all(world.shop, world.keeper)


# views are tidied first: the log passes the points that they share with it alone, while it is long
@pytest.mark.parametrize(
    ("point", "logs_only"),
    [("compacted", True), ("pruned", True), *((point, False) for point in TIDYING)],
)
def test_killed_while_tidying_up_nothing_is_lost_and_nothing_is_twice(world, point, logs_only):
    with pytest.raises(Killed):
        world.keeper.ask("tidy", crash_at=point, logs_only=logs_only)
    world.end()
    check_rows(world.shop, world.keeper, ["sold", "totals"])


def test_tidied_up_after_all_these_crashes_views_are_right(world):
    world.shop.sell(1)
    world.shop.move(1)
    world.keeper.ask("once")
    check_rows(world.shop, world.keeper, ["sold", "totals"])
    world.keeper.ask("tidy")
    check_rows(world.shop, world.keeper, ["sold", "totals"])
    assert all(verdict["equal"] for verdict in world.keeper.ask("verify"))
