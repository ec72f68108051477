"""The ticks of schedules, against minutes looked through one by one; and texts that are none."""

from __future__ import annotations

from bisect import bisect_right
from datetime import datetime

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from steadyview.timing import UnknownZone, end_of, refresh_target, schedule, schedule_meant
from steadyview.timing.calendar import instant, wall_at
from tests.timing.walked import ANY, MINUTE, NASTY, walked

SECOND = 1_000_000
DAY = 24 * 60 * MINUTE
SCHEDULES = {
    "daily at 00:00": ({0}, {0}),
    "daily at 02:30": ({30}, {2}),
    "daily at 6:00": ({0}, {6}),
    "daily at 23:30": ({30}, {23}),
    "cron 0 6 * * *": ({0}, {6}),
    "cron */15 * * * *": ({0, 15, 30, 45}, ANY),
    "cron 1,59 0-3,23 * * *": ({1, 59}, {0, 1, 2, 3, 23}),
    "cron 30 0 1,31 * *": ({30}, {0}, {1, 31}),
    "cron 0 0 * * SUN": ({0}, {0}, ANY, ANY, {0}),
    "cron 0 1 29,30 2-12/2,3,9 *": ({0}, {1}, {29, 30}, {2, 4, 6, 8, 10, 12, 3, 9}),
    "cron 15 2 30 * 7": ({15}, {2}, {30}, ANY, {0}, True),
    "cron 15 2 */2 * 7": ({15}, {2}, set(range(1, 32, 2)), ANY, {0}),
}
PERIOD = "a period is at least 1 second and at most a hundred years"
FIELDS = "cron has five fields: minute, hour, day of month, month, day of week"
zones = st.sampled_from([*NASTY, "America/New_York", "Europe/Dublin"])
texts = st.sampled_from([*SCHEDULES, "every 7 minutes", "every second", "every 3 days"])
times = st.integers(-30 * 365 * DAY, 67 * 365 * DAY)


@pytest.mark.parametrize("text", SCHEDULES)
@pytest.mark.parametrize("zone", NASTY)
def test_ticks_are_the_minutes_that_a_walk_finds(zone: str, text: str) -> None:
    walk = walked(zone)
    ticks = walk.ticks(*SCHEDULES[text])
    found = schedule(f"{text} {zone}", "UTC")
    near = [tick for tick in ticks if any(abs(tick - j * MINUTE) < DAY for j in walk.jumps)]
    assert len(ticks) > 10
    for time in [*ticks[::41], *near, *(j * MINUTE for j in walk.jumps)]:
        for now in (time - 1, time, time + 1, time + 59 * MINUTE):
            at = bisect_right(ticks, now)
            if 0 < at < len(ticks):
                assert found.latest(now) == ticks[at - 1]
                assert found.next(now) == ticks[at]


def test_every_tick_is_met_by_going_from_one_to_the_next() -> None:
    for zone in ("America/Havana", "Pacific/Apia"):
        expected = walked(zone).ticks({0, 45})
        found, now = schedule("cron 0,45 * * * *", zone), expected[0]
        met = [now]
        while now < expected[-1]:
            now = found.next(now) or 0
            met.append(now)
        assert met == expected


@given(texts, zones, times)
def test_the_latest_tick_is_not_after_now_and_the_next_one_is(
    text: str, zone: str, now: int
) -> None:
    found = schedule(text, zone)
    latest, later = found.latest(now), found.next(now)
    assert latest is not None
    assert later is not None
    assert latest <= now < later
    assert found.latest(latest) == latest
    assert found.latest(later) == later
    assert found.latest(later - 1) == latest
    assert found.next(latest) == later


@given(st.integers(1, 1000), st.sampled_from(["second", "minute", "hour", "day"]), times)
def test_even_ticks_are_multiples_since_1970_whatever_the_zone(n: int, unit: str, now: int) -> None:
    period = n * {"second": 1, "minute": 60, "hour": 3600, "day": 86400}[unit] * SECOND
    found = schedule(f"every {n} {unit}s", "Europe/Berlin")
    latest, later = found.latest(now), found.next(now)
    assert latest is not None
    assert later is not None
    assert (latest % period, later - latest) == (0, period)
    assert latest <= now < later
    assert found.zone is None


@given(st.sampled_from(["every 5 minutes", "cron */5 * * * *"]), st.lists(st.integers(1, 3000)))
def test_what_takes_long_does_not_pile_up_and_misses_no_newest_tick(
    text: str, durations: list[int]
) -> None:
    found, now = schedule(text, "UTC"), 0
    targets = []
    for seconds in durations:
        target = found.latest(now)
        assert target is not None
        assert now - target < 5 * MINUTE
        targets.append(target)
        now += seconds * SECOND
        if found.latest(now) == target:
            now = found.next(now) or 0
    assert targets == sorted(set(targets))


@pytest.mark.parametrize(
    ("zone", "day"),
    [("America/Santiago", "2026-09-06"), ("America/Havana", "2026-03-08"), ("UTC", "2026-01-01")],
)
def test_as_of_the_end_of_the_day_before_is_right_before_midnights_tick(
    zone: str, day: str
) -> None:
    midnight = instant(datetime.fromisoformat(day), zone)
    found = schedule("daily at 00:00", zone)
    for now in (midnight, midnight + 1, midnight + 20 * 60 * MINUTE):
        tick = found.latest(now)
        assert tick == midnight
        assert refresh_target("end of day", tick, zone) == midnight - 1
        assert refresh_target("tick", tick, zone) == midnight


@given(times, zones)
def test_a_target_is_a_tick_or_the_end_of_a_period(time: int, zone: str) -> None:
    assert refresh_target("tick", time, zone) == time
    for period in ("hour", "day", "month"):
        assert refresh_target(f"end of {period}", time, zone) == end_of(period, time, zone)


def test_a_daily_tick_in_a_gap_comes_at_its_end_and_one_that_is_double_once() -> None:
    found = schedule("daily at 02:30 Europe/Berlin", "UTC")
    noon = instant(datetime(2026, 3, 29, 12), "Europe/Berlin")
    spring = found.latest(noon)
    assert spring is not None
    assert wall_at(spring, "Europe/Berlin") == datetime(2026, 3, 29, 3)
    first = instant(datetime(2026, 10, 25, 2, 30), "Europe/Berlin")
    assert wall_at(first + 60 * MINUTE, "Europe/Berlin") == datetime(2026, 10, 25, 2, 30)
    assert found.latest(first + 60 * MINUTE) == first
    assert found.next(first) == first + 25 * 60 * MINUTE


@pytest.mark.parametrize(
    ("text", "zone", "gated"),
    [
        (None, None, False),
        ("On  Demand", None, False),
        ("every 5 minutes", None, False),
        ("every 1 hour", None, False),
        ("Every minute", None, False),
        ("every 1 days", None, False),
        ("daily at 06:00", "Asia/Tehran", True),
        (" daily at 06:00  Europe/Berlin ", "Europe/Berlin", True),
        ("cron 0 6 * * MON", "Asia/Tehran", True),
        ("CRON 0 6 * * * Europe/Berlin", "Europe/Berlin", True),
    ],
)
def test_forms_have_their_zone_or_the_projects_and_know_whether_a_tick_is_a_moment_at_sources(
    text: str | None, zone: str | None, gated: bool
) -> None:
    found = schedule(text, "Asia/Tehran")
    assert (found.zone, found.gated) == (zone, gated)
    assert found.text == (text or "on demand").strip()


def test_on_demand_has_no_ticks() -> None:
    assert schedule("on demand", "UTC").latest(0) is None
    assert schedule("on demand", "UTC").next(0) is None


@pytest.mark.parametrize(
    ("text", "fact", "meant"),
    [
        ("sometimes", "it has no known form", None),
        ("", "it has no known form", None),
        ("evry 10 minuts", "it has no known form", "every 10 minutes"),
        ("every 5 minutes Europe/Berlin", "it has no known form", "every 5 minutes"),
        ("every 1.5 hours", "it has no known form", "every 1 hour"),
        ("on demnad", "it has no known form", "on demand"),
        ("dayly at 06:00", "it has no known form", "daily at 06:00 Europe/Berlin"),
        ("daily 06:00 Europe/Berlin", "it has no known form", "daily at 06:00 Europe/Berlin"),
        ("every 0 hours", PERIOD, None),
        ("every 36526 days", PERIOD, None),
        ("every 99999999999999999999 seconds", PERIOD, None),
        ("daily at 24:00", "the hour 24 is not between 0 and 23", None),
        ("daily at 06:60", "the minute 60 is not between 0 and 59", None),
        ("daily at 06:00 Berlin", 'there is no time zone "Berlin"', None),
        ("cron 0 6 * * * Mars", 'there is no time zone "Mars"', None),
        ("cron 0 0 6 * * *", 'there is no time zone "*"', None),
        ("cron 0 6 * * 8", "the day of week 8 is not between 0 and 7", None),
        ("cron 0 6 30 2 *", "day 30 of month 2 never comes", None),
        ("cron 0 6 * *", f"{FIELDS}; found 4", None),
        ("cron", f"{FIELDS}; found 0", None),
    ],
)
def test_what_is_no_schedule_is_refused_with_a_fact(
    text: str, fact: str, meant: str | None
) -> None:
    with pytest.raises(ValueError, match=".") as refused:
        schedule(text, "UTC")
    assert str(refused.value) == fact
    assert schedule_meant(text) == (meant and f'did you mean "{meant}"?')


def test_an_unknown_zone_has_the_nearest_as_hint() -> None:
    with pytest.raises(UnknownZone) as unknown:
        schedule("daily at 06:00 Europe/Berln", "UTC")
    assert unknown.value.hint == 'did you mean "Europe/Berlin"?'


@given(st.text())
def test_any_other_text_is_refused_and_nothing_else(text: str) -> None:
    assume(text.lower().split()[:1] not in (["every"], ["on"]))
    with pytest.raises(ValueError, match="."):
        schedule(text, "UTC")
    schedule_meant(text)
