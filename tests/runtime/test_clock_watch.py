"""A machine's clock that other clocks do not know is not believed, until they agree again."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from steadyview.catalog import Catalog
from steadyview.changes import Flush
from steadyview.errors import ClockAhead
from steadyview.runtime.clock import ClockWatch, SystemClock

SECOND = 1_000_000
DAY = 86_400 * SECOND
NOW = 1_700_000_000 * SECOND


class TwoClocks:
    """What the machine shows, and what has really passed."""

    def __init__(self) -> None:
        self.shown, self.passed = NOW, 0

    def wait(self, time: int) -> None:
        self.shown += time
        self.passed += time

    def now_us(self) -> int:
        return self.shown

    def steady_us(self) -> int:
        return self.passed


@pytest.fixture
def clock() -> TwoClocks:
    return TwoClocks()


def test_time_that_passes_is_believed_and_so_is_a_clock_that_is_set_back(clock: TwoClocks) -> None:
    watch = ClockWatch(clock)
    for step in (SECOND, DAY, 30 * DAY):
        clock.wait(step)
        watch.check()
    clock.shown -= DAY
    watch.check()
    clock.wait(DAY)
    watch.check()


def test_a_jump_ahead_is_told_with_both_times_and_over_when_the_clock_is_right_again(
    clock: TwoClocks,
) -> None:
    watch = ClockWatch(clock)
    clock.wait(5 * SECOND)
    clock.shown += DAY
    with pytest.raises(ClockAhead) as told:
        watch.check()
    assert "2023-11-15T22:13:25+00:00" in str(told.value.detail)
    assert "2023-11-14T22:13:25+00:00" in str(told.value.detail)
    assert "set the machine's clock right" in str(told.value.hint)
    assert not watch.agrees()
    clock.shown -= DAY
    watch.check()
    assert watch.agrees()


def test_the_clocks_of_sources_are_believed_more_than_our_own_count(clock: TwoClocks) -> None:
    """A machine that was paused as a whole, and then set right, is right."""
    watch = ClockWatch(clock)
    clock.shown += DAY
    watch.tell("sales", NOW + DAY)
    watch.check()
    clock.shown += DAY
    with pytest.raises(ClockAhead, match="the machine's clock is ahead") as told:
        watch.check()
    assert '"sales"' in str(told.value.detail)


def test_a_machine_that_was_ahead_when_it_began_is_noticed_against_a_source(
    clock: TwoClocks,
) -> None:
    clock.shown += DAY
    watch = ClockWatch(clock)
    watch.check()
    watch.tell("sales", NOW)
    assert not watch.agrees()
    watch.tell("crm", None)
    assert not watch.agrees()


def test_of_many_sources_the_median_is_believed(clock: TwoClocks) -> None:
    watch = ClockWatch(clock)
    for name, off in (("a", -DAY), ("b", 3 * SECOND), ("c", -2 * SECOND)):
        watch.tell(name, NOW + off)
    watch.check()
    clock.shown += DAY
    assert not watch.agrees()


def test_how_far_clocks_may_be_apart_can_be_said(clock: TwoClocks) -> None:
    watch = ClockWatch(clock, timedelta(minutes=10))
    clock.shown += 9 * 60 * SECOND
    watch.check()
    clock.shown += 2 * 60 * SECOND
    assert not watch.agrees()


def test_the_machines_second_clock_counts_as_the_first_does() -> None:
    clock = SystemClock()
    before = clock.now_us() - clock.steady_us()
    assert abs(clock.now_us() - clock.steady_us() - before) < SECOND


@pytest.mark.parametrize(
    "act",
    [
        lambda catalog: catalog.commits.admit(Flush("sales", 2, 2, 2, "q")),
        lambda catalog: catalog.commits.forget_before(1),
        lambda catalog: catalog.commits.cn_at(NOW + DAY),
    ],
    ids=["admit", "prune", "settle"],
)
def test_nothing_is_done_by_a_clock_that_jumped_until_it_is_right_again(
    clock: TwoClocks, tmp_path: Path, act: Callable[[Catalog], object]
) -> None:
    with Catalog.create(tmp_path / "warehouse", clock) as catalog:
        watch = ClockWatch(clock)
        catalog.commits.trust = watch.check
        catalog.sources.register("sales", "sqlite")
        catalog.commits.admit(Flush("sales", 1, 1, 1, "p"))
        before = catalog._database.read("SELECT * FROM warehouse")
        clock.shown += DAY + SECOND
        with pytest.raises(ClockAhead):
            act(catalog)
        assert catalog._database.read("SELECT * FROM warehouse") == before
        clock.shown -= DAY
        catalog.commits.admit(Flush("sales", 2, 2, 2, "q"))
        assert catalog.commits.time_of(2) == NOW + SECOND
