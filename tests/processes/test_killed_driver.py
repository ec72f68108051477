"""Killed together with its Spark, a process leaves nothing but its work undone."""

from __future__ import annotations

import os
import signal

import psutil
import pytest

from tests.crash.checks import check_all
from tests.crash.keepers import Keeper, Killed

PATIENCE = 120.0


def test_a_killed_driver_takes_its_java_with_it_and_the_next_one_goes_on(shop):
    keeper = Keeper(shop.folder)
    keeper.ask("once")
    started = psutil.Process(keeper.process.pid).children(recursive=True)
    assert any("java" in process.name() for process in started)
    shop.sell()
    keeper.tell("once")
    os.kill(keeper.process.pid, signal.SIGKILL)
    with pytest.raises(Killed):
        keeper.answer()
    _, alive = psutil.wait_procs(started, PATIENCE)
    assert not alive
    after = Keeper(shop.folder)
    after.ask("once")
    check_all(shop, after)
    after.end()
