"""Two PostgreSQL databases and a SQLite file under concurrent writers, while `run` works.

What is read meanwhile is consistent at one cn; afterwards every past cn verifies, and the last
state is what another database computes from the tables.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import steadyview
from steadyview.algebra import Bag, Row
from steadyview.errors import OutsideRetention
from steadyview.runtime.warehouse import Warehouse
from tests.conftest import SOAK
from tests.system.databases import write_project, write_view
from tests.system.maintained import read
from tests.system.shop_writers import CHANGES, VIEWS, WRITERS, Shop
from tests.system.writers import Writers

SECONDS = 30.0 if SOAK else 4.0
PAST = 20 if SOAK else 6
MOMENTS = 3
ADDED = "SELECT region, COUNT(*) AS n FROM crm.customers GROUP BY region"
# the two joins over four relations ask the same: 2 (n - 1); the self-join asks for itself
LOOKUPS = 2 * 3 + 2 * 1
DISAGREEMENT = """SELECT region, kind, n, total FROM (
    SELECT region, kind, COUNT(*) AS n, SUM(price) AS total FROM sold GROUP BY region, kind
    UNION ALL SELECT region, kind, n, total FROM by_region)
GROUP BY region, kind, n, total HAVING COUNT(*) <> 2"""


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    made = Shop(tmp_path)
    yield made
    made.close()


@contextmanager
def running(wh: Warehouse) -> Iterator[None]:
    """`run` in a thread of its own; raises what it raised."""
    stop, errors = threading.Event(), []

    def run() -> None:
        try:
            wh.run(stop)
        except BaseException as error:  # noqa: BLE001 - told to the test
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
    if errors:
        raise errors[0]


def cns(wh: Warehouse) -> dict[str, int | None]:
    return {v.name: v.cn for v in wh.status().views}


def wait_until_built(wh: Warehouse, names: set[str]) -> None:
    pause, deadline = threading.Event(), time.monotonic() + 120
    while any(cns(wh).get(name) is None for name in names):
        assert time.monotonic() < deadline, wh.status()
        pause.wait(0.05)


def agree(wh: Warehouse) -> int:
    """The SPJ view summed up is the aggregate view, at one cn; that cn."""
    answer = wh.query_at(DISAGREEMENT)
    assert answer.frame.collect() == [], f"at cn {answer.cn}"
    return answer.cn


def work(wh: Warehouse) -> tuple[list[int], int]:
    """Read while `run` works and a view is added; the cns read, and the added view's first."""
    wait_until_built(wh, set(VIEWS))
    seen, deadline = [agree(wh)], time.monotonic() + SECONDS
    write_view(wh.project.root, "added", ADDED)
    while time.monotonic() < deadline or cns(wh).get("added") is None or len(set(seen)) < MOMENTS:
        seen.append(agree(wh))
    wait_until_built(wh, {"added"})
    return seen, wh._catalog.views.get("added").start_cn


@pytest.mark.slow
def test_every_state_is_exact_while_everybody_writes(
    shop: Shop, tmp_path: Path, spark: SparkSession
) -> None:
    folder = write_project(tmp_path / "project", shop.sources, VIEWS)
    with steadyview.open(folder, spark=spark) as wh:
        with Writers(shop.sources, CHANGES, WRITERS) as writers, running(wh):
            seen, added_at = work(wh)
        assert seen == sorted(seen)
        wh.run_once()
        assert_status(wh, writers)
        assert_last_state(wh, shop)
        assert_added(wh, added_at)
        assert_lookups(wh)
        assert_past(wh)


def assert_status(wh: Warehouse, writers: Writers) -> None:
    status = wh.status()
    assert {v.state for v in status.views} == {"active"}
    assert {v.cn for v in status.views} == {status.cn}
    assert {v.age_seconds for v in status.views} == {0.0}
    assert [s.error for s in status.sources] == [None] * 3
    assert sum(s.seq for s in status.sources) == status.cn
    captured = {s.name: s.seq for s in status.sources}
    for source in ("sales", "stock"):
        # every commit that changed a row is a transaction of its own
        assert 0 < captured[source] <= writers.committed[source] + 1
    assert captured["crm"] > 0


def assert_last_state(wh: Warehouse, shop: Shop) -> None:
    for name, sql in {**VIEWS, "added": ADDED}.items():
        assert in_cents(read(wh, name)) == in_cents(shop.truth(sql), by=1), name


def in_cents(rows: Bag[Row], by: int = 100) -> Bag[Row]:
    """Decimals (and what SQLite made of cents) as whole cents; averages rounded."""
    return rows.map(lambda row: tuple(_plain(value, by) for value in row))


def _plain(value: object, by: int) -> object:
    if isinstance(value, float):
        return round(value, 9)
    if value is None or isinstance(value, str | int):
        return value
    return int(value * by)  # type: ignore[operator]


def assert_added(wh: Warehouse, start: int) -> None:
    """The added view begins at an exact cn; the others went on meanwhile."""
    row = wh._catalog.views.get("added")
    assert 0 < start < (row.cn or 0)
    with pytest.raises(OutsideRetention):
        wh.view("added").read(at=start - 1)
    assert [v.equal for v in wh.verify(["added"], at=start)] == [True]


def assert_lookups(wh: Warehouse) -> None:
    batches = [b for b in wh._catalog.batches.recent(1000) if b.transactions]
    assert len(batches) > 2
    assert 0 < max(b.lookups for b in batches) <= LOOKUPS


def assert_past(wh: Warehouse) -> None:
    """Random past cns verify, the views taking turns."""
    names = list(VIEWS)
    oldest = max(wh._catalog.views.get(n).oldest_cn for n in names)
    newest = min(wh._catalog.views.get(n).cn or 0 for n in names)
    assert newest - oldest > PAST
    for turn, cn in enumerate(random.Random(1).sample(range(oldest, newest + 1), PAST)):
        (verdict,) = wh.verify([names[turn % len(names)]], at=cn)
        assert verdict.equal, verdict
