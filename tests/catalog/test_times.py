"""A time means one commit for good, whatever the clock does; a time nobody can know is refused."""

from __future__ import annotations

import tempfile
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from steadyview.catalog import Catalog, from_us, to_us
from steadyview.changes import Flush
from steadyview.errors import OutsideRetention, StorageUnavailable
from tests.catalog.clocks import SetClock

SECOND = 1_000_000
MADE = 1_700_000_000 * SECOND


def admit(catalog: Catalog, count: int = 1) -> None:
    state = catalog.sources.state("sales")
    first, last = state.last_seq + 1, state.last_seq + count
    catalog.commits.admit(Flush("sales", state.flush + 1, first, last, "p"))


@pytest.fixture
def clock() -> SetClock:
    return SetClock(MADE)


moves = st.tuples(st.just("clock"), st.integers(-30, 30))
commits = st.tuples(st.just("commit"), st.integers(1, 5))
reads = st.tuples(st.just("read"), st.integers(-10, 60))
restarts = st.tuples(st.just("restart"), st.just(0))
histories = st.lists(st.one_of(moves, commits, reads, reads, restarts), max_size=30)


class Reader:
    """Asks a catalog for times, and remembers every answer."""

    def __init__(self) -> None:
        self.answers: dict[int, int] = {}

    def ask(self, catalog: Catalog, time: int, now: int) -> None:
        last = catalog.commits.time_of(catalog.commits.last_cn())
        try:
            cn = catalog.commits.cn_at(time)
        except OutsideRetention:
            assert time not in self.answers
            assert time < MADE or time > max(now, last)
            return
        assert time >= MADE
        assert self.answers.setdefault(time, cn) == cn


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(history=histories)
def test_a_time_never_gets_two_answers_and_every_answer_is_right(
    history: list[tuple[str, int]],
) -> None:
    """Whatever the clock, restarts and reads of another process in between."""
    with tempfile.TemporaryDirectory() as folder:
        clock, reader = SetClock(MADE), Reader()
        held = Catalog.create(Path(folder), clock)
        held.sources.register("sales", "sqlite")
        for kind, amount in history:
            if kind == "clock":
                clock.now += amount
            elif kind == "commit":
                admit(held, amount)
            elif kind == "restart":
                held.close()
                held = Catalog.open(Path(folder), clock)
            else:
                with Catalog.open(Path(folder), clock) as other:
                    reader.ask(other, MADE + amount, clock.now)
        times = [held.commits.time_of(cn) for cn in range(1, held.commits.last_cn() + 1)]
        right = {time: sum(t <= time for t in times) for time in reader.answers}
        assert reader.answers == right
        assert [held.commits.cn_at(time) for time in times] == list(range(1, len(times) + 1))
        held.close()


@example(66_298_719_315, 0)
@example(4_446_537_579_578_278, 0)
@given(st.integers(0, 9_000_000_000_000_000), st.integers(-14, 14))
def test_a_time_as_text_means_the_same_microsecond(time: int, hours: int) -> None:
    text = from_us(time).astimezone(timezone(timedelta(hours=hours))).isoformat()
    assert to_us(datetime.fromisoformat(text)) == time


def test_a_time_read_before_and_after_the_clock_was_set_back_has_one_answer(
    catalog: Catalog, clock: SetClock
) -> None:
    clock.now += 91 * SECOND
    asked = clock.now
    assert catalog.commits.cn_at(asked) == 0
    clock.now -= 12 * SECOND
    admit(catalog)
    assert catalog.commits.time_of(1) > asked
    assert catalog.commits.cn_at(asked) == 0


def test_a_time_to_come_is_refused_with_the_times_that_can_be_had(
    catalog: Catalog, clock: SetClock
) -> None:
    admit(catalog)
    clock.now += 5 * SECOND
    with pytest.raises(OutsideRetention, match=r"no state of 2023-11-14T22:13:25\.000001Z") as told:
        catalog.commits.cn_at(clock.now + 1)
    assert told.value.detail == (
        "times from 2023-11-14T22:13:20.000000Z to 2023-11-14T22:13:25.000000Z can be asked for"
    )
    assert catalog.commits.cn_at(clock.now) == 1


def test_a_time_before_the_warehouse_was_made_is_refused(catalog: Catalog) -> None:
    assert catalog.commits.cn_at(MADE) == 0
    with pytest.raises(OutsideRetention, match="2023-11-14T22:13:19.999999Z"):
        catalog.commits.cn_at(MADE - 1)


def test_a_time_before_the_oldest_kept_commit_is_refused(
    catalog: Catalog, clock: SetClock
) -> None:
    for _ in range(3):
        clock.now += SECOND
        admit(catalog)
    catalog.commits.forget_before(2)
    oldest = catalog.commits.time_of(2)
    assert catalog.commits.cn_at(oldest) == 2
    for time in (MADE, oldest - 1):
        with pytest.raises(OutsideRetention, match="no state of") as told:
            catalog.commits.cn_at(time)
        assert "times from 2023-11-14T22:13:22.000000Z" in str(told.value.detail)


def test_commits_ahead_of_the_clock_can_be_asked_for_by_their_times(catalog: Catalog) -> None:
    """A flush of many transactions gives each a microsecond of its own."""
    admit(catalog, 1000)
    assert [catalog.commits.cn_at(catalog.commits.time_of(cn)) for cn in (1, 500, 1000)] == [
        1,
        500,
        1000,
    ]


def query_only(catalog: Catalog) -> None:
    """As in a folder that may only be read."""
    catalog._database._connection().execute("PRAGMA query_only = ON")


def test_a_reader_that_may_not_write_answers_what_is_settled_and_says_so_otherwise(
    catalog: Catalog, clock: SetClock, tmp_path: Path
) -> None:
    admit(catalog, 3)
    last = catalog.commits.time_of(3)
    clock.now += 9 * SECOND
    with Catalog.open(tmp_path / "warehouse", clock) as reader:
        query_only(reader)
        assert reader.commits.cn_at(last) == 3
        with pytest.raises(StorageUnavailable, match="cannot be settled") as told:
            reader.commits.cn_at(clock.now)
        assert "2023-11-14T22:13:20.000003Z" in str(told.value.hint)
        assert catalog.commits.cn_at(clock.now) == 3
        assert reader.commits.cn_at(clock.now) == 3
