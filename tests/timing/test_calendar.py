"""Wall clocks against clocks walked minute by minute; days that are not 24 hours long."""

from __future__ import annotations

from bisect import bisect_right
from datetime import datetime, timedelta
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from steadyview.timing.calendar import (
    PERIODS,
    UnknownZone,
    check_zone,
    end_of,
    instant,
    reached,
    wall_at,
)
from tests.timing.walked import MINUTE, NASTY, Walk, walked

HOUR = 60 * MINUTE
EPOCH = datetime(1970, 1, 1)
zones = st.sampled_from([*NASTY, "America/New_York", "Europe/Dublin", "America/Caracas"])
times = st.integers(0, 68 * 365 * 24 * HOUR)
walls = st.datetimes(datetime(1970, 1, 2), datetime(2037, 12, 30))


def wall_of(minute: int) -> datetime:
    return EPOCH + timedelta(minutes=int(minute))


def at(text: str, zone: str) -> int:
    return instant(datetime.fromisoformat(text), zone)


def shown(time: int, zone: str) -> str:
    return str(wall_at(time, zone))


LAST_OF_DOUBLE = at("2026-10-25 03:00", "Europe/Berlin") - 1


@pytest.fixture(params=NASTY)
def walk(request: pytest.FixtureRequest) -> Walk:
    return walked(request.param)


def near_jumps(walk: Walk, minutes: int) -> list[int]:
    """Minutes of UTC around each jump, every one, and every 997th of the others."""
    near = {m for jump in walk.jumps for m in range(jump - minutes, jump + minutes)}
    last = walk.start + len(walk.shown)
    return sorted({m for m in near if walk.start <= m < last} | set(range(walk.start, last, 997)))


def test_the_walks_meet_gaps_and_doubles() -> None:
    steps = {zone: set(np.diff(walked(zone).shown)) for zone in NASTY}
    assert steps["UTC"] == {1}
    assert {61, -59} <= steps["Europe/Berlin"] & steps["America/Havana"] & steps["Africa/Cairo"]
    assert {31, -29} <= steps["Australia/Lord_Howe"]
    assert 16 in steps["Asia/Kathmandu"]
    assert 1441 in steps["Pacific/Apia"] & steps["Pacific/Kwajalein"]


def test_a_wall_time_is_the_first_instant_at_which_it_or_more_is_shown(walk: Walk) -> None:
    first = walk.walls[0]
    wanted = {int(walk.shown[m - walk.start]) + d for m in near_jumps(walk, 90) for d in (0, 45)}
    wanted |= {w for jump in walk.jumps for w in _stepped(walk, jump)}
    for wall in wanted:
        if first <= wall <= walk.walls[-1]:
            expected = int(walk.instants[wall - first]) * MINUTE
            assert instant(wall_of(wall), walk.zone) == expected, wall_of(wall)


def _stepped(walk: Walk, jump: int) -> range:
    """What is left out, or shown twice, at a jump."""
    before, after = (int(walk.shown[jump + d - walk.start]) for d in (-1, 0))
    return range(min(before, after) - 1, max(before, after) + 2, 7)


def test_reached_is_the_latest_that_the_clock_has_shown(walk: Walk) -> None:
    last = timedelta(minutes=1) - timedelta(microseconds=1)
    high = walk.high
    for minute in near_jumps(walk, 150):
        i = minute - walk.start
        went_on = i == 0 or high[i - 1] < walk.shown[i]
        expected = wall_of(high[i]) if went_on else wall_of(high[i]) + last
        assert reached(minute * MINUTE, walk.zone) == expected


@pytest.mark.parametrize("period", PERIODS)
def test_a_period_ends_right_before_the_first_instant_of_the_next(walk: Walk, period: str) -> None:
    begins = _begins(walk, period)
    some = begins[1:-1:97] if period == "hour" else begins[1:-1]
    edges = [b + d for b in some for d in (-1, 0, 1)]
    for time in edges + [m * MINUTE for m in near_jumps(walk, 100)]:
        if time >= begins[0]:
            current = begins[bisect_right(begins, time) - 1]
            assert end_of(period, time, walk.zone) == current - 1


def _begins(walk: Walk, period: str) -> list[int]:
    """The first instants of all periods in the walk."""
    minute, hour, day = {0}, {0}, {1}
    named = {"hour": (minute,), "day": (minute, hour), "month": (minute, hour, day)}
    return walk.ticks(*named[period])


@pytest.mark.parametrize(
    ("zone", "day", "hours"),
    [
        ("Europe/Berlin", "2026-03-29", 23),
        ("Europe/Berlin", "2026-03-30", 24),
        ("Europe/Berlin", "2026-10-25", 25),
        ("America/Santiago", "2026-09-06", 23),
        ("America/Santiago", "2026-04-04", 25),
        ("America/Havana", "2026-03-08", 23),
        ("America/Havana", "2026-11-01", 25),
        ("Australia/Lord_Howe", "2026-10-04", 23.5),
        ("Australia/Lord_Howe", "2026-04-05", 24.5),
        ("Pacific/Apia", "2011-12-30", 0),
        ("UTC", "2026-03-29", 24),
    ],
)
def test_days_are_as_long_as_they_were(zone: str, day: str, hours: float) -> None:
    begin = datetime.fromisoformat(day)
    length = instant(begin + timedelta(days=1), zone) - instant(begin, zone)
    assert length == hours * HOUR


def test_a_missing_midnight_is_the_end_of_the_gap() -> None:
    midnight = at("2026-09-06 00:00", "America/Santiago")
    assert shown(midnight, "America/Santiago") == "2026-09-06 01:00:00"
    assert shown(midnight - 1, "America/Santiago") == "2026-09-05 23:59:59.999999"
    assert end_of("day", midnight, "America/Santiago") == midnight - 1


def test_a_midnight_that_comes_twice_is_the_first() -> None:
    first = at("2026-11-01 00:00", "America/Havana")
    assert shown(first + HOUR, "America/Havana") == "2026-11-01 00:00:00"
    for later in (0, HOUR - 1, HOUR, HOUR + 1, 24 * HOUR):
        assert end_of("day", first + later, "America/Havana") == first - 1


def test_a_day_that_has_begun_does_not_end_though_the_clock_shows_the_day_before_again() -> None:
    midnight = at("2010-11-07 00:00", "America/St_Johns")
    again = midnight + 2 * MINUTE
    assert shown(again, "America/St_Johns") == "2010-11-06 23:02:00"
    assert end_of("day", again, "America/St_Johns") == midnight - 1


def test_a_day_that_never_was_ends_when_it_begins() -> None:
    zone = "Pacific/Apia"
    new = at("2011-12-31 00:00", zone)
    assert at("2011-12-30 00:00", zone) == at("2011-12-30 18:00", zone) == new
    assert shown(end_of("day", new, zone), zone) == "2011-12-29 23:59:59.999999"


@pytest.mark.parametrize(
    ("month", "last"),
    [
        ("2024-03", "2024-02-29"),
        ("2026-03", "2026-02-28"),
        ("2100-03", "2100-02-28"),
        ("2000-03", "2000-02-29"),
        ("2026-01", "2025-12-31"),
        ("2026-05", "2026-04-30"),
    ],
)
def test_months_end_on_their_last_day(month: str, last: str) -> None:
    for zone in ("UTC", "America/Santiago", "Asia/Kathmandu"):
        for day in ("01 00:00", "01 05:45", "28 23:59"):
            end = end_of("month", at(f"{month}-{day}", zone), zone)
            assert shown(end, zone) == f"{last} 23:59:59.999999"


def test_an_hour_begins_where_the_zones_clock_says_so() -> None:
    time = at("2026-05-01 10:50", "Asia/Kathmandu")
    assert shown(end_of("hour", time, "Asia/Kathmandu"), "UTC") == "2026-05-01 04:14:59.999999"


def test_a_period_that_is_none_is_an_error() -> None:
    with pytest.raises(ValueError, match="week"):
        end_of("week", 0, "UTC")


@given(times, walls, zones)
@example(LAST_OF_DOUBLE, datetime(2026, 10, 25, 2, 59), "Europe/Berlin")
def test_a_wall_time_is_reached_if_its_instant_has_come(
    time: int, wall: datetime, zone: str
) -> None:
    assert (wall <= reached(time, zone)) == (instant(wall, zone) <= time)
    assert reached(instant(wall, zone), zone) >= wall > reached(instant(wall, zone) - 1, zone)


@given(st.lists(walls, min_size=2), zones)
def test_instants_never_decrease(several: list[datetime], zone: str) -> None:
    assert all(instant(a, zone) <= instant(b, zone) for a, b in pairwise(sorted(several)))


@given(times, zones, st.sampled_from(PERIODS))
def test_a_period_begins_right_after_the_end_of_the_one_before(
    time: int, zone: str, period: str
) -> None:
    end = end_of(period, time, zone)
    assert end < time
    assert end_of(period, end + 1, zone) == end
    assert end_of(period, end, zone) < end
    later = time + 1 + (time - end) % 1_000
    assert end_of(period, later, zone) in {end, *range(time, later)}


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("Europe/Berln", 'did you mean "Europe/Berlin"?'),
        ("europe/berlin", 'did you mean "Europe/Berlin"?'),
        ("New_York", 'did you mean "America/New_York"?'),
        ("", None),
        ("/etc/localtime", None),
        ("../zoneinfo/UTC", None),
        ("Europe", None),
        ("localtime", None),
        ("right/Europe/Berlin", 'did you mean "Europe/Berlin"?'),
        ("Factory", None),
        ("a\0b", None),
    ],
)
def test_what_is_no_zone_is_refused_with_the_nearest(name: str, hint: str | None) -> None:
    with pytest.raises(UnknownZone) as unknown:
        check_zone(name)
    assert str(unknown.value) == f'there is no time zone "{name}"'
    if hint:
        assert unknown.value.hint == hint


@pytest.mark.parametrize("name", [*NASTY, "CET", "EST5EDT", "Etc/GMT+5"])
def test_what_is_a_zone_is_taken_as_it_is(name: str) -> None:
    assert check_zone(name) == name
