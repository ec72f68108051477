"""Killed at any moment, a process leaves nothing but its work undone."""

from __future__ import annotations

import random
import threading

from tests.crash.checks import check_all
from tests.crash.keepers import Keeper


class Writers:
    """Both databases change all the time, until the block ends."""

    def __init__(self, shop) -> None:
        self._shop = shop
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._write)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def _write(self) -> None:
        while not self._end.wait(0.1):
            self._shop.sell(1)
            self._shop.move(1)


def test_killed_at_random_moments_nothing_is_lost_and_nothing_is_twice(shop, spark):
    """Spark lives on and finishes what it was told: the next one must not stumble over it."""
    moments = random.Random(1)
    keeper = Keeper(shop.folder, spark)
    keeper.ask("once")
    with Writers(shop):
        for _ in range(5):
            keeper.tell("once")
            threading.Event().wait(moments.uniform(0.0, 3.0))
            keeper.kill()
            keeper = Keeper(shop.folder, spark)
    keeper.ask("once")
    check_all(shop, keeper)
    keeper.end()
