"""Every case of the compensation, forced; each test fails when its part is taken out."""

from __future__ import annotations

import random
from functools import partial

import pytest

from steadyview.algebra import Bag
from tests.plans.cases import Case, case, relation
from tests.plans.wrong_readings import READINGS

R, S, T = relation("s1.r", "xy"), relation("s2.s", "xy"), relation("s2.t", "xy")
pair = partial(case, "SELECT r.y, s.y AS z FROM s1.r AS r JOIN s2.s AS s ON r.x = s.x", [R, S])
chain = partial(
    case,
    "SELECT r.x, t.y FROM s1.r AS r JOIN s2.s AS s ON r.y = s.x JOIN s2.t AS t ON s.y = t.x",
    [R, S, T],
)
self_joined = partial(case, "SELECT a.x, b.y FROM s1.r AS a JOIN s1.r AS b ON a.y = b.x", [R])
thrice = partial(
    case,
    "SELECT a.x, c.y FROM s1.r AS a JOIN s1.r AS b ON a.y = b.x JOIN s1.r AS c ON b.y = c.x",
    [R],
)
filtered = partial(
    case, "SELECT r.y, s.y AS z FROM s1.r AS r JOIN s2.s AS s ON r.x = s.x WHERE s.y > 5", [R, S]
)
summed = partial(
    case,
    "SELECT s.y, COUNT(*) AS n, SUM(r.y) AS t "
    "FROM s1.r AS r JOIN s2.s AS s ON r.x = s.x GROUP BY s.y",
    [R, S],
)
of_all = partial(case, "SELECT COUNT(*) AS n, SUM(r.y) AS t FROM s1.r AS r", [R])


def convicted(of: Case, *readings: str) -> None:
    """The plan is exact here, and each of the wrong readings is not."""
    assert of.exact()
    for reading in readings:
        assert not of.exact(READINGS[reading]), f"{reading} goes unnoticed"


def test_a_reflected_transaction_beyond_the_batch_is_taken_back() -> None:
    history = [[(R, (1, 10), 1)], [(S, (1, 20), 1)]]
    of = pair({S: [(1, 30)]}, history, [(0, 1, {2}), (1, 2, {1, 2})])
    convicted(of, "blind_beyond_the_batch", "blind_to_reflected", "uncompensated")


def test_a_reflected_deletion_beyond_the_batch_is_put_back() -> None:
    history = [[(R, (1, 10), 1)], [(S, (1, 20), -1)]]
    of = pair({S: [(1, 20)]}, history, [(0, 1, {1, 2}), (1, 2, {1, 2})])
    convicted(of, "blind_beyond_the_batch", "blind_to_reflected", "uncompensated")


def test_a_transaction_of_an_earlier_batch_that_no_answer_shows_yet_is_added() -> None:
    history = [[(S, (1, 20), 1)], [(R, (1, 10), 1)]]
    of = pair({}, history, [(0, 1, {1}), (1, 2, set())])
    convicted(of, "blind_before_the_batch", "blind_to_unreflected", "uncompensated")


def test_a_deletion_of_an_earlier_batch_that_no_answer_shows_yet_is_made() -> None:
    history = [[(S, (1, 20), -1)], [(R, (1, 10), 1)]]
    of = pair({S: [(1, 20)]}, history, [(0, 1, {1}), (1, 2, {2})])
    convicted(of, "blind_before_the_batch", "blind_to_unreflected", "uncompensated")


def test_an_earlier_transaction_stays_hidden_for_several_batches() -> None:
    history = [[(S, (1, 20), 1)], [(R, (1, 10), 1)], [(R, (1, 11), 1)], [(R, (1, 10), -1)]]
    of = pair({}, history, [(0, 1, set()), (1, 2, {2}), (2, 3, {3}), (3, 4, {1, 2, 3, 4})])
    convicted(of, "blind_before_the_batch")


def test_a_row_known_only_from_the_log_has_its_partners_looked_up() -> None:
    history = [[(S, (2, 3), 1)], [(R, (1, 2), 1)]]
    of = chain({T: [(3, 9)]}, history, [(0, 1, {1}), (1, 2, set())])
    convicted(of, "keys_of_answers_only", "keys_of_changes_only", "blind_before_the_batch")


def test_a_row_that_an_answer_brings_has_its_partners_looked_up() -> None:
    of = chain({S: [(2, 3)], T: [(3, 9)]}, [[(R, (1, 2), 1)]], [(0, 1, {1})])
    convicted(of, "keys_of_changes_only")


def test_one_transaction_over_two_occurrences_of_a_self_join_meets_itself_once() -> None:
    """The new rows (1,2) and (2,3) match each other, and (2,2) matches itself."""
    history = [[(R, (1, 2), 1), (R, (2, 3), 1), (R, (2, 2), 1)]]
    for reflected in (set(), {1}):
        assert self_joined({}, history, [(0, 1, reflected)]).exact()


def test_one_transaction_over_three_occurrences_of_a_self_join_meets_itself_once() -> None:
    history = [[(R, (2, 2), 1), (R, (1, 2), 1)], [(R, (2, 2), -1), (R, (2, 1), 1)]]
    for reflected in (set(), {1}, {2}, {1, 2}):
        of = thrice({R: [(2, 2)]}, history, [(0, 2, reflected)])
        convicted(of, "at_the_batch_end", "met_at_any_time")


def test_one_transaction_over_two_relations_of_a_source_meets_itself_once() -> None:
    history = [[(S, (2, 3), 1), (T, (3, 9), 1)]]
    for reflected in (set(), {1}):
        assert chain({R: [(1, 2)]}, history, [(0, 1, reflected)]).exact()


def test_a_hot_row_has_every_one_of_its_versions() -> None:
    """Each transaction pair changes the one row and inserts a partner of it."""
    history = []
    for i in range(40):
        history += [[(S, (1, i), -1), (S, (1, i + 1), 1)], [(R, (1, i), 1)]]
    reflected = set(random.Random(7).sample(range(1, 81), 40))
    reflected = {cn for cn in reflected if cn % 2 == 0} | {cn for cn in range(1, 62) if cn % 2}
    of = pair({S: [(1, 0)]}, history, [(0, 50, reflected), (50, 80, reflected)])
    convicted(of, "at_the_batch_end", "blind_to_reflected", "met_at_any_time")


def test_a_row_that_comes_and_goes_many_times_is_there_at_the_right_times() -> None:
    flicker = [(S, (1, 7), 1), (S, (1, 7), -1)]
    history = [[flicker[i // 2 % 2]] if i % 2 == 0 else [(R, (1, i), 1)] for i in range(40)]
    for reflected in (set(), set(range(1, 41)), set(range(1, 23))):
        of = pair({}, history, [(0, 40, reflected)])
        convicted(of, "at_the_batch_end", "met_at_any_time")


def test_null_join_keys_never_match() -> None:
    history = [[(R, (None, 10), 1)], [(S, (None, 20), 1)], [(R, (1, None), 1)]]
    of = pair({R: [(None, 1)], S: [(None, 2), (1, None)]}, history, [(0, 3, {2})])
    convicted(of, "null_matches_null")
    assert set(of.changes()) == {3}


def test_null_is_never_asked_for() -> None:
    history = [[(R, (None, 10), 1), (R, (1, 10), 1)]]
    of = pair({S: [(None, 20)]}, history, [(0, 1, set())])
    [[[wanted]]] = [batch.rounds for batch in of.batches()]
    assert wanted.keys == {1}


@pytest.mark.parametrize("reflected", [{2, 4}, {1, 4}, {3}, {2, 3}, {1, 3, 5}])
def test_the_reflected_set_need_not_be_a_prefix(reflected: set[int]) -> None:
    history = [[(S, (1, 20 + i), 1)] for i in range(4)] + [[(R, (1, 10), 1)], [(R, (1, 11), 1)]]
    for of in (pair, summed):
        made = of({}, history, [(0, 5, reflected), (5, 6, reflected)])
        convicted(made, "prefix_up_to_the_last", "prefix_up_to_the_first_gap")


def test_filters_hold_for_log_rows_as_for_answers() -> None:
    history = [[(S, (1, 2), 1), (S, (1, 8), 1)], [(R, (1, 10), 1)]]
    for reflected in (set(), {1}):
        assert filtered({S: [(1, 3), (1, 9)]}, history, [(0, 2, reflected)]).exact()


def test_a_key_change_moves_a_row_to_its_new_partners() -> None:
    history = [[(R, (1, 10), -1), (R, (2, 10), 1)], [(S, (2, 6), -1), (S, (1, 6), 1)]]
    initial = {R: [(1, 10)], S: [(1, 5), (2, 6)]}
    for reflected in (set(), {1}, {2}, {1, 2}):
        for of in (pair, summed):
            convicted(of(initial, history, [(0, 2, reflected)]), "at_the_batch_end")


def test_duplicates_count_as_often_as_they_are_there() -> None:
    history = [[(R, (1, 1), 1), (R, (1, 1), 1)], [(S, (1, 1), 1)], [(R, (1, 1), -1)]]
    of = pair({R: [(1, 1)], S: [(1, 1), (1, 1)]}, history, [(0, 3, {1, 3})])
    convicted(of, "at_the_batch_end")
    assert [sum(n for _, n in of.changes()[cn]) for cn in (1, 2, 3)] == [4, 3, -3]


def test_an_aggregate_of_nothing_is_one_row() -> None:
    of = of_all({R: [(1, 5)]}, [[(R, (1, 5), -1)], [(R, (1, None), 1)]], [(0, 1, {1}), (1, 2, {2})])
    assert of.exact()
    assert of.changes()[1] == Bag([((1, 5), -1), ((0, None), 1)])
    assert of.changes()[2] == Bag([((0, None), -1), ((1, None), 1)])


def test_null_keys_are_one_group_that_is_gone_with_its_last_row() -> None:
    history = [[(S, (1, None), 1)], [(S, (1, None), 1)], [(S, (1, None), -2)]]
    of = summed({R: [(1, 4)]}, history, [(0, 1, {1}), (1, 3, {1, 2})])
    assert of.exact()
    assert of.changes()[2] == Bag([((None, 1, 4), -1), ((None, 2, 8), 1)])
    assert of.changes()[3] == Bag([((None, 2, 8), -1)])


def test_a_sum_changes_where_the_counts_stay() -> None:
    of = of_all({R: [(1, 5)]}, [[(R, (1, 5), -1), (R, (1, 7), 1)]], [(0, 1, {1})])
    assert of.changes() == {1: Bag([((1, 5), -1), ((1, 7), 1)])}


def test_a_change_that_leaves_counts_and_sums_is_none() -> None:
    of = of_all({R: [(1, 5)]}, [[(R, (1, 5), -1), (R, (2, 5), 1)]], [(0, 1, {1})])
    assert of.exact()
    assert of.changes() == {}
