"""The commit table against a plain list with one entry per transaction."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from steadyview.catalog import AdmittedRun, Catalog
from steadyview.changes import Flush, Loss, RelationName
from steadyview.errors import OutsideRetention
from tests.catalog.clocks import ScriptedClock, SetClock

NAMES = ("sales", "crm")


def flush(source: str, number: int, seq_from: int, seq_to: int) -> Flush:
    return Flush(source, number, seq_from, seq_to, f"{source}@{seq_to}")


flushes = st.lists(st.tuples(st.sampled_from(NAMES), st.integers(0, 4)), max_size=12)
clocks = st.lists(st.integers(0, 60), min_size=1, max_size=14)


class Naive:
    """One (source, seq, time) per transaction; place in the list + 1 is the cn."""

    def __init__(self) -> None:
        self.entries: list[tuple[str, int, int]] = []

    def last(self, source: str) -> int:
        return max((seq for name, seq, _ in self.entries if name == source), default=0)

    def admit(self, source: str, count: int, run: AdmittedRun | None) -> None:
        for i in range(count):
            assert run is not None
            self.entries.append((source, self.last(source) + 1, run.time_from + i))


def replay(catalog: Catalog, plan: list[tuple[str, int]]) -> Naive:
    naive = Naive()
    for name in NAMES:
        catalog.sources.register(name, "sqlite")
    for number, (source, count) in enumerate(plan, start=1):
        last = naive.last(source)
        run = catalog.commits.admit(flush(source, number, last + 1, last + count))
        naive.admit(source, count, run)
    return naive


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(plan=flushes, times=clocks)
def test_runs_answer_like_a_list_of_single_transactions(
    plan: list[tuple[str, int]], times: list[int]
) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        Catalog.create(Path(folder), ScriptedClock(times)) as catalog,
    ):
        naive = replay(catalog, plan)
        commits, entries = catalog.commits, naive.entries
        assert commits.last_cn() == len(entries)
        _check_single(catalog, entries)
        _check_nearest(catalog, entries)
        _check_ranges(catalog, entries)
        _check_times(catalog, entries)


def _check_single(catalog: Catalog, entries: list[tuple[str, int, int]]) -> None:
    for cn, (source, seq, time) in enumerate(entries, start=1):
        assert catalog.commits.transaction_of(cn) == (source, seq)
        assert catalog.commits.cn_of(source, seq) == cn
        assert catalog.commits.time_of(cn) == time
    for cn in range(len(entries) + 1):
        seen = {n: sum(s == n for s, _, _ in entries[:cn]) for n in NAMES}
        assert _seen(catalog, cn) == seen


def _check_nearest(catalog: Catalog, entries: list[tuple[str, int, int]]) -> None:
    """The source's commits on either side of every cn."""
    for name in NAMES:
        own = [cn for cn, (source, _, _) in enumerate(entries, start=1) if source == name]
        for cn in range(len(entries) + 1):
            before, after = [c for c in own if c <= cn], [c for c in own if c > cn]
            assert catalog.commits.last_upto(name, cn) == max(before, default=None)
            assert catalog.commits.first_after(name, cn) == min(after, default=None)


def _seen(catalog: Catalog, cn: int) -> dict[str, int]:
    return {name: catalog.commits.seq_upto(name, cn) for name in NAMES}


def _check_ranges(catalog: Catalog, entries: list[tuple[str, int, int]]) -> None:
    for low in range(len(entries) + 2):
        for high in range(low, len(entries) + 2):
            flat = [
                (r.source, r.seq_from + i, r.time_from + i)
                for r in catalog.commits.runs(low, high)
                for i in range(r.cn_to - r.cn_from + 1)
            ]
            assert flat == entries[max(low - 1, 0) : high]
            rows = catalog.commits.commit_rows("sales", low, high).to_pydict()
            own = [(s, cn) for cn, (n, s, _) in enumerate(entries, 1) if n == "sales"]
            wanted = [(s, cn) for s, cn in own if low <= s <= high]
            assert list(zip(rows["seq"], rows["cn"], strict=True)) == wanted


def _check_times(catalog: Catalog, entries: list[tuple[str, int, int]]) -> None:
    times = [time for _, _, time in entries]
    assert all(a < b for a, b in zip(times, times[1:], strict=False))
    first, last = catalog.commits.time_of(0), max(times, default=0)
    for time in {*times, *(t + 1 for t in times), *(t - 1 for t in times)}:
        if first <= time <= last:
            assert catalog.commits.cn_at(time) == sum(t <= time for t in times)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(plan=flushes, horizon=st.integers(0, 30))
def test_what_is_not_forgotten_stays_exactly_known(
    plan: list[tuple[str, int]], horizon: int
) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        Catalog.create(Path(folder), SetClock(50)) as catalog,
    ):
        entries = replay(catalog, plan).entries
        oldest = min(horizon, len(entries))
        known = {cn: _seen(catalog, cn) for cn in range(oldest, len(entries) + 1)}
        catalog.commits.forget_before(horizon)
        catalog.commits.forget_before(0)
        assert catalog.commits.oldest_cn() == oldest
        assert {cn: _seen(catalog, cn) for cn in known} == known
        for cn in range(max(oldest, 1), len(entries) + 1):
            source, seq, time = entries[cn - 1]
            assert catalog.commits.transaction_of(cn) == (source, seq)
            assert catalog.commits.cn_at(time) == cn
            assert catalog.commits.cn_of(source, seq) == cn
        if oldest:
            with pytest.raises(OutsideRetention):
                catalog.commits.seq_upto("sales", oldest - 1)


def test_forgetting_shrinks_the_table(catalog: Catalog) -> None:
    for seq in range(1, 101):
        catalog.commits.admit(flush("sales", seq, seq, seq))
    catalog.commits.forget_before(91)
    assert len(catalog.commits.runs(0, 1000)) == 10


def test_time_goes_on_after_a_restart_with_a_clock_set_back(tmp_path: Path) -> None:
    with Catalog.create(tmp_path, SetClock(5_000)) as first:
        first.sources.register("sales", "sqlite")
        assert first.commits.admit(flush("sales", 1, 1, 3)) == AdmittedRun(1, "sales", 1, 3, 5_001)
    with Catalog.create(tmp_path, SetClock(17)) as second:
        assert second.commits.admit(flush("sales", 2, 4, 4)) == AdmittedRun(4, "sales", 4, 4, 5_004)
    with Catalog.open(tmp_path, SetClock(9_000)) as third:
        assert third.commits.admit(flush("sales", 3, 5, 5)) == AdmittedRun(5, "sales", 5, 5, 9_000)
        assert third.commits.time_of(0) == 5_000


def test_a_flush_is_admitted_exactly_once(catalog: Catalog) -> None:
    first = catalog.commits.admit(flush("sales", 4, 1, 3))
    assert catalog.commits.admit(flush("sales", 4, 1, 3)) == first
    assert catalog.commits.last_cn() == 3
    assert catalog.sources.state("sales").last_seq == 3


def test_a_gap_or_an_overlap_is_refused_and_changes_nothing(catalog: Catalog) -> None:
    catalog.commits.admit(flush("sales", 1, 1, 3))
    before = catalog.sources.states()
    for seq_from in (3, 5):
        with pytest.raises(ValueError, match="expected 4"):
            catalog.commits.admit(flush("sales", 2, seq_from, 9))
    assert catalog.sources.states() == before
    assert catalog.commits.last_cn() == 3


def test_a_flush_without_transactions_moves_only_the_position(catalog: Catalog) -> None:
    assert catalog.commits.admit(Flush("sales", 1, 1, 0, "0/16")) is None
    state = catalog.sources.state("sales")
    assert (state.position, state.last_seq, state.flush) == ("0/16", 0, 1)
    catalog.sources.advance("sales", "0/17")
    assert catalog.sources.state("sales").position == "0/17"
    assert catalog.commits.last_cn() == 0


def test_a_lost_column_is_recorded_with_its_flush(catalog: Catalog) -> None:
    orders = RelationName("sales", ("public", "orders"))
    lost = Loss(orders, "price", 2, "dropped")
    catalog.commits.admit(Flush("sales", 1, 1, 2, "p", (lost,)))
    assert catalog.sources.losses() == [lost]
    again = Loss(orders, "price", 9, "again")
    catalog.commits.admit(Flush("sales", 2, 3, 9, "q", (again,)))
    catalog.commits.admit(Flush("sales", 3, 10, 10, "r", (lost,)))
    assert catalog.sources.losses() == [again]


def test_a_commit_that_is_not_there_is_outside_what_is_kept(catalog: Catalog) -> None:
    catalog.commits.admit(flush("sales", 1, 1, 3))
    for question in (catalog.commits.transaction_of, catalog.commits.time_of):
        with pytest.raises(OutsideRetention, match="commit 4"):
            question(4)
    with pytest.raises(OutsideRetention):
        catalog.commits.seq_upto("sales", 4)
    assert catalog.commits.cn_of("sales", 4) is None


def test_a_hundred_thousand_transactions_are_one_row(catalog: Catalog) -> None:
    catalog.commits.admit(flush("sales", 1, 1, 100_000))
    assert len(catalog.commits.runs(1, 100_000)) == 1
    rows = catalog.commits.commit_rows("sales", 99_999, 200_000)
    assert rows.to_pydict() == {"seq": [99_999, 100_000], "cn": [99_999, 100_000]}
