"""A time that is bound means its cn for good; until then nobody is told what it means."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from steadyview.catalog import Catalog
from steadyview.changes import Flush
from steadyview.errors import GateOpen, LeaseLost, OutsideRetention
from tests.catalog.clocks import SetClock

MADE = 1_000_000


def admit(catalog: Catalog, source: str, dated: int = 0, count: int = 1) -> int:
    state = catalog.sources.state(source)
    first, last = state.last_seq + 1, state.last_seq + count
    catalog.commits.admit(Flush(source, state.flush + 1, first, last, "p", dated=dated))
    return catalog.commits.last_cn()


@pytest.fixture
def catalog(tmp_path: Path, clock: SetClock) -> Iterator[Catalog]:
    clock.now = MADE
    with Catalog.create(tmp_path / "warehouse", clock) as made:
        made.sources.register("sales", "postgresql")
        made.sources.register("crm", "sqlite")
        yield made


def test_a_bound_time_means_its_cn_whatever_was_admitted_by_then(
    catalog: Catalog, clock: SetClock
) -> None:
    time = MADE + 100
    catalog.gates.keep({time: {"sales"}})
    admit(catalog, "sales", time - 50)
    clock.now = time + 20
    late = admit(catalog, "sales", time - 1, count=3)
    assert catalog.gates.bind(time, {}, clock.now) == late
    admit(catalog, "sales", time + 5)
    assert catalog.commits.cn_at(time) == late
    assert catalog.commits.meant(time).bound
    # by admission, that was another one
    assert catalog.commits.cn_at(time + 1) == 1
    assert not catalog.commits.meant(time + 1).bound


def test_binding_again_changes_nothing(catalog: Catalog, clock: SetClock) -> None:
    clock.now += 10
    time = clock.now
    catalog.gates.keep({time: {"sales"}})
    assert catalog.gates.bind(time, {"sales": "silent"}, clock.now) == 0
    admit(catalog, "sales", time + 5)
    assert catalog.gates.bind(time, {}, clock.now) == 0
    assert catalog.commits.meant(time).told == {"sales": "silent"}
    assert catalog.gates.keep({time: {"sales", "crm"}}) == []
    assert catalog.gates.at(time).sources == ("sales",)
    assert catalog.gates.bind(time + 1, {}, clock.now) is None


def test_what_an_open_gate_will_mean_is_told_to_nobody(catalog: Catalog, clock: SetClock) -> None:
    time = MADE + 100
    catalog.gates.keep({time: {"sales", "crm"}})
    with pytest.raises(OutsideRetention, match="no state of"):
        catalog.commits.cn_at(time)
    clock.now = time + 50
    for _ in range(2):
        with pytest.raises(GateOpen, match="is not known yet") as told:
            catalog.commits.cn_at(time)
    assert '"crm", "sales"' in str(told.value.detail)
    # times beside it have their answers
    assert catalog.commits.cn_at(time + 1) == 0
    catalog.gates.keep({})
    assert catalog.commits.cn_at(time) == 0


def test_a_time_that_was_answered_already_gets_no_gate(catalog: Catalog, clock: SetClock) -> None:
    clock.now += 100
    time = clock.now
    assert catalog.commits.cn_at(time) == 0
    assert catalog.gates.keep({time: {"sales"}}) == []
    clock.now += 100
    admit(catalog, "sales", time + 3)
    assert catalog.gates.keep({time + 50: {"sales"}}) == []
    assert catalog.commits.cn_at(time + 50) == 0


def test_a_gate_that_was_open_before_stays_open_whatever_is_admitted_or_asked(
    catalog: Catalog, clock: SetClock, tmp_path: Path
) -> None:
    """Nobody captured at that time: the next life binds it."""
    time = MADE + 100
    catalog.gates.keep({time: {"sales"}})
    clock.now = time + 500
    assert catalog.commits.cn_at(time + 400) == 0
    admit(catalog, "sales", time - 7)
    with Catalog.open(tmp_path / "warehouse", clock) as other:
        assert [gate.time for gate in other.gates.keep({time: {"sales"}})] == [time]
        assert other.gates.bind(time, {}, clock.now) == 1
    assert catalog.commits.cn_at(time) == 1
    assert catalog.commits.cn_at(time + 400) == 0


def test_no_gate_is_opened_before_a_time_that_is_bound(catalog: Catalog) -> None:
    catalog.gates.keep({MADE + 100: {"sales"}})
    catalog.gates.bind(MADE + 100, {}, MADE)
    assert catalog.gates.keep({MADE + 50: {"crm"}}) == []


def test_a_source_that_dates_something_beyond_an_open_gate_is_told(
    catalog: Catalog, clock: SetClock
) -> None:
    time = MADE + 1000
    catalog.gates.keep({time: {"sales", "crm"}})
    admit(catalog, "sales", time)
    assert catalog.gates.at(time).told == {}
    admit(catalog, "sales", time + 1)
    assert catalog.gates.at(time).told == {"sales": "ahead"}
    # also if the gate comes later
    catalog.gates.keep({time: {"sales"}, time - 1: {"crm", "sales"}})
    assert catalog.gates.at(time - 1).told == {"sales": "ahead"}


def test_with_the_commits_behind_retention_what_is_bound_to_them_is_forgotten(
    catalog: Catalog, clock: SetClock
) -> None:
    for n in range(3):
        catalog.gates.keep({MADE + 10 * n + 5: {"sales"}})
        catalog.gates.bind(MADE + 10 * n + 5, {}, clock.now)
        clock.now = MADE + 10 * n + 9
        admit(catalog, "sales", clock.now)
    assert [gate.cn for gate in catalog.gates.of(0, 9)] == [0, 1, 2]
    catalog.commits.forget_before(2)
    assert [gate.cn for gate in catalog.gates.of(0, 9)] == [2]
    assert catalog.commits.cn_at(MADE + 25) == 2
    with pytest.raises(OutsideRetention):
        catalog.commits.cn_at(MADE + 15)


def test_who_lost_the_lease_writes_nothing_any_more(
    catalog: Catalog, clock: SetClock, tmp_path: Path
) -> None:
    with catalog.held():
        admit(catalog, "sales")
        with Catalog.open(tmp_path / "warehouse", clock) as successor, successor.held():
            for write in (
                lambda: admit(catalog, "sales"),
                lambda: catalog.commits.forget_before(1),
                lambda: catalog.sources.settle("sales", 1),
                lambda: catalog.gates.keep({MADE + 5: {"sales"}}),
            ):
                with pytest.raises(LeaseLost, match="taken over by another process"):
                    write()
            assert catalog.commits.last_cn() == 1
            assert admit(successor, "sales") == 2
    # who has no lease writes what anybody may
    catalog.sources.settle("sales", 1)
