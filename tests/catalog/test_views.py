"""Views: states, publishing, what can be read."""

from __future__ import annotations

import pytest

from steadyview.catalog import (
    Base,
    BatchRecord,
    Catalog,
    Deferred,
    FileChange,
    Published,
    ViewSpec,
)
from steadyview.changes import Flush
from tests.catalog.clocks import SetClock


def spec(name: str, kind: str = "incremental") -> ViewSpec:
    return ViewSpec(name, "SELECT 1", "complete", kind, "{}", "f1")


A, B = 1, 2
"""Ids."""


@pytest.fixture
def views(catalog: Catalog) -> Catalog:
    catalog.commits.admit(Flush("sales", 1, 1, 10, "p"))
    catalog.views.add(spec("a"), 2)
    catalog.views.add(spec("b"), 2)
    return catalog


def test_a_view_is_building_until_something_is_published(views: Catalog) -> None:
    row = views.views.get("a")
    assert (row.state, row.start_cn, row.oldest_cn, row.cn) == ("building", 2, 2, None)
    views.views.started(A, 5)
    views.views.publish([Published(A, 5, 0, 5, 1)])
    row = views.views.get("a")
    assert (row.state, row.start_cn, row.cn, row.base_cn) == ("active", 5, 5, 5)
    assert views.views.get("b").state == "building"


def test_views_are_published_together_or_not_at_all(views: Catalog) -> None:
    views.views.publish([Published(A, 3, 1, 2, 1), Published(B, 3, 1, 2, 1)])
    with pytest.raises(ValueError, match='"b" cannot go from cn 3'):
        views.views.publish([Published(A, 4, 2, 2, 1), Published(B, 2, 2, 2, 1)])
    with pytest.raises(KeyError):
        views.views.publish([Published(A, 4, 2, 2, 1), Published(9, 4, 2, 2, 1)])
    assert [v.cn for v in views.views.all()] == [3, 3]


def test_only_admitted_commits_can_be_published(views: Catalog) -> None:
    with pytest.raises(ValueError, match="last 10"):
        views.views.publish([Published(A, 11, 1, 2, 1)])


def test_a_base_never_passes_the_published_commit(views: Catalog) -> None:
    with pytest.raises(ValueError, match='"a"'):
        views.views.publish([Published(A, 4, 1, 5, 1)])


def test_publishing_again_changes_nothing(views: Catalog) -> None:
    update = [Published(A, 4, 1, 4, 3)]
    views.views.publish(update)
    before = views.views.all()
    views.views.publish(update)
    assert views.views.all() == before
    assert views.views.bases(A) == [Base(4, 3)]


def test_every_base_stays_addressable_until_it_is_vacuumed(views: Catalog) -> None:
    for cn, version in ((3, 1), (5, 2), (9, 3)):
        views.views.publish([Published(A, cn, 0, cn, version)])
    assert views.views.bases(A) == [Base(3, 1), Base(5, 2), Base(9, 3)]
    views.views.invalidate_bases(A, 2)
    assert views.views.bases(A) == [Base(5, 2), Base(9, 3)]
    views.views.invalidate_bases(A, 100)
    assert views.views.bases(A) == [Base(9, 3)]


def test_the_oldest_readable_commit_only_rises_and_never_passes_the_view(views: Catalog) -> None:
    views.views.publish([Published(A, 8, 0, 2, 1)])
    views.views.forget_before(A, 6)
    views.views.forget_before(A, 4)
    assert views.views.get("a").oldest_cn == 6
    views.views.forget_before(A, 100)
    assert views.views.get("a").oldest_cn == 8


def test_a_stopped_view_says_why_and_where_until_it_is_replaced(views: Catalog) -> None:
    views.views.publish([Published(A, 4, 1, 2, 1)])
    views.views.stop("a", "division by zero", 5)
    row = views.views.get("a")
    assert (row.state, row.error, row.error_cn, row.cn) == ("stopped", "division by zero", 5, 4)
    views.views.replace("a")
    views.views.replace("a")
    (beside,) = views.views.replacements()
    assert (beside.name, beside.state, views.views.get("a")) == ("a", "building", row)
    with pytest.raises(KeyError):
        views.views.swap([beside.id])
    assert views.views.get("a") == row, "nothing has been built yet"
    views.views.started(beside.id, 8)
    views.views.publish([Published(beside.id, 9, 0, 8, 1)])
    assert (views.views.get("a"), views.views.row(beside.id).state) == (row, "building")
    views.views.swap([beside.id])
    assert views.views.get("a").id == beside.id
    assert (views.views.get("a").state, views.views.get("a").start_cn) == ("active", 8)
    assert [v.id for v in views.views.dropped()] == [row.id]
    views.views.stop("b", "no", 3)
    views.views.build_again("b")
    assert (views.views.get("b").state, views.views.get("b").error) == ("building", None)


def test_a_refused_view_carries_its_reason(views: Catalog) -> None:
    views.views.refuse("a", "outer-join", "outer joins are not maintained")
    row = views.views.get("a")
    assert (row.state, row.code) == ("refused", "outer-join")


def test_a_dropped_name_is_free_and_the_new_view_is_another_one(views: Catalog) -> None:
    views.views.publish([Published(A, 4, 1, 2, 1)])
    old = views.views.get("a")
    with pytest.raises(ValueError, match='"a" cannot be added'):
        views.views.add(spec("a"), 4)
    views.views.drop("a")
    assert views.views.find("a") is None
    assert views.views.add(spec("a", "recomputed"), 6).id != old.id
    assert [v.id for v in views.views.dropped()] == [old.id]
    views.views.remove(old.id)
    views.views.remove(views.views.get("a").id)
    assert views.views.dropped() == []
    assert views.views.get("a").kind == "recomputed"


def test_what_was_built_beside_takes_its_places_all_at_once(views: Catalog) -> None:
    views.views.publish([Published(A, 4, 1, 2, 1), Published(B, 4, 1, 2, 1)])
    beside = [views.views.add(spec(name), 4, beside=True).id for name in ("a", "b")]
    views.views.publish([Published(beside[0], 5, 0, 5, 1)])
    with pytest.raises(KeyError):
        views.views.swap(beside)
    assert [row.id for row in views.views.all()] == [A, B], "b has nothing to show yet"
    views.views.publish([Published(beside[1], 5, 0, 5, 1)])
    views.views.swap(beside)
    assert [(row.id, row.state) for row in views.views.all()] == [(i, "active") for i in beside]
    assert views.views.replacements() == []
    views.views.give_up(beside)
    assert [row.id for row in views.views.all()] == beside, "they are no replacements any more"


def test_a_paused_view_goes_on_as_it_was(views: Catalog, clock: SetClock) -> None:
    views.views.publish([Published(A, 4, 1, 2, 1), Published(B, 4, 1, 2, 1)])
    views.views.not_taken("a", "UNKNOWN_COLUMN", "no such column")
    views.views.stop("b", "division by zero", 5)
    clock.now = 77
    for name, state in (("a", "paused"), ("b", "stopped")):
        views.views.pause(name)
        row = views.views.get(name)
        assert (row.state, row.paused, row.refusal) == (state, 77, None)
        views.views.resume(name)
    assert [(row.state, row.paused) for row in views.views.all()] == [
        ("active", None),
        ("stopped", None),
    ]


def test_a_renamed_view_is_the_same_one_and_its_file_is_not_forgotten(views: Catalog) -> None:
    views.views.add(spec("a"), 4, beside=True)
    changes = [FileChange("views/c.sql", None, "SELECT 1"), FileChange("views/a.sql", "12", None)]
    views.views.rename("a", "c", {B: ("SELECT 2", '{"inputs": {"c": 1}}')}, changes)
    assert (views.views.get("c").id, views.views.get("c").made_as) == (A, "a")
    assert [row.name for row in views.views.replacements()] == ["c"]
    reader = views.views.get("b")
    assert (reader.sql, reader.definition) == ("SELECT 2", '{"inputs": {"c": 1}}')
    assert views.files.all() == changes
    views.files.made("views/c.sql")
    views.views.drop_all(["c", "none"], [FileChange("views/c.sql", "34", None)])
    assert [row.name for row in views.views.all()] == ["b"]
    assert [c.path for c in views.files.all()] == ["views/a.sql", "views/c.sql"]


def test_batches_come_newest_first(catalog: Catalog) -> None:
    batches = [BatchRecord(i, i + 1, 1, 4, 100, 10 * i, 10 * i + 5) for i in range(5)]
    assert [catalog.batches.record(b) for b in batches] == [1, 2, 3, 4, 5]
    assert catalog.batches.recent(2) == [batches[4], batches[3]]


def test_what_is_propagated_and_not_shown_is_published_with_the_rest(views: Catalog) -> None:
    views.views.publish([Published(A, 3, 1, 2, 1)])
    assert views.refreshes.all() == {}
    views.views.publish([Published(A, 3, 2, 2, 1, propagated=5)])
    views.views.publish([Published(A, 3, 2, 2, 1, propagated=4)])
    views.refreshes.ticked([A], 100)
    views.refreshes.ticked([A], 50)
    assert views.refreshes.all() == {A: Deferred(A, 5, 100)}
    assert (views.views.get("a").cn, views.views.get("a").delta_version) == (3, 2)
    views.views.drop("a")
    views.views.remove(A)
    assert views.refreshes.all() == {}
