"""Gaps: where a view has no state."""

from __future__ import annotations

import pytest

from steadyview.catalog import Catalog, Gap, Subscription, ViewSpec


@pytest.fixture
def view(catalog: Catalog) -> int:
    return catalog.views.add(ViewSpec("v", "", "strong", "incremental", "", ""), 0).id


def test_a_cn_strictly_between_two_states_lies_in_a_gap_and_no_other_does(
    catalog: Catalog, view: int
) -> None:
    catalog.gaps.begin({view: 2}, [Gap(view, 2, 5)])
    catalog.gaps.begin({view: 5}, [Gap(view, 5, 8)])
    found = {cn: catalog.gaps.around(view, cn) for cn in range(10)}
    assert {cn: g for cn, g in found.items() if g} == {
        **dict.fromkeys((3, 4), Gap(view, 2, 5)),
        **dict.fromkeys((6, 7), Gap(view, 5, 8)),
    }
    assert catalog.gaps.around(view + 1, 3) is None


def test_a_window_that_is_begun_again_leaves_nothing_of_the_one_before(
    catalog: Catalog, view: int
) -> None:
    catalog.gaps.begin({view: 2}, [Gap(view, 2, 9)])
    catalog.gaps.begin({view: 2}, [Gap(view, 2, 5)])
    assert catalog.gaps.of([view]) == [Gap(view, 2, 5)]
    catalog.gaps.begin({view: 4}, [Gap(view, 4, 9)])
    assert catalog.gaps.of([view]) == [Gap(view, 2, 4), Gap(view, 4, 9)]
    catalog.gaps.begin({view: 3}, [])
    assert catalog.gaps.of([view]) == [], "between 2 and 3 there is no cn"


def test_gaps_behind_what_can_be_read_are_forgotten_and_go_with_their_view(
    catalog: Catalog, view: int
) -> None:
    for low in (2, 5, 8):
        catalog.gaps.begin({view: low}, [Gap(view, low, low + 3)])
    catalog.gaps.forget_before(view, 6)
    assert catalog.gaps.of([view]) == [Gap(view, 5, 8), Gap(view, 8, 11)]
    assert catalog.gaps.of([view], 8) == [Gap(view, 8, 11)]
    catalog.views.drop("v")
    catalog.views.remove(view)
    assert catalog.gaps.of([view]) == []


def test_a_range_takes_in_the_gaps_within_and_says_how_many_commits_it_is(
    catalog: Catalog, view: int
) -> None:
    catalog.gaps.begin({view: 2}, [Gap(view, 2, 5)])
    wanted = Gap(view, 1, 9, 4)
    assert catalog.gaps.compress([wanted]) == [wanted]
    assert catalog.gaps.of([view]) == [Gap(view, 1, 9, 4, pending=1)]
    catalog.gaps.compressed(view, 8)
    assert catalog.gaps.around(view, 2) == Gap(view, 1, 9, 4, pending=1), "it ends later"
    catalog.gaps.compressed(view, 9)
    assert catalog.gaps.around(view, 2) == Gap(view, 1, 9, 4)
    assert catalog.gaps.beside(view, 9) == (Gap(view, 1, 9, 4), None)
    assert catalog.gaps.beside(view, 1) == (None, Gap(view, 1, 9, 4))
    assert not Gap(view, 2, 5).compressed


def test_no_reader_is_put_into_a_range_and_no_range_is_made_over_a_reader(
    catalog: Catalog, view: int
) -> None:
    readers = catalog.subscriptions

    def begun(name: str, position: int) -> Subscription | None:
        return readers.add(name, "v", view, position, changes_only=True, manual=False)

    at = begun("r", 4)
    assert at is not None
    over, before, behind = Gap(view, 2, 6, 3), Gap(view, 1, 4, 2), Gap(view, 4, 6, 2)
    assert catalog.gaps.compress([over, before]) == [before]
    assert readers.offer(at, 5)
    assert catalog.gaps.compress([behind]) == [], "5 was handed out, and may come again"
    assert readers.acknowledge(at, 5)
    later = Gap(view, 5, 9, 2)
    assert catalog.gaps.compress([behind, later]) == [later]
    for inside in (2, 3, 6, 8):
        assert begun(f"at {inside}", inside) is None
        assert not readers.offer(at, inside)
        assert not readers.pass_by(at, inside)
        assert readers.begin_again("r", view, inside) is None
    assert begun("other", 9) is not None
    assert readers.offer(at, 9)


def test_the_gaps_on_both_sides_of_a_cn(catalog: Catalog, view: int) -> None:
    for low in (2, 5, 9):
        catalog.gaps.begin({view: low}, [Gap(view, low, low + 3)])
    found = {cn: catalog.gaps.beside(view, cn) for cn in (2, 5, 8, 9, 12)}
    two, five, nine = (Gap(view, low, low + 3) for low in (2, 5, 9))
    assert found == {
        2: (None, two),
        5: (two, five),
        8: (five, nine),
        9: (five, nine),
        12: (nine, None),
    }
