"""What a wall clock of a time zone shows, and when it shows it first.

A wall clock jumps: a time in the gap is never shown, a time before a step back is shown twice. With

    instant(wall)  =  min{ time : the clock shows wall or later }

a time that is shown twice means the first of the two, and a missing one the first instant after
the gap. So `instant` never decreases, and hours, days and months follow each other without gap or
overlap: each begins at the instant of its first wall time, and ends where the next one begins. An
hour that is shown twice is one hour, two hours long; a missing one is empty.

A `wall` is a datetime without zone. (Python takes a missing time for one on either side of the gap,
never for the gap's end: an instant is right only if the clock then shows that time.)
Assumes: no clock jumps twice within a day.
"""

from __future__ import annotations

from bisect import bisect_left
from datetime import UTC, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from steadyview.nearest import did_you_mean

PERIODS = ("hour", "day", "month")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_NOT_ZONES = frozenset({"localtime", "posixrules", "Factory"})
"""Files beside those of zones: they say what this machine is set to, or nothing at all."""
_NOT_FOLDERS = ("posix/", "right/")
"""Copies of all zones, the second one by clocks that count leap seconds."""


class UnknownZone(ValueError):
    """A name is no time zone; `hint` names the nearest one, None if none is near."""

    def __init__(self, name: str) -> None:
        super().__init__(f'there is no time zone "{name}"')
        self.hint = did_you_mean(name, _names())


def check_zone(name: str) -> str:
    """The name, if it is that of a time zone; UnknownZone otherwise. Case counts.

    >>> check_zone("Europe/Berlin")
    'Europe/Berlin'
    """
    if name in _NOT_ZONES or name.startswith(_NOT_FOLDERS):
        raise UnknownZone(name)
    try:
        return ZoneInfo(name).key
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise UnknownZone(name) from None


def wall_at(time: int, zone: str) -> datetime:
    """What the zone's clock shows.

    >>> str(wall_at(0, "Asia/Kathmandu"))
    '1970-01-01 05:30:00'
    """
    shown = (_EPOCH + timedelta(microseconds=time)).astimezone(ZoneInfo(zone))
    return shown.replace(tzinfo=None, fold=0)


def instant(wall: datetime, zone: str) -> int:
    """The first time at which the zone's clock shows `wall` or later.

    >>> gap = datetime.fromisoformat("2026-03-29 02:30")  # from 2:00 to 3:00 that day
    >>> str(wall_at(instant(gap, "Europe/Berlin"), "Europe/Berlin"))
    '2026-03-29 03:00:00'
    """
    there = wall.replace(tzinfo=ZoneInfo(zone), fold=0)
    first = (there - _EPOCH) // _MICROSECOND
    if wall_at(first, zone) == wall:
        return first
    before = (there.replace(fold=1) - _EPOCH) // _MICROSECOND
    between = range(before, first)
    return between.start + bisect_left(between, wall, key=lambda time: wall_at(time, zone))


def reached(time: int, zone: str) -> datetime:
    """The latest wall time that the zone's clock has shown up to `time`.

    For all walls: wall <= reached(time)  ==  instant(wall) <= time.

    >>> str(reached(instant(datetime.fromisoformat("2026-10-25 03:00"), "Europe/Berlin"), "UTC"))
    '2026-10-25 02:00:00'
    """
    wall = wall_at(time, zone)
    first = instant(wall, zone)
    if first == time:
        return wall
    # Shown before: between the two the clock went back, from the latest that it has shown.
    before, between = _offset(first, zone), range(first, time)
    back = first + bisect_left(between, True, key=lambda t: _offset(t, zone) != before)
    return wall_at(back - 1, zone)


def end_of(period: str, time: int, zone: str) -> int:
    """The last microsecond of the 'hour', 'day' or 'month' before the one in which `time` lies.

    >>> noon = instant(datetime.fromisoformat("2026-09-06 12:00"), "America/Santiago")
    >>> str(wall_at(end_of("day", noon, "America/Santiago"), "America/Santiago"))
    '2026-09-05 23:59:59.999999'
    """
    begin = reached(time, zone).replace(minute=0, second=0, microsecond=0)
    if period not in PERIODS:
        raise ValueError(period)
    if period != "hour":
        begin = begin.replace(hour=0)
    if period == "month":
        begin = begin.replace(day=1)
    return instant(begin, zone) - 1


def _offset(time: int, zone: str) -> timedelta:
    return wall_at(time, zone) - wall_at(time, "UTC")


@cache
def _names() -> frozenset[str]:
    return frozenset(available_timezones()) - _NOT_ZONES
