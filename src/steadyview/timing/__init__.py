"""When a view is refreshed, and as of when: schedules, their ticks, calendars of zones, gates.

Belongs here: which instants a schedule names, which instant a wall clock's time is, and which
transactions lie before an instant (`gates`).
Does not belong here: what time it is now, waiting for a tick, what a refresh does (`runtime`).
Law: the same text, zone and time give the same answer; nothing here looks at a clock.
Times are microseconds since 1970 UTC. What is known of zones is the machine's own (or `tzdata`'s).
"""

from steadyview.timing.calendar import PERIODS, UnknownZone, check_zone, end_of
from steadyview.timing.schedules import (
    FORMS,
    REFRESH_TO,
    RefreshSchedule,
    refresh_target,
    schedule,
    schedule_meant,
)

__all__ = [
    "FORMS",
    "PERIODS",
    "REFRESH_TO",
    "RefreshSchedule",
    "UnknownZone",
    "check_zone",
    "end_of",
    "refresh_target",
    "schedule",
    "schedule_meant",
]
