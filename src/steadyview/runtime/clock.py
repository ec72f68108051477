"""The one place that reads the time of day, and asks whether it can be believed.

Commit times only go up, so a clock that is set back does no harm: times go up by a microsecond
until it has caught up. A clock that jumps ahead does: what is admitted then has its time for good,
and all that comes later is later still; what is old by that clock would be pruned. So nothing is
admitted, settled or pruned while the machine's clock is ahead of a second one: that of the sources,
or, where none of them has one, this process's own count of the time that passed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from datetime import timedelta
from statistics import median_low
from typing import Protocol

from steadyview.catalog import Clock, from_us
from steadyview.errors import ClockAhead

AHEAD = timedelta(seconds=60)
"""How far the machine's clock may be ahead of the sources', where the project says nothing."""


class CountingClock(Clock, Protocol):
    """A clock with a second one in it, which nobody sets."""

    def steady_us(self) -> int:
        """Microseconds since some moment, as they passed, those of a sleeping machine included."""


class SystemClock:
    """Microseconds since 1970 UTC, as the machine tells them. Implements `CountingClock`."""

    def now_us(self) -> int:
        """May stand still or be set back; the commit table makes it strictly increasing."""
        return time.time_ns() // 1000

    def steady_us(self) -> int:
        """Counts on, whatever the time of day is set to."""
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000


class ClockWatch:
    """Compares the machine's clock with what others showed. For several threads."""

    def __init__(self, clock: CountingClock, limit: timedelta = AHEAD) -> None:
        self._clock = clock
        self._limit = int(limit.total_seconds() * 1_000_000)
        self._lock = threading.Lock()
        self._own = clock.now_us() - clock.steady_us()
        self._told: dict[str, int] = {}

    def tell(self, source: str, time: int | None) -> None:
        """What a source's clock shows now; None: it has none of its own."""
        if time is not None:
            with self._lock:
                self._told[source] = time - self._clock.steady_us()

    def agrees(self) -> bool:
        """Whether the machine's clock can be believed."""
        try:
            self.check()
        except ClockAhead:
            return False
        return True

    def check(self) -> None:
        """ClockAhead while the machine's clock shows a time that the others do not know."""
        with self._lock:
            now, steady = self._clock.now_us(), self._clock.steady_us()
            known = dict(self._told) or {"": self._own}
            shown = median_low(known.values()) + steady
            if now - shown > self._limit:
                raise _ahead(now, shown, self._told, self._limit)
            if self._told:
                # they agree: what was set meanwhile was set right
                self._own = now - steady


def _ahead(now: int, shown: int, sources: Mapping[str, int], limit: int) -> ClockAhead:
    if sources:
        names = ", ".join(f'"{name}"' for name in sorted(sources))
        other = f"the clock of its sources ({names}) shows {_text(shown)}"
        way = "or, if they are wrong, those of the sources"
    else:
        other = f"by the time that has passed since this process began it is {_text(shown)}"
        way = "or, if it is right, start this process again"
    return ClockAhead(
        "the machine's clock is ahead: nothing is admitted and nothing pruned by it",
        detail=f"it shows {_text(now)}; {other}; they may be {limit / 1_000_000:g} s apart",
        hint=f"set the machine's clock right, {way}; work goes on by itself when they agree"
        ' ([project] clock_limit = "60s" says how far apart they may be)',
    )


def _text(time: int) -> str:
    return from_us(time).isoformat()
