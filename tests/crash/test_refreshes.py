"""Killed in a refresh, all its views have moved or none; refreshed again, all are right."""

from __future__ import annotations

import pytest

from tests.crash.checks import comparable
from tests.crash.keepers import Keeper, Killed
from tests.crash.shop import VIEWS, new_shop

DEFERRED = {
    "sold_late": "dpda",
    "totals_late": "dpda",
    "totals_held": "ipda",
    "totals_whole": "snapshot",
}
CHILD = "regions_whole"
"""A view over the one that is recomputed."""


class World:
    """The shop with deferred copies of its views, and whoever keeps it now."""

    def __init__(self, folder, spark) -> None:
        self.shop = new_shop(folder)
        for name, policy in DEFERRED.items():
            properties = f"TBLPROPERTIES ('steadyview.policy' = '{policy}')"
            select = VIEWS[name.partition("_")[0]]
            text = f"CREATE MATERIALIZED VIEW {name} {properties} AS {select}"
            self.shop.add_view(name, text)
        self.shop.add_view(CHILD, "SELECT orders, COUNT(*) AS n FROM totals_whole GROUP BY orders")
        self.shop.begin()
        self._spark = spark
        self.keeper = Keeper(folder, spark)

    def next_life(self) -> None:
        self.keeper.end()
        self.keeper = Keeper(self.shop.folder, self._spark)

    def shown(self) -> dict[str, int]:
        return {v["name"]: v["cn"] for v in self.keeper.ask("status")["views"]}

    def rows(self, view: str, at: int) -> list[str]:
        return comparable(self.keeper.ask("rows", view=view, at=at))


@pytest.fixture(scope="module")
def world(tmp_path_factory, spark):
    world = World(tmp_path_factory.mktemp("refresh") / "shop", spark)
    world.keeper.ask("once")
    yield world
    world.keeper.end()
    world.shop.database.drop()


@pytest.mark.parametrize(
    "point",
    [
        "gap-recorded",
        "delta-written",
        "answers-stored",
        "steps-committed",
        "delta-committed",
        "delta-committed:4",
        "published",
    ],
)
def test_killed_here_all_views_of_the_refresh_moved_or_none(world, point):
    world.shop.sell()
    world.shop.move()
    world.keeper.ask("once")
    before = world.shown()
    with pytest.raises(Killed):
        world.keeper.ask("refresh", views=[*DEFERRED, CHILD], crash_at=point)
    world.next_life()
    world.keeper.ask("once")
    after = world.shown()
    assert after[CHILD] <= after["totals_whole"]
    moved = {name for name in DEFERRED if after[name] != before[name]}
    assert moved == (set(DEFERRED) if point == "published" else set())
    world.shop.sell(1)
    done = world.keeper.ask("refresh", views=[*DEFERRED, CHILD])
    assert {world.shown()[name] for name in (*DEFERRED, CHILD)} == {done["cn"]}
    world.keeper.ask("once")
    for name in DEFERRED:
        plain = name.partition("_")[0]
        assert world.rows(name, done["cn"]) == world.rows(plain, done["cn"])
    verdicts = world.keeper.ask("verify", at=done["cn"], views=[*DEFERRED, CHILD])
    assert [v for v in verdicts if not v["equal"]] == []
