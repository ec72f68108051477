"""The one place that reads the time of day."""

from __future__ import annotations

import time


class SystemClock:
    """Microseconds since 1970 UTC, as the machine tells them. Implements `catalog.clock.Clock`."""

    def now_us(self) -> int:
        """May stand still or be set back; the commit table makes it strictly increasing."""
        return time.time_ns() // 1000
