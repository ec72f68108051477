"""Bags are a commutative group; versions are the step functions they claim to be."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from steadyview.algebra import BEGINNING, FOREVER, Bag, Step, Summary, Versions

counted = st.lists(st.tuples(st.sampled_from("pqr"), st.integers(-3, 3)), max_size=8)
bags = counted.map(Bag)
steps = st.lists(
    st.builds(Step, st.sampled_from("pqr"), st.integers(-2, 2), st.integers(1, 9)), max_size=12
)
summaries = st.builds(
    Summary.of,
    st.lists(st.one_of(st.none(), st.integers(-9, 9)), min_size=2, max_size=2),
    st.integers(-2, 2),
)


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


@given(bags, steps)
def test_versions_have_the_count_of_base_and_all_steps_up_to_the_time(
    base: Bag[str], changes: list[Step[str]]
) -> None:
    versions = Versions(base, changes)
    for time in range(11):
        past = Bag((step.row, step.count) for step in changes if step.time <= time)
        assert versions.at(time) == base + past


@given(bags, steps)
def test_versions_of_a_row_do_not_overlap_and_agree_with_its_counts(
    base: Bag[str], changes: list[Step[str]]
) -> None:
    versions = Versions(base, changes)
    for time in (BEGINNING, *range(11), FOREVER - 1):
        alive = [v for v in versions if v.start <= time < v.end]
        assert len({v.row for v in alive}) == len(alive)
        assert Bag((v.row, v.count) for v in alive) == versions.at(time)


def test_a_hot_row_has_one_version_more_than_changes() -> None:
    changes = [Step("hot", 1, time) for time in range(1, 1001)]
    assert len(list(Versions(Bag.of(["hot"]), changes))) == 1001


def test_steps_that_cancel_at_one_time_leave_no_version() -> None:
    assert not list(Versions(Bag(), [Step("x", 1, 4), Step("x", -1, 4)]))


@given(summaries, summaries)
def test_summaries_add_up_in_any_order(p: Summary, q: Summary) -> None:
    assert p + q == q + p


def test_a_summary_with_zero_counts_and_a_sum_is_something() -> None:
    change = Summary.of([7], 1) + Summary.of([5], -1)
    assert (change.count, change.nonnull) == (0, (0,))
    assert not change.is_nothing
