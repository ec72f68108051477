"""What cron's five fields name, and what is refused with a plain fact."""

from __future__ import annotations

from datetime import date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steadyview.timing.cron import Cron, cron

FIELDS = "cron has five fields: minute, hour, day of month, month, day of week"
MINUTES, HOURS = frozenset(range(60)), frozenset(range(24))
DAYS, MONTHS, WEEKDAYS = frozenset(range(1, 32)), frozenset(range(1, 13)), frozenset(range(7))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("* * * * *", Cron(MINUTES, HOURS, DAYS, MONTHS, WEEKDAYS)),
        ("0 6 * * *", Cron({0}, {6}, DAYS, MONTHS, WEEKDAYS)),
        ("*/20 9-17/4 * * *", Cron({0, 20, 40}, {9, 13, 17}, DAYS, MONTHS, WEEKDAYS)),
        ("5,10-12,50-59/9 0 * * *", Cron({5, 10, 11, 12, 50, 59}, {0}, DAYS, MONTHS, WEEKDAYS)),
        ("0 0 1 JAN,jul *", Cron({0}, {0}, {1}, {1, 7}, WEEKDAYS)),
        ("0 0 * DEC Mon-FRI", Cron({0}, {0}, DAYS, {12}, {1, 2, 3, 4, 5})),
        ("0 0 * * 0", Cron({0}, {0}, DAYS, MONTHS, {0})),
        ("0 0 * * 7", Cron({0}, {0}, DAYS, MONTHS, {0})),
        ("0 0 * * 5-7", Cron({0}, {0}, DAYS, MONTHS, {5, 6, 0})),
        ("0 0 * * FRI-SUN", Cron({0}, {0}, DAYS, MONTHS, {5, 6, 0})),
        ("0 0 * * SUN-TUE", Cron({0}, {0}, DAYS, MONTHS, {0, 1, 2})),
        ("0 0 * * */2", Cron({0}, {0}, DAYS, MONTHS, {0, 2, 4, 6})),
        ("0 0 13 * 5", Cron({0}, {0}, {13}, MONTHS, {5}, either=True)),
        ("0 0 */2 * 5", Cron({0}, {0}, frozenset(range(1, 32, 2)), MONTHS, {5})),
        ("0 0 30 2 1", Cron({0}, {0}, {30}, {2}, {1}, either=True)),
        ("0 0 29 2 *", Cron({0}, {0}, {29}, {2}, WEEKDAYS)),
        ("0 0 31 2,3 *", Cron({0}, {0}, {31}, {2, 3}, WEEKDAYS)),
    ],
)
def test_fields_name_these_numbers(text: str, expected: Cron) -> None:
    assert cron(text) == expected


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("60 * * * *", "the minute 60 is not between 0 and 59"),
        ("* 24 * * *", "the hour 24 is not between 0 and 23"),
        ("* * 0 * *", "the day 0 is not between 1 and 31"),
        ("* * 32 * *", "the day 32 is not between 1 and 31"),
        ("* * * 13 *", "the month 13 is not between 1 and 12"),
        ("* * * 0 *", "the month 0 is not between 1 and 12"),
        ("* * * * 8", "the day of week 8 is not between 0 and 7"),
        ("* * * Mai *", 'the month "Mai" is no number and no name such as FEB'),
        ("JAN * * * *", 'the minute "JAN" is no number'),
        ("5-3 * * * *", 'the minute "5-3" goes backwards'),
        ("0 0 * * 5-3", 'the day of week "5-3" goes backwards'),
        ("*/0 * * * *", "the step 0 of the minute is not between 1 and 59"),
        ("*/60 * * * *", "the step 60 of the minute is not between 1 and 59"),
        ("* * * * */7", "the step 7 of the day of week is not between 1 and 6"),
        ("5/15 * * * *", 'the minute "5/15" is none of *, n, a-b, */n, a-b/n'),
        ("-1 * * * *", 'the minute "-1" is none of *, n, a-b, */n, a-b/n'),
        ("1, * * * *", 'the minute "" is none of *, n, a-b, */n, a-b/n'),
        ("L * * * *", 'the minute "L" is no number'),
        ("٣ * * * *", 'the minute "٣" is none of *, n, a-b, */n, a-b/n'),
        ("0 0 31 2 *", "day 31 of month 2 never comes"),
        ("0 0 30-31 FEB */2", "day 30-31 of month FEB never comes"),
        ("0 0 31 4,6,9,11 *", "day 31 of month 4,6,9,11 never comes"),
        ("0 6 * *", f"{FIELDS}; found 4"),
        ("", f"{FIELDS}; found 0"),
    ],
)
def test_what_names_nothing_is_refused(text: str, fact: str) -> None:
    with pytest.raises(ValueError, match=".") as refused:
        cron(text)
    assert str(refused.value) == fact


@pytest.mark.parametrize(
    ("text", "after", "expected"),
    [
        ("0 0 29 2 *", "2024-02-29 00:00", "2028-02-29 00:00"),
        ("0 0 29 2 *", "2096-02-29 00:00", "2104-02-29 00:00"),
        ("59 23 31 12 *", "2026-12-31 23:58:59.999999", "2026-12-31 23:59"),
        ("0 0 1 1 *", "2026-01-01 00:00", "2027-01-01 00:00"),
        ("0 12 13 * FRI", "2026-11-13 12:00", "2026-11-20 12:00"),
        ("30 6 31 * *", "2026-10-31 06:30", "2026-12-31 06:30"),
    ],
)
def test_the_next_minute_may_be_years_away(text: str, after: str, expected: str) -> None:
    minutes, wall = cron(text), datetime.fromisoformat(expected)
    assert minutes.first_after(datetime.fromisoformat(after)) == wall
    assert minutes.last_until(wall) == wall
    before = minutes.last_until(wall - timedelta(microseconds=1))
    assert before is not None
    assert before <= datetime.fromisoformat(after)


def test_the_calendar_has_two_ends() -> None:
    assert cron("* * * * *").first_after(datetime(9998, 12, 31, 23, 59)) is None
    assert cron("* * * * *").last_until(datetime(1, 12, 31, 23, 59)) is None
    assert cron("0 0 29 2 *").first_after(datetime(9997, 1, 1)) is None


def some_of(least: int, most: int) -> st.SearchStrategy[frozenset[int]]:
    return st.frozensets(st.integers(least, most), min_size=1, max_size=4)


months = st.just(frozenset({2})) | some_of(1, 12)
fields = st.tuples(some_of(0, 59), some_of(0, 23), some_of(1, 31), months, some_of(0, 6))


@given(fields, st.sets(st.integers(0, 4)), st.dates(date(1999, 12, 1), date(2032, 3, 1)), st.data())
def test_minutes_follow_each_other_as_days_looked_through_one_by_one(
    numbers: tuple[frozenset[int], ...], stars: set[int], day: date, data: st.DataObject
) -> None:
    wall = datetime.combine(day, data.draw(st.times()))
    listed = [",".join(map(str, sorted(n))) for n in numbers]
    text = " ".join("*" if i in stars else n for i, n in enumerate(listed))
    try:
        minutes = cron(text)
    except ValueError:
        assert 4 in stars or 2 in stars
        return
    everything = (MINUTES, HOURS, DAYS, MONTHS, WEEKDAYS)
    minute, hour, days, months, weekdays = (
        everything[i] if i in stars else n for i, n in enumerate(numbers)
    )

    def named(day: date) -> bool:
        both = day.day in days, (day.weekday() + 1) % 7 in weekdays
        fits = any(both) if not stars & {2, 4} else all(both)
        return fits and day.month in months

    def walls(day: date) -> list[datetime]:
        begin = datetime.combine(day, datetime.min.time())
        return [begin + timedelta(hours=h, minutes=m) for h in sorted(hour) for m in sorted(minute)]

    found = minutes.first_after(wall)
    before = minutes.last_until(wall)
    for expected, step in ((found, 1), (before, -1)):
        assert expected is not None
        day = wall.date()
        while True:
            later = [w for w in walls(day) if (w > wall) == (step > 0)] if named(day) else []
            if later:
                assert expected == (later[0] if step > 0 else later[-1])
                break
            day += step * timedelta(days=1)
