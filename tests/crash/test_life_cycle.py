"""Killed while views change, go and are called otherwise, the next life comes to the same."""

from __future__ import annotations

import pytest

from steadyview.crash_points import LIFE
from tests.crash.checks import check_newest
from tests.crash.keepers import Keeper, Killed
from tests.crash.shop import VIEWS, Shop

RICH = "SELECT region, total FROM totals WHERE orders > 1"
TOTALS = {
    "new": VIEWS["totals"].replace("SUM(o.amount)", "SUM(o.amount + 1)"),
    "newer": VIEWS["totals"].replace("SUM(o.amount)", "SUM(o.amount + 2)"),
}


class World:
    """The shop and whoever keeps it now."""

    def __init__(self, shop: Shop, spark) -> None:
        self.shop, self._spark = shop, spark
        self.seen: set[str] = set()

    def once(self) -> dict[str, dict]:
        """A whole life; what it leaves: all views at the newest cn, and right."""
        keeper = self._keeper()
        keeper.ask("once")
        status = keeper.ask("status")
        assert {v["cn"] for v in status["views"] if v["state"] == "active"} == {status["cn"]}
        verdicts = keeper.ask("verify")
        assert [v["view"] for v in verdicts if not v["equal"]] == [], verdicts
        check_newest(self.shop, keeper, ["sold"])
        keeper.end()
        return {v["name"]: v for v in status["views"]}

    def killed(self, point: str, do: str = "once", **how: str) -> None:
        """A life that ends there."""
        self.seen.add(point.partition(":")[0])
        self.shop.sell(1)
        keeper = self._keeper()
        with pytest.raises(Killed):
            keeper.ask(do, crash_at=point, **how)
        keeper.end()

    def _keeper(self) -> Keeper:
        return Keeper(self.shop.folder, self._spark)

    @property
    def files(self) -> list[str]:
        return sorted(path.stem for path in (self.shop.folder / "views").iterdir())


def test_killed_anywhere_in_a_views_life_the_next_run_comes_to_the_same(shop, spark):
    world = World(shop, spark)
    shop.add_view("rich", RICH)
    world.once()
    shop.add_view("totals", TOTALS["new"])
    world.killed("view-added")
    shop.add_view("totals", TOTALS["newer"])
    world.killed("given-up")
    world.killed("swapped")
    assert {v["state"] for v in world.once().values()} == {"active"}
    (shop.folder / "views" / "totals.sql").unlink()
    (shop.folder / "views" / "rich.sql").unlink()
    world.killed("paused")
    assert {v["state"] for n, v in world.once().items() if n != "sold"} == {"paused"}
    shop.add_view("totals", TOTALS["newer"])
    shop.add_view("rich", RICH)
    world.once()
    _renamed(world)
    assert world.seen == {*LIFE}


def _renamed(world: World) -> None:
    """Whether a file is changed or not when it happens, it is so afterwards."""
    world.killed("change-recorded", "rename", old="totals", new="sums")
    assert world.files == ["rich", "sold", "totals"]
    views = world.once()
    assert world.files == ["rich", "sold", "sums"]
    assert views["rich"]["refusal"]["code"], "its file is to be changed"
    world.shop.add_view("rich", RICH.replace("FROM totals", "FROM sums"))
    world.killed("file-changed", "rename", old="sums", new="amounts")
    assert world.files == ["amounts", "rich", "sold", "sums"]
    assert world.once()["amounts"]["state"] == "active"
    assert world.files == ["amounts", "rich", "sold"]
    world.killed("file-changed", "drop", view="amounts")
    assert world.files == ["amounts", "sold"]
    assert world.once().keys() == {"sold"}
    assert world.files == ["sold"]
