"""Faults of ours are tried again, ever later. No Spark."""

from __future__ import annotations

import pytest

from steadyview.errors import SteadyviewError
from steadyview.runtime.trouble import LONGEST_WAIT, Faults


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_fault_is_tried_again_after_twice_the_time_up_to_five_minutes():
    clock = Clock()
    faults = Faults(clock)
    waits = []
    for _ in range(12):
        faults.met("v", ValueError("x"))
        begun = clock.now
        while faults.waits("v"):
            clock.now += 0.5
        waits.append(clock.now - begun)
    assert waits[:4] == [1.0, 2.0, 4.0, 8.0]
    assert waits[-1] == LONGEST_WAIT


def test_a_view_that_went_on_is_forgiven():
    faults = Faults(Clock())
    faults.met("v", ValueError("x"))
    faults.met("w", ValueError("y"))
    faults.over("v")
    assert not faults.waits("v")
    with pytest.raises(SteadyviewError, match='in view "w"') as found:
        faults.check()
    assert isinstance(found.value.__cause__, ValueError)
    faults.over("w")
    faults.check()
