"""Builds and their spans are durable facts, and go when what they rest on is lost."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from steadyview.catalog import Catalog, StoredSpan
from steadyview.changes import Loss, RelationName
from tests.catalog.clocks import SetClock

ORDERS = RelationName("sales", ("public", "orders"))
GOODS = RelationName("stock", ("goods",))
SPANS = [
    StoredSpan(ORDERS, 0, (0, 2), 0, None, 10, 5),
    StoredSpan(ORDERS, 1, (0, 2), 0, 10, None, 5),
]


@pytest.fixture
def begun(catalog: Catalog) -> Catalog:
    catalog.builds.begin(0, [3, 4], [ORDERS, GOODS], SPANS)
    return catalog


def test_a_build_is_what_was_begun_and_a_span_stays_stored(begun: Catalog) -> None:
    done = replace(SPANS[1], rows=7, size=99, digest=5)
    (build,) = begun.builds.all()
    assert (build.cn, build.views, build.relations) == (0, {3, 4}, {ORDERS, GOODS})
    assert build.spans == tuple(SPANS)
    assert begun.builds.stored(build.id, done)
    assert begun.builds.all()[0].spans == (SPANS[0], done)


def test_a_build_is_over_after_the_last_of_its_views(begun: Catalog) -> None:
    (build,) = begun.builds.all()
    begun.builds.end(build.id, [3])
    assert begun.builds.all()[0].views == {4}
    begun.builds.end(build.id, [4])
    assert begun.builds.all() == []
    assert not begun.builds.stored(build.id, SPANS[0])
    begun.builds.begin(0, [5], [GOODS], [])
    assert begun.builds.all()[0].id != build.id, "files of the one before are never mistaken"


@pytest.mark.parametrize(("lost", "left"), [([GOODS], 0), ([RelationName("stock", ("x",))], 1)])
def test_a_loss_takes_the_builds_that_read_the_relation(
    begun: Catalog, lost: list[RelationName], left: int
) -> None:
    begun.views.lose({}, {}, [Loss(r, None, 0, "gone") for r in lost])
    assert len(begun.builds.all()) == left


@pytest.mark.parametrize(("source", "left"), [("stock", 0), ("other", 1)])
def test_a_forgotten_source_takes_the_builds_that_read_it(
    begun: Catalog, source: str, left: int
) -> None:
    begun.sources.forget(source)
    assert len(begun.builds.all()) == left


def test_a_catalog_of_format_2_is_brought_up_to_date(tmp_path: Path) -> None:
    with Catalog.create(tmp_path, SetClock()) as old, old._database.write() as connection:
        connection.execute("DROP TABLE spans")
        connection.execute("DROP TABLE builds")
        connection.execute("DROP TABLE file_changes")
        connection.execute("DROP TABLE gaps")
        connection.execute("DROP TABLE refreshes")
        connection.execute("DROP TABLE subscriptions")
        connection.execute("DROP TABLE stream_leases")
        connection.execute("UPDATE warehouse SET format = 2")
    with Catalog.create(tmp_path, SetClock()) as catalog:
        assert catalog.builds.all() == []
