"""The clock that commit times are taken from, and exact times in microseconds.

The commit table makes the clock strictly increasing. No float ever holds a time: it would lose
microseconds, and with them which commit is meant.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Protocol

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Clock(Protocol):
    """Tells the time; may stand still or be set back."""

    def now_us(self) -> int:
        """Microseconds since 1970 UTC."""


def from_us(time: int) -> datetime:
    """Microseconds since 1970 as a UTC time.

    >>> from_us(1_700_000_000_000_001).isoformat()
    '2023-11-14T22:13:20.000001+00:00'
    """
    return _EPOCH + time * _MICROSECOND


def to_us(time: datetime) -> int:
    """A time with a zone as microseconds since 1970.

    >>> to_us(from_us(1_700_000_000_000_001))
    1700000000000001
    """
    return (time - _EPOCH) // _MICROSECOND
