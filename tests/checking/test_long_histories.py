"""Histories of a live warehouse's length: every level is decided, though vectors are millions."""

from __future__ import annotations

import pytest

from steadyview.algebra import Bag
from steadyview.checking import UNKNOWN, judge
from tests.checking.long_histories import GROUPS_VIEW, ROWS_VIEW, LongHistory


@pytest.fixture(scope="module", params=[ROWS_VIEW, GROUPS_VIEW], ids=["rows", "groups"])
def long(request):
    return LongHistory(1, view=request.param, transactions=300)


def broken(states, at, state):
    return [*states[:at], state, *states[at + 1 :]]


def test_what_was_taken_in_one_by_one_is_complete_in_whatever_order_it_is_listed(long):
    assert judge(long.history(long.states, as_taken=True)).level == "complete"
    assert judge(long.history(long.states)).level == "complete"


def test_a_row_that_never_was_near_the_end_is_convergent(long):
    at = len(long.states) - 10
    width = len(next(iter(long.states[at]))[0])
    strange = long.states[at] + Bag.of([(10**6,) * width])
    verdict = judge(long.history(broken(long.states, at, strange)))
    assert verdict.level == "convergent"
    assert (verdict.breaks.kind, verdict.breaks.state) == ("nowhere", at)


def test_a_row_that_is_missing_near_the_end_is_convergent(long):
    at = len(long.states) - 10
    row, _ = next(iter(long.states[at]))
    verdict = judge(long.history(broken(long.states, at, long.states[at] - Bag([(row, 1)]))))
    assert (verdict.level, verdict.breaks.state) == ("convergent", at)


def test_two_states_in_the_wrong_order_near_the_end_are_weak(long):
    states = list(long.states)
    states[-20], states[-10] = states[-10], states[-20]
    verdict = judge(long.history(states))
    assert (verdict.level, verdict.breaks.kind) == ("weak", "backwards")


def test_states_that_take_in_several_transactions_are_strong(long):
    verdict = judge(long.history([*long.states[:-1:3], long.states[-1]]))
    assert (verdict.level, verdict.breaks.kind) == ("strong", "unshown")


def test_a_small_budget_ends_the_search(long):
    verdict = judge(long.history(long.states), budget=1000)
    assert verdict.level == "convergent"
    assert verdict.holds("complete") == UNKNOWN
