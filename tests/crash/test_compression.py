"""Killed while changes are compressed, nothing is lost, and no reader gets anything twice."""

from __future__ import annotations

from collections import Counter

import pytest

import steadyview
from steadyview.crash_points import COMPRESSION
from steadyview.runtime.subscribing import Start, Subscriber
from tests.crash.checks import check_newest, crm_at
from tests.crash.keepers import Failed, Keeper, Killed
from tests.crash.shop import comparable, new_shop


class World:
    """The shop, whoever keeps it now, and a reader with its copy of `totals`."""

    def __init__(self, folder, spark) -> None:
        self.shop = new_shop(folder)
        self.shop.begin()
        self._spark = spark
        self.keeper = Keeper(folder, spark)
        self.copy: Counter[tuple] = Counter()
        self.cn = -1

    def next_life(self) -> None:
        self.keeper.end()
        self.keeper = Keeper(self.shop.folder, self._spark)

    def gaps(self) -> list:
        with steadyview.open(self.shop.folder) as warehouse:
            row = warehouse._catalog.views.get("totals")
            return warehouse._catalog.gaps.of([row.id])

    def read(self, deliveries: int | None = None, *, acknowledge: bool = True) -> None:
        """The reader takes what comes, and keeps its cn with its rows."""
        with (
            steadyview.open(self.shop.folder) as warehouse,
            warehouse.subscribe("totals", "copy", self._start(warehouse)) as reader,
        ):
            while deliveries != 0 and (delivery := reader.next(1)) is not None:
                self._take(reader, delivery, acknowledge=acknowledge)
                deliveries = None if deliveries is None else deliveries - 1

    def _start(self, warehouse) -> Start | None:
        return Start("start") if not warehouse.subscriptions() else None

    def _take(self, reader: Subscriber, delivery, *, acknowledge: bool) -> None:
        for table in delivery.tables():
            for *row, count, cn, _ in zip(*(c.to_pylist() for c in table.columns), strict=True):
                if cn > self.cn:
                    self.copy[tuple(row)] += count
        self.cn = max(self.cn, delivery.cn)
        if acknowledge:
            reader.acknowledge()

    def check_copy(self) -> None:
        rows = [list(row) for row in self.copy.elements()]
        assert min(self.copy.values(), default=0) >= 0
        assert comparable(rows) == comparable(self.keeper.ask("rows", view="totals", at=self.cn))


@pytest.fixture(scope="module")
def world(tmp_path_factory, spark):
    world = World(tmp_path_factory.mktemp("compress") / "shop", spark)
    world.keeper.ask("once")
    yield world
    world.keeper.end()
    world.shop.database.drop()


@pytest.mark.parametrize("point", COMPRESSION)
def test_killed_here_every_moment_is_right_or_refused_and_a_reader_applies_each_change_once(
    world, point
):
    world.shop.sell(4)
    world.shop.move(1)
    world.keeper.ask("once")
    # some is acknowledged, some only handed out, and most of it not read at all
    world.read(2)
    world.read(1, acknowledge=False)
    with pytest.raises(Killed):
        world.keeper.ask("compress", view="totals", crash_at=point)
    world.next_life()
    gaps = world.gaps()
    assert any(gap.pending for gap in gaps) == (point != "range-finished")
    for end in {cn for gap in gaps for cn in (gap.low, gap.high)}:
        assert crm_at(world.shop, world.keeper, ["sold", "totals"], end) is not None
    inside = max((gap.low + 1 for gap in gaps if gap.high > gap.low + 1), default=None)
    assert inside is not None
    with pytest.raises(Failed, match="no state"):
        world.keeper.ask("rows", view="totals", at=inside)
    world.read(1)
    world.check_copy()
    world.shop.sell(1)
    world.keeper.ask("once")
    assert not any(gap.pending for gap in world.gaps())
    check_newest(world.shop, world.keeper, ["sold", "totals"])
    world.read()
    world.check_copy()
