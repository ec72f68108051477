"""A view manager begins what may begin, and registers a prefix without gaps."""

from __future__ import annotations

from steadyview.maintenance.records.additive_views import ADDITIVE_VIEWS
from steadyview.maintenance.records.apply_if_unseen import ApplyingIfUnseen, applied
from steadyview.maintenance.records.entries import LogEntry, LogStream
from steadyview.maintenance.records.requests import Stamp, StoredRecord
from steadyview.maintenance.records.signatures import (
    above,
    has_processed,
    is_covered,
    without_partitioning,
)
from steadyview.maintenance.records.view_manager import ViewManager

S1, S2 = LogStream("shop", 1, 1, 1), LogStream("shop", 1, 1, 2)
COUNT = ADDITIVE_VIEWS["COUNT"]


def entry(number: int, group: str, stream: LogStream = S1, y: int | None = 5) -> LogEntry:
    return LogEntry("R", number, None, (number, group, y), number, (stream,))


def manager(*entries: LogEntry, **how) -> ViewManager:
    made = ViewManager(ApplyingIfUnseen(COUNT), {S1: 0}, **how)
    made.received(S1, entries)
    return made


def test_entries_of_one_record_wait_for_each_other_and_others_do_not() -> None:
    found = manager(entry(1, "a"), entry(2, "a"), entry(3, "b"), at_once=3)
    begun = found.begin()
    assert [request.key for _, request in begun] == ["a", "b"]
    assert found.begin() == []
    assert found.answered(begun[0][0], None) == []
    assert [request.key for _, request in found.begin()] == ["a"]


def test_what_overtook_is_registered_when_the_gap_is_closed() -> None:
    found = manager(entry(1, "a"), entry(2, "a"), entry(3, "b"), at_once=3)
    first, third = found.begin()
    found.answered(third[0], None)
    assert found.positions == {S1: 0}
    found.answered(first[0], None)
    assert found.positions == {S1: 1}
    (second,) = found.begin()
    found.answered(second[0], None)
    assert found.positions == {S1: 3}
    assert found.registering().positions == {S1: 3}


def test_a_window_is_registered_when_it_is_full_or_at_once_if_asked() -> None:
    found = manager(entry(1, "a"), entry(2, "b"), window=2)
    assert found.registering() is None
    found.answered(found.begin()[0][0], None)
    assert found.registering() is None
    assert found.registering(now=True).positions == {S1: 1}


def test_entries_that_are_registered_are_not_begun() -> None:
    found = ViewManager(ApplyingIfUnseen(COUNT), {S1: 2})
    found.received(S1, [entry(1, "a"), entry(2, "b")])
    assert found.is_idle


def test_apply_if_unseen_adds_what_is_new_one_by_one() -> None:
    record = StoredRecord((1, 1, 5), Stamp({S1: 3}))
    additions = [(entry(3, "a"), (1, 1, 5)), (entry(4, "a"), (1, 0, 0))]
    assert applied(COUNT, record, additions) == StoredRecord((2, 1, 5), Stamp({S1: 4}))
    assert applied(COUNT, record, additions[:1]) is record


def test_a_group_of_nulls_shows_zero_and_a_group_without_rows_leaves_a_tombstone() -> None:
    record = StoredRecord(None, Stamp({}))
    one = applied(COUNT, record, [(entry(1, "a", y=None), (1, 0, 0))])
    assert COUNT.shown(one.fields) == (0,)
    gone = applied(COUNT, one, [(entry(2, "a", y=None), (-1, 0, 0))])
    assert gone == StoredRecord(None, Stamp({S1: 2}))


def test_a_tombstone_is_reclaimed_when_all_its_streams_are_registered() -> None:
    version = {S1: 3, S2: 5}
    assert not is_covered(version, {S1: 3, S2: 4})
    assert is_covered(version, {S1: 3, S2: 5})
    assert above(version, {S1: 3, S2: 4}) == {S2: 5}


def test_an_entry_of_a_log_that_began_again_is_new() -> None:
    again = LogStream("shop", 2, 1, 1)
    assert not has_processed({S1: 9}, entry(1, "a", again))


def test_components_of_an_old_partitioning_can_be_dropped() -> None:
    new = LogStream("shop", 1, 2, 0)
    assert without_partitioning({S1: 9, new: 3}, 1) == {new: 3}
