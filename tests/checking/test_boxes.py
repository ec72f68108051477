"""Vectors and boxes of them, against trying every vector."""

from __future__ import annotations

import random
from itertools import product

import pytest

from steadyview.checking import boxes
from steadyview.checking.boxes import Boxes
from steadyview.checking.case import Case
from steadyview.checking.commit_order import CommitOrder, reaches
from tests.checking.small_histories import COUNTING, VIEWS, SmallHistory


def random_order(choose):
    sources = choose.randint(1, 3)
    sizes = [min(sources, choose.choice((0, 1, 1, 1, 2, 3))) for _ in range(choose.randint(0, 7))]
    touched = [tuple(sorted(choose.sample(range(sources), size))) for size in sizes]
    return CommitOrder(touched, sources)


def all_vectors(order):
    return list(product(*(range(most + 1) for most in order.everything)))


def is_whole(order, vector):
    """Whether every transaction is seen at all of its sources or at none."""
    seen: dict[int, set[bool]] = {}
    for commits, upto in zip(order.commits, vector, strict=True):
        for place, number in enumerate(commits):
            seen.setdefault(number, set()).add(place < upto)
    return all(len(at) == 1 for at in seen.values())


def test_oracle_whole_vectors_are_those_that_steps_reach():
    for seed in range(300):
        order = random_order(random.Random(seed))
        reached, waiting = set(), [order.nothing]
        while waiting:
            vector = waiting.pop()
            reached.add(vector)
            waiting += [after for _, after in order.steps(vector)]
        assert reached == {v for v in all_vectors(order) if is_whole(order, v)}


def test_oracle_the_whole_vectors_next_to_any_vector():
    for seed in range(300):
        order = random_order(random.Random(seed))
        whole = [v for v in all_vectors(order) if is_whole(order, v)]
        for vector in all_vectors(order):
            above = [v for v in whole if reaches(v, vector)]
            below = [v for v in whole if reaches(vector, v)]
            assert [v for v in above if all(reaches(u, v) for u in above)] == [
                order.lowest_whole(vector)
            ]
            assert [v for v in below if all(reaches(v, u) for u in below)] == [
                order.highest_whole(vector)
            ]


def test_a_vector_that_is_not_whole_names_the_transaction_and_where_it_is_seen():
    order = CommitOrder([(0,), (0, 1, 2), (1,)], 3)
    assert order.half_seen((2, 0, 1)) == (1, [0, 2], [1])
    with pytest.raises(ValueError, match="is whole"):
        order.half_seen((1, 0, 0))


@pytest.mark.parametrize("small", [1, 32])
@pytest.mark.parametrize("views", [VIEWS, COUNTING], ids=["rows", "counts"])
def test_oracle_the_lowest_and_the_highest_vectors_of_a_box_are_found(monkeypatch, small, views):
    monkeypatch.setattr(boxes, "_SMALL", small)
    for seed in range(400):
        case = Case(SmallHistory(seed, transactions=(3, 6), views=views).history)
        choose = random.Random(seed)
        corners = [choose.choice(all_vectors(case.order)) for _ in range(3)]
        low, high = tuple(map(min, *corners)), tuple(map(max, *corners))
        wanted = case.views.at(choose.choice(all_vectors(case.order)))
        for whole in (False, True):
            check_box(case, low, high, wanted, whole)


def check_box(case, low, high, wanted, whole):
    showing = [
        v
        for v in all_vectors(case.order)
        if reaches(v, low) and reaches(high, v) and case.views.at(v) == wanted
        if not whole or is_whole(case.order, v)
    ]
    search = Boxes(case, wanted, whole=whole)
    lowest, highest = set(search.lowest(low, high)), set(search.highest(low, high))
    assert lowest | highest <= set(showing)
    assert lowest >= {v for v in showing if not any(u != v and reaches(v, u) for u in showing)}
    assert highest >= {v for v in showing if not any(u != v and reaches(u, v) for u in showing)}


def test_oracle_the_nearest_vector_is_found_wherever_it_is(monkeypatch):
    monkeypatch.setattr(boxes, "_DISTANCES", (1, 2))
    for seed in range(200):
        case = Case(SmallHistory(seed, transactions=(3, 6)).history)
        choose = random.Random(seed)
        begin = choose.choice(all_vectors(case.order))
        wanted = case.views.at(choose.choice(all_vectors(case.order)))
        search = Boxes(case, wanted, whole=False)
        assert case.views.at(search.near(begin, also_below=True)) == wanted
        above = search.near(begin)
        showing = [v for v in all_vectors(case.order) if case.views.at(v) == wanted]
        assert (above is not None) == any(reaches(v, begin) for v in showing)
        assert above is None or (above in showing and reaches(above, begin))
