"""Cron's five fields: which minutes of wall clocks they name.

    minute 0-59   hour 0-23   day of month 1-31   month 1-12 or JAN-DEC   day of week 0-7 or SUN-SAT

A field is `*`, a number, a range `a-b`, one of the first and last with a step (`*/15`, `9-17/2`),
or a list of these. 0 and 7 are both Sunday. Where both days are restricted, either will do; where
one of them begins with `*`, both must fit: so does cron.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import MAXYEAR, MINYEAR, date, datetime, time, timedelta
from functools import cached_property
from typing import NamedTuple

_PART = re.compile(r"(?:(\*)|(\w{1,9})(?:-(\w{1,9}))?)(?:/([0-9]{1,9}))?", re.ASCII)
_LENGTHS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_DAY = timedelta(days=1)


class _Field(NamedTuple):
    name: str
    least: int
    most: int
    longest_step: int
    names: tuple[str, ...] = ()


_MINUTE, _HOUR = _Field("minute", 0, 59, 59), _Field("hour", 0, 23, 23)
_MONTH_DAY = _Field("day", 1, 31, 30)
_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_MONTH = _Field("month", 1, 12, 11, _MONTHS)
_WEEKDAY = _Field("day of week", 0, 7, 6, _WEEKDAYS)


@dataclass(frozen=True)
class Cron:
    """The minutes that a cron text names, of wall clocks; there are always more of them.

    `weekdays` count from Sunday, 0. `either`: one of the two kinds of days is enough.
    """

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    either: bool = False

    def first_after(self, wall: datetime) -> datetime | None:
        """The first minute later than `wall`; None where the calendar ends before."""
        for day in self._days_from(wall.date(), 1):
            at = bisect_right(self._times, wall.time()) if day == wall.date() else 0
            if at < len(self._times):
                return datetime.combine(day, self._times[at])
        return None

    def last_until(self, wall: datetime) -> datetime | None:
        """The last minute not later than `wall`; None where the calendar begins after."""
        for day in self._days_from(wall.date(), -1):
            before = self._times
            if day == wall.date():
                before = before[: bisect_right(before, wall.time())]
            if before:
                return datetime.combine(day, before[-1])
        return None

    def names_day(self, day: date) -> bool:
        """Whether there are such minutes on that day."""
        if day.month not in self.months:
            return False
        fits = (day.day in self.days, day.isoweekday() % 7 in self.weekdays)
        return any(fits) if self.either else all(fits)

    @cached_property
    def _times(self) -> list[time]:
        return [time(h, m) for h in sorted(self.hours) for m in sorted(self.minutes)]

    def _days_from(self, day: date, step: int) -> Iterator[date]:
        """The days named, from `day` on, onwards or backwards; months not named are skipped."""
        # The calendar's first and last year are left out: their edges are no times in all zones.
        while MINYEAR < day.year < MAXYEAR:
            if self.names_day(day):
                yield day
            elif day.month not in self.months:
                day = _last_of_month(day) if step > 0 else day.replace(day=1)
            day += step * _DAY


def cron(text: str) -> Cron:
    """The five fields in a text; ValueError says what is wrong with it.

    >>> str(cron("30 6 * * MON-FRI").first_after(datetime.fromisoformat("2026-11-20 06:30")))
    '2026-11-23 06:30:00'
    """
    fields = text.split()
    if len(fields) != 5:
        raise ValueError(
            "cron has five fields: minute, hour, day of month, month, day of week;"
            f" found {len(fields)}"
        )
    minute, hour, day, month, weekday = fields
    days, weekdays = _values(day, _MONTH_DAY), _values(weekday, _WEEKDAY)
    either = not day.startswith("*") and not weekday.startswith("*")
    months = _values(month, _MONTH)
    if not either and all(min(days) > _LENGTHS[m - 1] for m in months):
        raise ValueError(f"day {day} of month {month} never comes")
    minutes, hours = _values(minute, _MINUTE), _values(hour, _HOUR)
    return Cron(minutes, hours, days, months, frozenset(d % 7 for d in weekdays), either)


def _values(text: str, field: _Field) -> frozenset[int]:
    return frozenset(value for part in text.split(",") for value in _part(part, field))


def _part(text: str, field: _Field) -> range:
    found = _PART.fullmatch(text)
    if found is None or (found[4] and found[2] and not found[3]):
        raise ValueError(f'the {field.name} "{text}" is none of *, n, a-b, */n, a-b/n')
    first, last = field.least, field.most
    if found[2]:
        first = _number(found[2], field)
        last = _number(found[3], field) if found[3] else first
    elif field is _WEEKDAY:
        last = 6
    if last == 0 < first and field is _WEEKDAY:
        last = 7  # a week may end with Sunday: FRI-SUN
    if last < first:
        raise ValueError(f'the {field.name} "{text}" goes backwards')
    return range(first, last + 1, _step(found[4] or "1", field))


def _step(text: str, field: _Field) -> int:
    if not 1 <= int(text) <= field.longest_step:
        fact = f"the step {text} of the {field.name} is not between 1 and {field.longest_step}"
        raise ValueError(fact)
    return int(text)


def _number(text: str, field: _Field) -> int:
    if text.upper() in field.names:
        return field.names.index(text.upper()) + field.least
    if not text.isdecimal():
        raise ValueError(f'the {field.name} "{text}" is no number{_or_name(field)}')
    if not field.least <= int(text) <= field.most:
        raise ValueError(
            f"the {field.name} {text} is not between {field.least} and {field.most}"
        )
    return int(text)


def _or_name(field: _Field) -> str:
    return f" and no name such as {field.names[1]}" if field.names else ""


def _last_of_month(day: date) -> date:
    return (day.replace(day=28) + 4 * _DAY).replace(day=1) - _DAY
