"""Schedules of refreshes: texts, and the ticks that they name.

    on demand                            no ticks: somebody asks
    every 5 minutes                      multiples of that since 1970, in UTC, whatever clocks show
    daily at 06:00 Europe/Berlin         when the zone's clock first shows 06:00, on every day
    cron 0 6 * * MON Europe/Berlin       when it first shows each of these minutes

A refresh's target is the latest tick, not the time at which it started; the next one is due at the
first tick after that. So views of one schedule share their targets, whatever they take: a missed
tick runs once, and what takes longer than a period does not pile up.
A time that clocks leave out ticks at the end of the gap, one that they show twice the first time
(`calendar`); minutes of cron that fall together make one tick.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Protocol

from steadyview.nearest import did_you_mean, nearest
from steadyview.timing.calendar import PERIODS, check_zone, end_of, instant, reached
from steadyview.timing.cron import Cron, cron

FORMS = (
    "on demand",
    "every 5 minutes",
    "daily at 06:00 Europe/Berlin",
    "cron 0 6 * * * Europe/Berlin",
)
REFRESH_TO = ("tick", *(f"end of {period}" for period in PERIODS))
_ON_DEMAND = re.compile(r"on\s+demand", re.IGNORECASE)
_EVERY = re.compile(r"every(?:\s+([0-9]{1,1000}))?\s+(second|minute|hour|day)s?", re.IGNORECASE)
_DAILY = re.compile(r"daily\s+at\s+([0-9]{1,2}):([0-9]{2})(?:\s+(\S.*))?", re.IGNORECASE)
_CRON = re.compile(r"cron((?:\s+\S+){0,5})(?:\s+(\S.*))?", re.IGNORECASE)
_UNITS = {"second": 1, "minute": 60, "hour": 3_600, "day": 86_400}
_LONGEST = 36_525 * 86_400
"""Seconds; a hundred years."""


class Ticks(Protocol):
    """Instants in order, without end on either side or none at all."""

    def latest(self, now: int) -> int | None:
        """The last one that is not after `now`."""

    def next(self, now: int) -> int | None:
        """The first one after `now`."""


@dataclass(frozen=True)
class RefreshSchedule:
    """A schedule as its text has it. `zone` is None where none matters.

    `gated`: a tick is a moment at the sources' clocks, so that what they dated after it is held
    back until all of it that is older has come.
    """

    text: str
    zone: str | None
    gated: bool
    ticks: Ticks

    def latest(self, now: int) -> int | None:
        """The last tick that is not after `now`, the target of a refresh; None: on demand."""
        return self.ticks.latest(now)

    def next(self, now: int) -> int | None:
        """The first tick after `now`; None: on demand."""
        return self.ticks.next(now)


@dataclass(frozen=True)
class NoTicks:
    """On demand."""

    def latest(self, now: int) -> int | None:
        """None."""
        return None

    def next(self, now: int) -> int | None:
        """None."""
        return None


@dataclass(frozen=True)
class EvenTicks:
    """Multiples of a period, in microseconds."""

    period: int

    def latest(self, now: int) -> int | None:
        """The last multiple that is not after `now`."""
        return now // self.period * self.period

    def next(self, now: int) -> int | None:
        """The first multiple after `now`."""
        return (now // self.period + 1) * self.period


@dataclass(frozen=True)
class WallTicks:
    """The instants of some minutes of a zone's wall clock.

    `reached` says which of them have had their instant; so no minute is looked at twice.
    """

    minutes: Cron
    zone: str

    def latest(self, now: int) -> int | None:
        """The instant of the last minute that the clock has reached."""
        wall = self.minutes.last_until(reached(now, self.zone))
        return None if wall is None else instant(wall, self.zone)

    def next(self, now: int) -> int | None:
        """The instant of the first minute that the clock has not reached."""
        wall = self.minutes.first_after(reached(now, self.zone))
        return None if wall is None else instant(wall, self.zone)


def schedule(text: str | None, zone: str) -> RefreshSchedule:
    """The schedule of a text, by the clock of `zone` where it names none; None: on demand.

    ValueError says what is wrong with the text; of zones it is UnknownZone.

    >>> schedule("every 2 seconds", "UTC").latest(5_000_001)
    4000000
    >>> schedule("daily at 06:00", "Europe/Berlin").next(0) // 3_600_000_000  # 06:00 was 05:00 UTC
    5
    """
    written = "on demand" if text is None else text.strip()
    if _ON_DEMAND.fullmatch(written):
        return RefreshSchedule(written, None, False, NoTicks())
    if found := _EVERY.fullmatch(written):
        seconds = int(found[1] or 1) * _UNITS[found[2].lower()]
        if not 0 < seconds <= _LONGEST:
            raise ValueError("a period is at least 1 second and at most a hundred years")
        return RefreshSchedule(written, None, False, EvenTicks(seconds * 1_000_000))
    named, minutes = _minutes(written)
    zone = check_zone(named or zone)
    return RefreshSchedule(written, zone, True, WallTicks(minutes, zone))


def _minutes(text: str) -> tuple[str | None, Cron]:
    """The zone that a text names, and its minutes."""
    if found := _DAILY.fullmatch(text):
        return found[3], cron(f"{found[2]} {found[1]} * * *")
    if found := _CRON.fullmatch(text):
        return found[2], cron(found[1])
    raise ValueError("it has no known form")


def schedule_meant(text: str) -> str | None:
    """A hint that names the form that a text without one was probably meant to have, or None.

    >>> schedule_meant("evry 10 minuts")
    'did you mean "every 10 minutes"?'
    """
    if any(form.fullmatch(text.strip()) for form in (_ON_DEMAND, _EVERY, _DAILY, _CRON)):
        return None
    found = re.search(r"[1-9][0-9]*", text)
    number = found[0] if found else "5"
    every = [f"every {number} {unit}{'' if number == '1' else 's'}" for unit in _UNITS]
    forms = {"on": FORMS[:1], "every": every, "daily": FORMS[2:3], "cron": FORMS[3:]}
    heads = nearest(text.split(maxsplit=1)[0] if text.strip() else "", forms)
    return did_you_mean(text, [form for head in heads for form in forms[head]], far=0.4)


def refresh_target(refresh_to: str, time: int, zone: str) -> int:
    """What a refresh at a tick (or, on demand, now) brings the view to: one of REFRESH_TO.

    >>> refresh_target("tick", 86_400_000_000, "UTC")
    86400000000
    >>> refresh_target("end of day", 86_400_000_000, "UTC")
    86399999999
    """
    if refresh_to == "tick":
        return time
    return end_of(refresh_to.removeprefix("end of "), time, zone)
