"""Time that passes at will."""

from __future__ import annotations

from datetime import timedelta

import pytest

from steadyview.runtime.clock import SystemClock


class Wall:
    """The time that the product sees pass: the machine's, and as much more as is wanted."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._on = 0
        tell, count = SystemClock.now_us, SystemClock.steady_us
        monkeypatch.setattr(SystemClock, "now_us", lambda clock: tell(clock) + self._on)
        monkeypatch.setattr(SystemClock, "steady_us", lambda clock: count(clock) + self._on)

    def move_on(self, by: timedelta) -> None:
        self._on += int(by.total_seconds() * 1_000_000)
