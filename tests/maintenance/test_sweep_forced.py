"""Every case of the compensation, forced; each test fails when its term is taken out."""

from __future__ import annotations

import random

import pytest

from steadyview.maintenance.bag_algebra import Keys
from tests.maintenance.cases import Case, case, relation, view
from tests.maintenance.mutants import MUTANTS, Mirrored
from tests.maintenance.sweeping import SOUND, Sweeper, sweep

R, S, T = relation("s1.r", "xy"), relation("s2.s", "xy"), relation("s2.t", "xy")
PAIR = view(
    "SELECT r.y, s.y FROM s1.r AS r JOIN s2.s AS s ON r.x = s.x",
    [R, S],
    [(0, 0, 1, 0)],
    ["t0.c1", "t1.c1"],
)
CHAIN = view(
    "SELECT r.x, t.y FROM s1.r AS r JOIN s2.s AS s ON r.y = s.x JOIN s2.t AS t ON s.y = t.x",
    [R, S, T],
    [(0, 1, 1, 0), (1, 1, 2, 0)],
    ["t0.c0", "t2.c1"],
)
SELF = view(
    "SELECT a.x, b.y FROM s1.r AS a JOIN s1.r AS b ON a.y = b.x",
    [R, R],
    [(0, 1, 1, 0)],
    ["t0.c0", "t1.c1"],
)
THRICE = view(
    "SELECT a.x, c.y FROM s1.r AS a JOIN s1.r AS b ON a.y = b.x JOIN s1.r AS c ON b.y = c.x",
    [R, R, R],
    [(0, 1, 1, 0), (1, 1, 2, 0)],
    ["t0.c0", "t2.c1"],
)
FILTERED = view(
    "SELECT r.y, s.y FROM s1.r AS r JOIN s2.s AS s ON r.x = s.x WHERE s.y > 5",
    [R, S],
    [(0, 0, 1, 0)],
    ["t0.c1", "t1.c1"],
    filters={1: "t1.c1 > 5"},
)


def convicted(of: Case, *mutants: str) -> None:
    """The sweep is exact here, and each of the mutants is not."""
    assert of.exact()
    for mutant in mutants:
        assert not of.exact(MUTANTS[mutant]), f"{mutant} goes unnoticed"


def test_a_reflected_transaction_beyond_the_batch_is_taken_back() -> None:
    history = [[(R, (1, 10), 1)], [(S, (1, 20), 1)]]
    convicted(
        case(PAIR, {S: [(1, 30)]}, history, [(0, 1, {2}), (1, 2, {1, 2})]),
        "BlindBeyondTheBatch",
        "BlindToReflected",
        "Uncompensated",
    )


def test_a_reflected_deletion_beyond_the_batch_is_put_back() -> None:
    history = [[(R, (1, 10), 1)], [(S, (1, 20), -1)]]
    of = case(PAIR, {S: [(1, 20)]}, history, [(0, 1, {1, 2}), (1, 2, {1, 2})])
    convicted(of, "BlindBeyondTheBatch", "BlindToReflected", "Uncompensated")


def test_a_transaction_of_an_earlier_batch_that_no_answer_shows_yet_is_added() -> None:
    history = [[(S, (1, 20), 1)], [(R, (1, 10), 1)]]
    of = case(PAIR, {}, history, [(0, 1, {1}), (1, 2, set())])
    convicted(of, "BlindBeforeTheBatch", "BlindToUnreflected", "Uncompensated")


def test_a_deletion_of_an_earlier_batch_that_no_answer_shows_yet_is_made() -> None:
    history = [[(S, (1, 20), -1)], [(R, (1, 10), 1)]]
    of = case(PAIR, {S: [(1, 20)]}, history, [(0, 1, {1}), (1, 2, {2})])
    convicted(of, "BlindBeforeTheBatch", "BlindToUnreflected", "Uncompensated")


def test_an_earlier_transaction_stays_hidden_for_several_batches() -> None:
    history = [[(S, (1, 20), 1)], [(R, (1, 10), 1)], [(R, (1, 11), 1)], [(R, (1, 10), -1)]]
    of = case(PAIR, {}, history, [(0, 1, set()), (1, 2, {2}), (2, 3, {3}), (3, 4, {1, 2, 3, 4})])
    convicted(of, "BlindBeforeTheBatch")


def test_a_row_known_only_from_the_log_has_its_partners_looked_up() -> None:
    history = [[(S, (2, 3), 1)], [(R, (1, 2), 1)]]
    of = case(CHAIN, {T: [(3, 9)]}, history, [(0, 1, {1}), (1, 2, set())])
    convicted(of, "KeysOfAnswersOnly", "KeysOfStartsOnly", "BlindBeforeTheBatch")


def test_one_transaction_over_two_occurrences_of_a_self_join_meets_itself_once() -> None:
    """The new rows (1,2) and (2,3) match each other, and (2,2) matches itself."""
    history = [[(R, (1, 2), 1), (R, (2, 3), 1), (R, (2, 2), 1)]]
    for reflected in (set(), {1}):
        convicted(case(SELF, {}, history, [(0, 1, reflected)]), "AlwaysOwn", "NeverOwn")


def test_one_transaction_over_three_occurrences_of_a_self_join_meets_itself_once() -> None:
    history = [[(R, (2, 2), 1), (R, (1, 2), 1)], [(R, (2, 2), -1), (R, (2, 1), 1)]]
    for reflected in (set(), {1}, {2}, {1, 2}):
        of = case(THRICE, {R: [(2, 2)]}, history, [(0, 2, reflected)])
        convicted(of, "AlwaysOwn", "NeverOwn", "OneStartForgotten")


def test_one_transaction_over_two_relations_of_a_source_meets_itself_once() -> None:
    history = [[(S, (2, 3), 1), (T, (3, 9), 1)]]
    of = case(CHAIN, {R: [(1, 2)]}, history, [(0, 1, {1})])
    convicted(of, "AlwaysOwn", "NeverOwn")


def test_the_sum_read_from_the_other_end_is_the_same_change() -> None:
    """Own changes behind the start instead of before it: the mirror image of dV(k), no mutant."""
    history = [[(R, (2, 2), 1), (R, (1, 2), 1)], [(R, (2, 2), -1), (R, (2, 1), 1)]]
    of = case(THRICE, {R: [(2, 2)]}, history, [(0, 2, {2})])
    assert of.exact(Sweeper(algebra=Mirrored))


def test_a_hot_row_has_every_one_of_its_versions() -> None:
    """Each transaction pair changes the one row and inserts a partner of it."""
    history = []
    for i in range(40):
        history += [[(S, (1, i), -1), (S, (1, i + 1), 1)], [(R, (1, i), 1)]]
    reflected = set(random.Random(7).sample(range(1, 81), 40))
    of = case(PAIR, {S: [(1, 0)]}, history, [(0, 50, reflected), (50, 80, reflected)])
    convicted(of, "AtTheBatchEnd", "BlindToReflected", "BlindToUnreflected")


def test_a_row_that_comes_and_goes_many_times_is_there_at_the_right_times() -> None:
    flicker = [(S, (1, 7), 1), (S, (1, 7), -1)]
    history = [[flicker[i // 2 % 2]] if i % 2 == 0 else [(R, (1, i), 1)] for i in range(40)]
    for reflected in (set(), set(range(1, 41)), set(range(1, 41, 3))):
        convicted(case(PAIR, {}, history, [(0, 40, reflected)]), "AtTheBatchEnd")


def test_null_join_keys_never_match() -> None:
    history = [[(R, (None, 10), 1)], [(S, (None, 20), 1)], [(R, (1, None), 1)]]
    of = case(PAIR, {R: [(None, 1)], S: [(None, 2), (1, None)]}, history, [(0, 3, {2})])
    convicted(of, "NullMatchesNull")
    assert set(of.changes()) == {3}


def test_null_is_never_asked_for() -> None:
    history = [[(R, (None, 10), 1), (R, (1, 10), 1)]]
    of = case(PAIR, {S: [(None, 20)]}, history, [(0, 1, set())])
    [ask] = sweep(PAIR.definition(), of.world, of.showings[0], SOUND).asks
    assert ask.keys == Keys(frozenset({1}))


@pytest.mark.parametrize("reflected", [{2, 4}, {1, 4}, {3}, {2, 3}, {1, 3, 5}])
def test_the_reflected_set_need_not_be_a_prefix(reflected: set[int]) -> None:
    history = [[(S, (1, 20 + i), 1)] for i in range(4)] + [[(R, (1, 10), 1)], [(R, (1, 11), 1)]]
    of = case(PAIR, {}, history, [(0, 5, reflected), (5, 6, reflected)])
    convicted(of, "PrefixUpToTheLast", "PrefixUpToTheFirstGap")


def test_filters_hold_for_log_rows_as_for_answers() -> None:
    history = [[(S, (1, 2), 1), (S, (1, 8), 1)], [(R, (1, 10), 1)]]
    of = case(FILTERED, {S: [(1, 3), (1, 9)]}, history, [(0, 2, set())])
    convicted(of, "UnfilteredLog")


def test_a_key_change_moves_a_row_to_its_new_partners() -> None:
    history = [[(R, (1, 10), -1), (R, (2, 10), 1)], [(S, (2, 6), -1), (S, (1, 6), 1)]]
    initial = {R: [(1, 10)], S: [(1, 5), (2, 6)]}
    for reflected in (set(), {1}, {2}, {1, 2}):
        of = case(PAIR, initial, history, [(0, 2, reflected)])
        convicted(of, "OneStartForgotten", "AtTheBatchEnd")


def test_duplicates_count_as_often_as_they_are_there() -> None:
    history = [[(R, (1, 1), 1), (R, (1, 1), 1)], [(S, (1, 1), 1)], [(R, (1, 1), -1)]]
    of = case(PAIR, {R: [(1, 1)], S: [(1, 1), (1, 1)]}, history, [(0, 3, {1, 3})])
    convicted(of, "AtTheBatchEnd")
    assert [sum(n for _, n in of.changes()[cn]) for cn in (1, 2, 3)] == [4, 3, -3]
