"""The oracle: clocks of nasty zones walked minute by minute, and all their minutes looked at.

Nothing here jumps to a time: each minute of UTC is asked what the zone's clock shows, and each
minute of the clock whether a cron text names it.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, cached_property
from zoneinfo import ZoneInfo

import numpy as np

MINUTE = 60_000_000
ANY = frozenset(range(60))
NASTY = {
    "UTC": 2023,
    "Europe/Berlin": 2026,
    "America/Santiago": 2026,  # midnight is missing
    "America/Havana": 2026,  # midnight is missing, and comes twice
    "Africa/Cairo": 2023,  # midnight is missing; the clock goes back at midnight
    "Africa/Casablanca": 2025,  # back for the month of Ramadan
    "Asia/Tehran": 2021,
    "Asia/Kathmandu": 1985,  # from 5:30 to 5:45 at midnight of the new year
    "Australia/Lord_Howe": 2026,  # half an hour
    "America/St_Johns": 2010,  # at one minute past midnight: back into the day before
    "Pacific/Apia": 2011,  # 30 December was left out
    "Pacific/Kwajalein": 1993,  # 21 August was left out
}
"""Zones, each with the first of two years in which something happens."""


@dataclass(frozen=True, eq=False)
class Walk:
    """`shown`: what the clock shows at each minute of UTC from `start` on, both since 1970."""

    zone: str
    start: int
    shown: np.ndarray

    @cached_property
    def high(self) -> np.ndarray:
        """The latest that the clock has shown so far."""
        return np.maximum.accumulate(self.shown)

    @cached_property
    def walls(self) -> np.ndarray:
        """Minutes of the clock whose first instant lies in the walk, shown or not."""
        return np.arange(self.shown[0] + 1, self.high[-1] + 1)

    @cached_property
    def instants(self) -> np.ndarray:
        """The first minute of UTC at which the clock shows each of `walls` or later."""
        return self.start + np.searchsorted(self.high, self.walls)

    @cached_property
    def jumps(self) -> list[int]:
        """The minutes of UTC at which the clock does not go on by one minute."""
        return [self.start + 1 + int(i) for i in np.flatnonzero(np.diff(self.shown) != 1)]

    def ticks(
        self,
        minutes: Set[int] = ANY,
        hours: Set[int] = ANY,
        days: Set[int] = ANY,
        months: Set[int] = ANY,
        weekdays: Set[int] = ANY,
        either: bool = False,
    ) -> list[int]:
        """The instants of the minutes so named, in microseconds, each once."""
        walls = self.walls
        dates = (walls // 1440).astype("datetime64[D]")
        of_month = (dates - dates.astype("datetime64[M]")).astype(int) + 1
        month = dates.astype("datetime64[M]").astype(int) % 12 + 1
        on_day = [_in(of_month, days), _in((walls // 1440 + 4) % 7, weekdays)]
        fits = on_day[0] | on_day[1] if either else on_day[0] & on_day[1]
        fits &= _in(walls % 60, minutes) & _in(walls // 60 % 24, hours) & _in(month, months)
        return [int(tick) * MINUTE for tick in np.unique(self.instants[fits])]


@cache
def walked(zone: str) -> Walk:
    """Two years of one of the nasty zones."""
    info = ZoneInfo(zone)
    first, last = (
        int(datetime(year, 1, 1, tzinfo=UTC).timestamp()) // 60
        for year in (NASTY[zone], NASTY[zone] + 2)
    )
    offsets = (datetime.fromtimestamp(m * 60, info).utcoffset() for m in range(first, last))
    shown = [m + o.days * 1440 + o.seconds // 60 for m, o in enumerate(offsets, first)]
    return Walk(zone, first, np.array(shown))


def _in(values: np.ndarray, wanted: Set[int]) -> np.ndarray:
    return np.isin(values, list(wanted))
