"""Which times get gates: those that refreshes at moments of the sources' clocks are to show."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from steadyview.catalog import Catalog, Published, ViewSpec, to_us
from steadyview.runtime.gatekeeper import Gatekeeper
from tests.catalog.clocks import SetClock

HOUR = 3_600_000_000


def at(text: str, zone: str = "UTC") -> int:
    return to_us(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).astimezone(UTC))


@pytest.fixture
def clock() -> SetClock:
    return SetClock(at("2026-11-19 20:00"))


@pytest.fixture
def catalog(tmp_path: Path, clock: SetClock) -> Iterator[Catalog]:
    with Catalog.create(tmp_path / "warehouse", clock) as made:
        yield made


def keeper(catalog: Catalog, clock: SetClock) -> Gatekeeper:
    return Gatekeeper(catalog, clock, zone="Europe/Berlin")


def add(
    catalog: Catalog,
    name: str,
    schedule: str,
    refresh_to: str = "tick",
    policy: str = "dpda",
    **reads: Any,
) -> int:
    """`reads`: `sources`, and `inputs`, other views with their ids."""
    refresh = {
        "steadyview.policy": policy,
        "steadyview.schedule": schedule,
        "steadyview.refresh_to": refresh_to,
    }
    relations = [{"source": source} for source in reads.get("sources", ("pg",))]
    inputs = reads.get("inputs", {})
    definition = {"refresh": refresh, "relations": relations, "inputs": inputs}
    spec = ViewSpec(name, "", "complete", "incremental", json.dumps(definition), "")
    row = catalog.views.add(spec, 0)
    catalog.views.publish([Published(row.id, 0, 0, 0, 0)])
    return row.id


def opened(catalog: Catalog) -> dict[int, tuple[str, ...]]:
    return {gate.time: gate.sources for gate in catalog.gates.open()}


@pytest.mark.parametrize(
    ("schedule", "refresh_to", "time"),
    [
        ("daily at 06:00", "tick", at("2026-11-20 06:00", "Europe/Berlin")),
        ("daily at 06:00 UTC", "tick", at("2026-11-20 06:00")),
        ("cron */15 * * * *", "tick", at("2026-11-19 20:15")),
        ("daily at 06:00", "end of day", at("2026-11-20 00:00", "Europe/Berlin") - 1),
        ("every 5 minutes", "end of hour", at("2026-11-19 20:00") - 1),
        ("every 1 hour", "end of month", at("2026-11-01 00:00", "Europe/Berlin") - 1),
        ("daily at 00:00", "end of month", at("2026-11-01 00:00", "Europe/Berlin") - 1),
    ],
)
def test_the_next_time_has_a_gate_before_it_comes(
    catalog: Catalog, clock: SetClock, schedule: str, refresh_to: str, time: int
) -> None:
    # before anything was answered: an earlier time can be bound as well
    catalog._database._connection().execute("UPDATE warehouse SET floor = 0, last_time = 0")
    add(catalog, "late", schedule, refresh_to)
    keeper(catalog, clock).follow()
    assert opened(catalog) == {time: ("pg",)}


@pytest.mark.parametrize(
    ("schedule", "policy"),
    [("every 5 minutes", "dpda"), ("on demand", "ipda"), ("daily at 06:00", "immediate")],
)
def test_nothing_else_has(
    catalog: Catalog, clock: SetClock, schedule: str, policy: str
) -> None:
    add(catalog, "late", schedule, policy=policy)
    keeper(catalog, clock).follow()
    assert opened(catalog) == {}


def test_views_that_are_due_at_one_time_have_one_gate_for_all_their_sources(
    catalog: Catalog, clock: SetClock
) -> None:
    first = add(catalog, "a", "daily at 06:00", sources=("pg",))
    add(catalog, "b", "cron 0 6 * * * Europe/Berlin", sources=("lite",))
    add(catalog, "c", "cron 0 6 * * *", sources=(), inputs={"a": first})
    add(catalog, "d", "daily at 07:00", sources=("other",))
    keeper(catalog, clock).follow()
    six = at("2026-11-20 06:00", "Europe/Berlin")
    assert opened(catalog) == {six: ("lite", "pg"), six + HOUR: ("other",)}


def test_of_times_that_were_missed_only_the_latest_has_one(
    catalog: Catalog, clock: SetClock
) -> None:
    add(catalog, "late", "daily at 06:00 UTC")
    keeper(catalog, clock).follow()
    assert opened(catalog) == {at("2026-11-20 06:00"): ("pg",)}
    clock.now = at("2026-11-23 09:00")
    again = keeper(catalog, clock)
    again.follow()
    assert [*opened(catalog)] == [at("2026-11-23 06:00"), at("2026-11-24 06:00")]
    again.heard("pg", clock.now)
    again.tend()
    assert [*opened(catalog)] == [at("2026-11-24 06:00")]
    bound = catalog.gates.at(at("2026-11-23 06:00"))
    assert bound is not None
    assert (bound.cn, bound.told) == (0, {})
    again.follow()
    assert [*opened(catalog)] == [at("2026-11-24 06:00")]


def test_gates_follow_one_another_without_anybody_looking_at_the_views(
    catalog: Catalog, clock: SetClock
) -> None:
    """While a batch takes long, captures alone go on."""
    add(catalog, "late", "cron * * * * * UTC")
    kept = keeper(catalog, clock)
    kept.follow()
    for minute in range(1, 6):
        time = at("2026-11-19 20:00") + minute * 60_000_000
        assert time in opened(catalog)
        clock.now = time + 1000
        kept.heard("pg", clock.now)
        kept.tend()
        assert catalog.gates.at(time).cn == 0


def test_a_gate_goes_with_its_view(catalog: Catalog, clock: SetClock) -> None:
    add(catalog, "late", "daily at 06:00")
    kept = keeper(catalog, clock)
    kept.follow()
    assert kept.times("pg")
    catalog.views.drop("late")
    kept.follow()
    assert opened(catalog) == {}
    assert kept.times("pg") == ()


@pytest.mark.parametrize(
    ("zone", "now", "end"),
    [
        # no midnight on that day: it begins at 01:00
        ("America/Santiago", "2026-09-05 20:00", "2026-09-06 04:00"),
        ("Europe/Berlin", "2026-03-29 20:00", "2026-03-29 22:00"),
        ("Europe/Berlin", "2026-10-25 20:00", "2026-10-25 23:00"),
    ],
)
def test_the_end_of_a_day_that_is_not_24_hours_long_or_lacks_its_midnight(
    tmp_path: Path, zone: str, now: str, end: str
) -> None:
    clock = SetClock(at(now))
    with Catalog.create(tmp_path / "warehouse", clock) as catalog:
        add(catalog, "late", f"daily at 12:00 {zone}", "end of day")
        keeper(catalog, clock).follow()
        assert [*opened(catalog)] == [at(end) - 1]
