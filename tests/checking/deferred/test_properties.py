"""Each property of section 3 can hold and can be broken; the sentence says what is to be seen."""

from __future__ import annotations

import json

import pytest
from hypothesis import event, given, settings

from steadyview.checking.deferred import (
    PER_SOURCE,
    PROPERTIES,
    DeferredHistory,
    DeferredTransaction,
    convictions,
)
from tests.checking.deferred.tiny import histories, history, naive, transaction

X = transaction("x", 1, 5, items="a", v=(1, 2), w=(3,))
Y = transaction("y", 7, 8, items="b", v=(4,))
CLEAN = history([X, Y], ("v", 6, (1, 2)), ("w", 6, (3,)), ("v", 9, (4,)), ("w", 9, ()))


def broken(found: DeferredHistory) -> dict[str, str]:
    return {conviction.breaks: conviction.sentence for conviction in convictions(found)}


def test_a_history_in_which_each_step_takes_what_had_committed_is_clean() -> None:
    assert convictions(CLEAN) == ()


def test_a_history_without_steps_is_clean() -> None:
    assert convictions(history([X, Y])) == ()


SEEN = {
    "lost": (
        history([X, Y], ("v", 9, (1, 2, 4)), ("w", 9, ())),
        "x committed at 5, and row 3 of it is not in w after its last step, to 9",
    ),
    "redundant": (
        history([X, Y], ("v", 6, (1, 2)), ("v", 9, (2, 4))),
        "row 2 was applied to v 2 times, by its steps to 6 and 9",
    ),
    "not atomic in a view": (
        history([X, Y], ("v", 6, (2,)), ("v", 9, (1, 4))),
        "the step of v to 6 applied row 2 of x but not row 1",
    ),
    "not atomic across views": (
        history([X], ("v", 6, (1, 2)), ("w", 7, ()), ("w", 9, (3,))),
        "x has rows of both, and v shows it at 6 but w does not at 7",
    ),
    "reordered": (
        history([transaction("x", 1, 5, v=(1,)), Y], ("v", 9, (4,)), ("v", 10, (1,))),
        "x ended at 5 before y began at 7, and only y was in v after its step to 9",
    ),
    "real time": (
        history([X, Y], ("v", 7, (1, 2, 4)), ("v", 9, ())),
        "y committed at 8, and after the step of v to 7 its row 4 is there already",
    ),
}


@pytest.mark.parametrize("name", PROPERTIES)
def test_the_property_is_broken_and_the_sentence_says_how(name: str) -> None:
    found, sentence = SEEN[name]
    assert broken(found)[name] == sentence
    assert "real time" in broken(found)


def test_a_step_too_late_breaks_real_time_alone() -> None:
    assert broken(history([X], ("v", 6, ()), ("v", 9, (1, 2)))) == {
        "real time": "x committed at 5, and after the step of v to 6 its row 1 is not there"
    }


def test_a_row_of_a_transaction_that_was_rolled_back_is_told() -> None:
    assert broken(history([Y], ("v", 9, (4, 77)))) == {
        "real time": "after the step of v to 9 row 77 is there, of no transaction that committed"
    }


def test_a_row_that_comes_late_is_not_lost() -> None:
    late = history([X], ("w", 6, ()), ("w", 7, (3,)))
    assert set(broken(late)) == {"real time"}


def test_a_history_that_ends_before_the_last_commit_loses_nothing() -> None:
    assert set(broken(history([X, Y], ("v", 7, ())))) == {"real time"}


def test_transactions_at_the_same_time_are_in_no_order() -> None:
    at_once = transaction("x", 1, 5, end=7, v=(1,))
    assert "reordered" not in broken(history([at_once, Y], ("v", 9, (4,)), ("v", 10, (1,))))


def test_of_two_that_share_an_item_the_first_to_commit_comes_first() -> None:
    x, y = transaction("x", 1, 5, items="a", v=(1,)), transaction("y", 2, 6, items="a", v=(2,))
    found = broken(history([x, y], ("v", 9, (2,))))
    assert found["reordered"].startswith("x and y both changed a, x first (it committed at 5), and")
    assert "reordered" not in broken(history([x, y], ("v", 9, (1,))))


def test_databases_without_common_transactions_have_no_order() -> None:
    """The same history, judged as one database and as two."""
    x = DeferredTransaction("x", 1, 9, 2, {"v": (1,)}, source="crm", seq=1)
    y = DeferredTransaction("y", 4, 6, 5, {"v": (2,)}, source="sales", seq=1)
    steps = [("v", 7, (2,)), ("v", 9, (1,))]
    assert set(broken(history([x, y], *steps))) == {"reordered"}
    assert broken(history([x, y], *steps, order=PER_SOURCE)) == {}


def test_a_source_has_one_order_whatever_was_locked() -> None:
    x = DeferredTransaction("x", 1, 5, 5, {"v": (1,)}, source="crm", seq=1)
    y = DeferredTransaction("y", 1, 6, 6, {"v": (2,)}, source="crm", seq=2)
    found = broken(history([x, y], ("v", 9, (2,)), order=PER_SOURCE))
    assert found["reordered"].startswith("x is commit 1 of crm and y commit 2, and only y was in v")


@pytest.mark.parametrize("name", PROPERTIES)
def test_a_verdict_is_data(name: str) -> None:
    found = next(c for c in convictions(SEEN[name][0]) if c.breaks == name)
    told = json.loads(json.dumps(found.to_dict()))
    assert told["property"] == name
    assert {"step", "view", "target"} <= set(told["witness"])


@settings(max_examples=600, deadline=None)
@given(found=histories())
def test_every_predicate_agrees_with_its_definition(found: DeferredHistory) -> None:
    expected = naive(found)
    event(f"{len(expected)} broken")
    assert set(broken(found)) == expected


@settings(max_examples=600, deadline=None)
@given(found=histories())
def test_real_time_implies_all_the_others(found: DeferredHistory) -> None:
    names = set(broken(found))
    assert not names or "real time" in names
