"""Sources and the recorded schemas of their relations."""

from __future__ import annotations

import pytest

from steadyview.catalog import Catalog, merge_schema
from steadyview.changes import Column, Flush, Loss, RelationName, RelationSchema
from steadyview.errors import ConfigError

ORDERS = RelationName("sales", ("public", 'Or"ders'))


def relation(*columns: Column, key: tuple[str, ...] = ()) -> RelationSchema:
    return RelationSchema(ORDERS, columns, key)


ID, PRICE = Column("id", "BIGINT", "int8", True), Column("price", "DECIMAL(12,2)", "numeric")


def test_contact_is_kept_and_an_error_keeps_its_first_time(catalog: Catalog) -> None:
    catalog.sources.register("sales", "postgresql")

    def found() -> tuple[int | None, str | None, int | None]:
        state = catalog.sources.state("sales")
        return state.heard, state.error, state.since

    assert found() == (None, None, None)
    catalog.sources.contact("sales", 5, heard=True, error=None)
    catalog.sources.contact("sales", 7, heard=False, error="down")
    catalog.sources.contact("sales", 9, heard=False, error="down")
    assert found() == (5, "down", 7)
    catalog.sources.contact("sales", 11, heard=True, error="refused")
    assert found() == (11, "refused", 11)
    catalog.sources.contact("sales", 13, heard=True, error=None)
    assert found() == (13, None, None)
    catalog.sources.forget("sales")


def test_a_new_column_gets_the_next_number_wherever_the_source_shows_it() -> None:
    new = Column("new", "STRING", "text")
    merged = merge_schema(relation(ID, PRICE), relation(new, PRICE, ID, key=("id",)))
    assert merged == relation(ID, PRICE, new, key=("id",))


def test_a_dropped_column_keeps_its_number_but_is_not_looked_up_by() -> None:
    merged = merge_schema(relation(ID, PRICE), relation(PRICE))
    assert [(c.name, c.keyable) for c in merged.columns] == [("id", False), ("price", False)]


def test_a_retyped_column_stays_as_recorded() -> None:
    merged = merge_schema(
        relation(ID, PRICE), relation(Column("id", "STRING", "text", True), PRICE)
    )
    assert (merged.columns[0].type, merged.columns[0].keyable) == ("BIGINT", False)


def test_merging_again_changes_nothing() -> None:
    once = merge_schema(relation(ID, PRICE), relation(PRICE, Column("x", "INT")))
    assert merge_schema(once, relation(PRICE, Column("x", "INT"))) == once


def test_recorded_schemas_come_back_with_any_identifier(catalog: Catalog) -> None:
    assert catalog.sources.record_schema(relation(ID)) == relation(ID)
    assert catalog.sources.record_schema(relation(PRICE, ID)) == relation(ID, PRICE)
    assert catalog.sources.schemas("sales") == [relation(ID, PRICE)]
    assert catalog.sources.schemas("crm") == []


def test_registering_twice_is_once_and_another_family_is_refused(catalog: Catalog) -> None:
    catalog.commits.admit(Flush("sales", 1, 1, 2, "p"))
    catalog.sources.register("sales", "postgresql")
    assert catalog.sources.state("sales").last_seq == 2
    with pytest.raises(ConfigError, match='"sales" is of type "sqlite"'):
        catalog.sources.register("sales", "sqlite")


def test_settled_never_goes_back(catalog: Catalog) -> None:
    catalog.sources.settle("sales", 7)
    catalog.sources.settle("sales", 3)
    assert catalog.sources.state("sales").settled == 7
    assert catalog.sources.state("crm").settled == 0


def test_a_forgotten_source_starts_anew_and_its_commits_keep_their_time(catalog: Catalog) -> None:
    catalog.sources.record_schema(relation(ID))
    catalog.commits.admit(Flush("sales", 1, 1, 2, "p", (Loss(ORDERS, "x", 1, "dropped"),)))
    time = catalog.commits.time_of(2)
    catalog.sources.forget("sales")
    assert [s.name for s in catalog.sources.states()] == ["crm"]
    assert catalog.sources.losses() == []
    catalog.sources.register("sales", "sqlite")
    assert catalog.sources.schemas("sales") == []
    run = catalog.commits.admit(Flush("sales", 1, 1, 1, "q"))
    assert run is not None
    assert run.cn_from == 3
    assert catalog.commits.time_of(2) == time
    assert catalog.commits.transaction_of(2) == ("sales~2", 2)
    assert catalog.commits.seq_upto("sales", 2) == 0


def test_an_unknown_source_is_an_error(catalog: Catalog) -> None:
    with pytest.raises(KeyError):
        catalog.sources.state("none")
    with pytest.raises(KeyError):
        catalog.commits.admit(Flush("none", 1, 1, 1, "p"))
