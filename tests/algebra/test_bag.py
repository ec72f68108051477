"""Bags are a commutative group."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from steadyview.algebra import Bag

counted = st.lists(st.tuples(st.sampled_from("pqr"), st.integers(-3, 3)), max_size=8)
bags = counted.map(Bag)


@given(bags, bags, bags)
def test_bags_add_like_numbers(p: Bag[str], q: Bag[str], r: Bag[str]) -> None:
    assert (p + q) + r == p + (q + r)
    assert p + q == q + p
    assert p - p == Bag()
    assert p + (q - p) == q


@given(bags, bags)
def test_equal_bags_hash_alike_whatever_made_them(p: Bag[str], q: Bag[str]) -> None:
    assert hash(p + q - q) == hash(p)


@given(counted)
def test_a_bag_holds_no_row_zero_times(pairs: list[tuple[str, int]]) -> None:
    assert all(count != 0 for _, count in Bag(pairs))


def test_null_is_one_value_and_duplicates_are_kept() -> None:
    bag = Bag.of([(None, 1), (None, 1), (1, None)])
    assert bag.count((None, 1)) == 2
    assert bag.count((None, None)) == 0
