"""What Spark says to views that are planned: the hints hold, and the words are the user's own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from steadyview.catalog import Catalog
from steadyview.errors import ViewRefused
from steadyview.runtime.checks import checked
from steadyview.runtime.clock import SystemClock
from steadyview.runtime.planning import Planned, Refused, plan_views
from steadyview.runtime.project import ViewFile
from steadyview.runtime.spark_types import SparkTypes
from steadyview.views.reasons import NOT_CURED
from tests.views.shop import HERE, OTHER_VIEWS, RELATIONS, UNSUPPORTED, define

RECOMPUTED = "CREATE MATERIALIZED VIEW v TBLPROPERTIES ('steadyview.fallback' = 'recompute') AS "
WORD = "have it recomputed"


@pytest.fixture
def types(spark: SparkSession, tmp_path: Path) -> Iterator[SparkTypes]:
    catalog = Catalog.create(tmp_path, SystemClock())
    yield SparkTypes(lambda: spark, catalog.typed)
    catalog.close()


def cases() -> list[str]:
    """Every refused SELECT of the tests of views."""
    texts = [path.read_text(encoding="utf-8") for path in sorted((HERE / "refused").glob("*.sql"))]
    split = [case for text in texts for case in text.split("\n----\n")]
    return [case for case in split if not case.lstrip("/*!").startswith("CREATE")]


def refusal_of(text: str) -> ViewRefused:
    with pytest.raises(ViewRefused) as refused:
        define(text)
    return refused.value


def planned(types: SparkTypes, text: str) -> Planned | Refused:
    others = dict.fromkeys(OTHER_VIEWS, "SELECT id FROM sales.orders")
    return next(p for p in plans_of(types, {"v": text, **others}) if p.name == "v")


def plans_of(types: SparkTypes, texts: dict[str, str]) -> list[Planned | Refused]:
    files = [ViewFile(name, Path(f"{name}.sql"), text) for name, text in texts.items()]
    return plan_views(types, files, RELATIONS, UNSUPPORTED)


def test_every_view_that_is_told_so_can_be_recomputed(types: SparkTypes) -> None:
    told = [case for case in cases() if WORD in (refusal_of(case).hint or "")]
    assert len(told) > 30
    plans = [planned(types, RECOMPUTED + case) for case in told]
    assert [str(p.refusal) for p in plans if isinstance(p, Refused)] == []


def test_a_recomputed_view_is_not_told_to_be_recomputed(types: SparkTypes) -> None:
    plans = [planned(types, RECOMPUTED + case) for case in cases()]
    assert not [p for p in plans if p.refusal and WORD in (p.refusal.hint or "")]


def test_what_recomputing_does_not_cure_stays_refused_with_its_own_reason(
    types: SparkTypes,
) -> None:
    codes = {refusal_of(case).code: case for case in cases()}
    # tests of their own: test_levels_of_views.py, tests/views/refused/serve_key.sql
    own = {"LEVEL", "SERVE_KEY"}
    plans = {code: planned(types, RECOMPUTED + codes[code]) for code in NOT_CURED - own}
    assert {checked(p).verdict for p in plans.values()} == {"refused"}
    assert all(p.refusal and p.refusal.code == code for code, p in plans.items())


def test_a_misspelt_column_of_a_recomputed_view_is_told_with_the_nearest(
    types: SparkTypes,
) -> None:
    found = checked(planned(types, RECOMPUTED + "SELECT custmer_id FROM sales.orders"))
    assert (found.code, found.hint) == ("UNKNOWN_COLUMN", 'did you mean "customer_id"?')


def test_spark_speaks_of_the_columns_as_the_user_wrote_them(types: SparkTypes) -> None:
    found = checked(planned(types, "SELECT o.placed + o.customer_id * 2 AS x FROM sales.orders o"))
    assert (found.verdict, found.code) == ("refused", "TYPE_ERROR")
    assert "date_add(placed, (customer_id * 2))" in str(found.message)
    assert found.hint


def test_a_text_spelled_like_a_column_is_warned_of(types: SparkTypes) -> None:
    text = 'SELECT "id" AS a, \'note\' AS b, "x" AS c FROM sales.orders WHERE "Note" = note'
    warnings = checked(planned(types, text)).warnings
    assert [w.partition(" is a text")[0] for w in warnings] == [
        'line 1, column 8: "id"',
        'line 1, column 65: "Note"',
    ]
    median = RECOMPUTED + 'SELECT MEDIAN(id) AS m FROM sales.orders WHERE "id" = note'
    assert checked(planned(types, median)).warnings


def test_a_view_is_known_by_the_name_in_its_file(types: SparkTypes) -> None:
    named = "CREATE MATERIALIZED VIEW totals AS SELECT MAX(id) AS m FROM sales.orders"
    plans = plans_of(types, {"w": "SELECT m FROM totals", "v": named})
    shown = [p for p in plans if isinstance(p, Planned) and not p.hidden]
    assert [p.name for p in shown] == ["totals", "w"], "a view stands behind those it reads"
    assert shown[1].parents == ("totals",)


def test_a_cycle_is_refused_and_shown_as_a_path(types: SparkTypes) -> None:
    texts = {"a": "SELECT id FROM b", "b": "SELECT id FROM c", "c": "SELECT id FROM a"}
    plans = {p.name: p for p in plans_of(types, texts)}
    found = {name: p.refusal for name, p in plans.items() if p.refusal is not None}
    assert found.keys() == texts.keys()
    assert found["c"].code == "CYCLE"
    assert "a -> b -> c -> a" in str(found["c"])
    assert {found["a"].code, found["b"].code} == {"PARENT"}


def test_a_recomputed_view_on_a_view_is_refused_with_the_way_out(types: SparkTypes) -> None:
    ranked = RECOMPUTED + "SELECT id, RANK() OVER (ORDER BY id) AS place FROM a"
    _, found = plans_of(types, {"a": "SELECT id FROM sales.orders", "b": ranked})
    assert found.refusal.code == "PARENT"
    assert 'reads view "a"' in found.refusal.message
    assert "tables of sources" in str(found.refusal.hint)


@pytest.mark.parametrize(
    ("code", "select"),
    [
        ("UNSUPPORTED_TYPE", "SELECT split(MAX_BY(note, id), ' ') AS words FROM sales.orders"),
        ("DUPLICATE_NAME", "SELECT o.id, c.ID FROM sales.orders o LEFT JOIN crm.customers c"),
    ],
)
def test_columns_that_cannot_be_stored_are_refused_in_recomputed_views_too(
    types: SparkTypes, code: str, select: str
) -> None:
    found = checked(planned(types, RECOMPUTED + select))
    assert (found.verdict, found.code) == ("refused", code)
    assert found.hint
