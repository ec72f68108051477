"""Clocks for tests."""

from __future__ import annotations

from collections.abc import Iterable


class SetClock:
    """Shows what it is set to."""

    def __init__(self, now: int = 1_000_000) -> None:
        self.now = now

    def now_us(self) -> int:
        return self.now


class ScriptedClock:
    """Shows the given times one after the other, then the last one for ever."""

    def __init__(self, times: Iterable[int]) -> None:
        self._times = list(times) or [0]

    def now_us(self) -> int:
        return self._times.pop(0) if len(self._times) > 1 else self._times[0]
