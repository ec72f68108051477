"""The clock that commit times are taken from. The commit table makes it strictly increasing."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    """Tells the time; may stand still or be set back."""

    def now_us(self) -> int:
        """Microseconds since 1970 UTC."""
