"""Positions of readers: what is kept for them, and what moves them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from steadyview.catalog import Catalog, Published, Subscription, ViewSpec
from steadyview.catalog.subscriptions import DONE, DUE, OFFERED
from steadyview.changes import Flush


@pytest.fixture
def view(catalog: Catalog) -> int:
    """A view that shows cn 20."""
    catalog.commits.admit(Flush("crm", 1, 1, 20, "20"))
    made = catalog.views.add(ViewSpec("v", "", "complete", "incremental", "", ""), 0).id
    catalog.views.publish([Published(made, 20, 0, 0, 0)])
    return made


def begun(catalog: Catalog, view: int, cn: int, name: str = "r", **how: bool) -> Subscription:
    how = {"changes_only": False, "manual": False, **how}
    made = catalog.subscriptions.add(name, "v", view, cn, **how)
    assert made is not None
    return made


def test_a_reader_is_given_a_state_first_and_then_moves_on_as_far_as_was_handed_out(
    catalog: Catalog, view: int
) -> None:
    known, all_ = begun(catalog, view, 5), catalog.subscriptions
    assert (known.position, known.state) == (5, DUE)
    assert not all_.acknowledge(known, 5), "nothing was handed out"
    assert all_.offer(known, 5)
    assert all_.find("r") == replace(known, state=OFFERED)
    assert not all_.pass_by(known, 9), "the state is not received yet"
    assert all_.acknowledge(known, 5)
    assert all_.offer(known, 9)
    assert not all_.acknowledge(known, 10)
    assert not all_.pass_by(known, 12), "what was handed out is not received yet"
    assert all_.acknowledge(known, 9)
    assert not all_.acknowledge(known, 8), "a position never goes back"
    assert all_.pass_by(known, 12)
    found = all_.find("r")
    assert found is not None
    assert (found.position, found.offered, found.state) == (12, 12, DONE)


def test_who_began_before_a_reset_moves_nothing_any_more(catalog: Catalog, view: int) -> None:
    known, all_ = begun(catalog, view, 5), catalog.subscriptions
    all_.offer(known, 9)
    again = all_.begin_again("r", view, 7)
    assert again is not None
    assert (again.epoch, again.position, again.offered, again.state) == (1, 7, 7, DUE)
    assert not all_.offer(known, 9)
    assert not all_.acknowledge(known, 7)
    assert not all_.pass_by(known, 9)
    assert all_.find("r") == again
    assert all_.drop("r")
    assert not all_.drop("r")
    assert not all_.offer(again, 9)


def test_a_name_is_used_once(catalog: Catalog, view: int) -> None:
    begun(catalog, view, 5)
    with pytest.raises(ValueError, match='subscription "r"'):
        begun(catalog, view, 6)


def test_no_state_is_forgotten_that_a_reader_is_still_to_be_given(
    catalog: Catalog, view: int
) -> None:
    known = begun(catalog, view, 5)
    begun(catalog, view, 3, "only", changes_only=True)
    catalog.views.forget_before(view, 9)
    assert catalog.views.row(view).oldest_cn == 5
    catalog.subscriptions.offer(known, 5)
    catalog.views.forget_before(view, 9)
    assert catalog.views.row(view).oldest_cn == 5, "it may have been handed out to nobody"
    catalog.subscriptions.acknowledge(known, 5)
    catalog.views.forget_before(view, 9)
    assert catalog.views.row(view).oldest_cn == 9
    assert catalog.subscriptions.add("late", "v", view, 8, changes_only=True, manual=False) is None
    assert catalog.subscriptions.begin_again("r", view, 8) is None
    assert sorted(catalog.subscriptions.held(view)) == [3, 5]


def test_nothing_is_held_for_readers_of_a_view_that_is_no_more(catalog: Catalog, view: int) -> None:
    begun(catalog, view, 5)
    assert catalog.subscriptions.held() == [5]
    catalog.views.drop("v")
    assert catalog.subscriptions.held() == []
    assert [s.name for s in catalog.subscriptions.all()] == ["r"]


def test_a_reader_goes_on_with_a_view_that_is_renamed(catalog: Catalog, view: int) -> None:
    known = begun(catalog, view, 5)
    catalog.views.rename("v", "w", {})
    assert catalog.subscriptions.find("r") == replace(known, of="w")
