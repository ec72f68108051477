"""What lies behind the retention goes; what lies within it stays readable, and the views go on."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import steadyview
from steadyview.algebra import Bag
from steadyview.delta import compaction
from steadyview.errors import OutsideRetention
from steadyview.runtime import housekeeping
from steadyview.runtime.housekeeping import Housekeeping
from steadyview.runtime.warehouse import Warehouse
from tests.system.databases import SqliteFile, write_project
from tests.system.maintained import capturing, read
from tests.system.wall import Wall

VIEWS = {
    "goods": "SELECT name, price FROM shop.goods",
    "by_price": "SELECT price, COUNT(*) AS n FROM shop.goods GROUP BY price",
}
HOUR = timedelta(hours=1)


@pytest.fixture
def wall(monkeypatch: pytest.MonkeyPatch) -> Wall:
    return Wall(monkeypatch)


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[SqliteFile]:
    database = SqliteFile(tmp_path / "shop.db")
    database.create("goods", "name TEXT, price INTEGER")
    yield database
    database.close()


@pytest.fixture
def wh(wall: Wall, shop: SqliteFile, tmp_path: Path, spark: SparkSession) -> Iterator[Warehouse]:
    """Three commits, most of an hour later three more, and the retention over the first two."""
    folder = write_project(tmp_path / "shop", {"shop": shop}, VIEWS, retention="60 minutes")
    with steadyview.open(folder, spark=spark) as opened:
        opened.run_once()
        _commit(opened, shop, 1, 2, 3)
        wall.move_on(HOUR * 5 / 6)
        _commit(opened, shop, 4, 5, 6)
        wall.move_on(HOUR * 1 / 3)
        Housekeeping(opened._parts).now()
        yield opened


def _commit(wh: Warehouse, shop: SqliteFile, *numbers: int) -> None:
    with capturing(wh) as admit:
        for n in numbers:
            shop.writer().execute(f"INSERT INTO goods VALUES ('good {n}', {n % 2})")
            admit("shop")
    wh.run_once()


def test_states_within_the_retention_stay_and_older_ones_are_refused(wh: Warehouse) -> None:
    for cn in (3, 4, 6):
        assert read(wh, "goods", at=cn) == Bag.of([(f"good {n}", n % 2) for n in range(1, cn + 1)])
        assert sum(n for (_, n), _ in read(wh, "by_price", at=cn)) == cn
    for name in VIEWS:
        with pytest.raises(OutsideRetention) as refused:
            wh.view(name).read(at=2)
        assert "oldest cn is 3" in str(refused.value.detail)


def test_the_log_forgets_with_it_and_the_views_go_on(wh: Warehouse, shop: SqliteFile) -> None:
    (relation,) = wh._catalog.sources.schemas("shop")
    assert not wh._parts.log.entries(relation.name, 1, 3), "no view and no state needs them"
    assert wh._parts.log.entries(relation.name, 4, 6)
    _commit(wh, shop, 7)
    for cn in (3, 5, 7):
        assert all(verdict.equal for verdict in wh.verify(None, cn))


def test_a_crowded_log_is_tidied_however_short_lives_are(
    wh: Warehouse, shop: SqliteFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    (relation,) = wh._catalog.sources.schemas("shop")
    _commit(wh, shop, *range(7, 12))
    monkeypatch.setattr(housekeeping, "LOOK", 0.0)
    monkeypatch.setattr(compaction, "MANY_FILES", 1)
    many = len(wh._parts.log.entries(relation.name))
    for crowded, left in ((many, many), (many - 1, 1)):
        monkeypatch.setattr(housekeeping, "CROWDED", crowded)
        Housekeeping(wh._parts).sometimes()
        assert len(wh._parts.log.entries(relation.name)) == left
    assert all(verdict.equal for verdict in wh.verify(None, 8))


def test_a_stopped_view_behind_the_retention_is_still_told(wh: Warehouse, wall: Wall) -> None:
    wh._catalog.views.stop("goods", "stopped by a test", 7)
    wall.move_on(HOUR * 2)
    Housekeeping(wh._parts).now()
    (goods,) = [v for v in wh.status().views if v.name == "goods"]
    assert (goods.state, goods.cn) == ("stopped", 6)
