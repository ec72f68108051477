from __future__ import annotations

import pytest

from steadyview.errors import ViewRefused
from steadyview.views.parse import parse_view


def test_a_bare_select_is_named_after_its_file() -> None:
    view = parse_view("orders_by_day", "SELECT 1 AS a")
    assert (view.name, view.select) == ("orders_by_day", "SELECT 1 AS a")
    assert (view.level, view.fallback) == ("complete", "refuse")


def test_a_created_view_has_its_own_name_properties_and_the_place_of_its_select() -> None:
    view = parse_view(
        "file",
        "-- who buys\nCREATE MATERIALIZED VIEW `buyers`\n"
        "TBLPROPERTIES ('steadyview.level' = 'strong', owner.team = 'it''s')\n"
        "COMMENT 'a; comment' AS\n  SELECT a -- kept; as written\n  FROM s.t -- gone\n;\n;",
    )
    assert view.name == "buyers"
    assert view.select == "SELECT a -- kept; as written\n  FROM s.t"
    assert (view.line, view.column) == (5, 3)
    assert view.level == "strong"
    assert view.properties == {"steadyview.level": "strong", "owner.team": "it's"}


@pytest.mark.parametrize(
    "head",
    [
        "create or replace materialized view v as",
        "CREATE MATERIALIZED VIEW IF NOT EXISTS v COMMENT \"x\" TBLPROPERTIES ('a'='b') AS",
        "CREATE /* of */ MATERIALIZED /* the */ VIEW v AS",
    ],
)
def test_the_clauses_around_the_name_may_vary(head: str) -> None:
    assert parse_view("f", f"{head} WITH x AS (SELECT 1) SELECT * FROM x").name == "v"


@pytest.mark.parametrize("level", ["convergent", "weak", "strong", "complete"])
def test_every_level_of_the_papers_may_be_asked_for(level: str) -> None:
    text = f"CREATE MATERIALIZED VIEW v TBLPROPERTIES ('steadyview.level'='{level}') AS SELECT 1"
    assert parse_view("f", text).level == level


def test_the_fallback_is_read() -> None:
    text = (
        "CREATE MATERIALIZED VIEW v TBLPROPERTIES ('steadyview.fallback'='recompute') AS SELECT 1"
    )
    assert parse_view("f", text).fallback == "recompute"


def test_a_view_is_immediate_unless_it_says_otherwise() -> None:
    view = parse_view("f", "CREATE MATERIALIZED VIEW v AS SELECT 1")
    assert (view.policy, view.schedule, view.refresh_to) == ("immediate", None, "tick")
    assert (view.policy_at, view.schedule_at, view.refresh_to_at) == ((None, None),) * 3


@pytest.mark.parametrize("policy", ["ipda", "dpda", "snapshot"])
def test_a_policy_its_schedule_and_what_it_refreshes_to_are_read_as_written(policy: str) -> None:
    view = parse_view(
        "f",
        f"CREATE MATERIALIZED VIEW v TBLPROPERTIES ('steadyview.policy' = '{policy}',\n"
        "  'steadyview.schedule' = 'Daily at  6:00 Europe/Berlin')\n"
        " TBLPROPERTIES ('steadyview.refresh_to' = 'end of day') AS SELECT 1",
    )
    assert (view.policy, view.refresh_to) == (policy, "end of day")
    assert view.schedule == "Daily at  6:00 Europe/Berlin"
    assert view.policy_at == (1, 43)
    assert (view.schedule_at, view.refresh_to_at) == ((2, 3), (3, 17))


@pytest.mark.parametrize(
    "properties",
    [
        "'steadyview.policy' = 'immediate', 'steadyview.algorithm' = 'sweep'",
        "'steadyview.policy' = 'immediate', 'steadyview.fallback' = 'recompute'",
        "'steadyview.policy' = 'snapshot', 'steadyview.fallback' = 'recompute'",
        "'steadyview.policy' = 'ipda', 'steadyview.fallback' = 'refuse'",
        "'steadyview.schedule' = 'every 5 minutes', 'steadyview.policy' = 'dpda'",
        "'steadyview.policy' = 'dpda', 'steadyview.refresh_to' = 'end of month'",
    ],
)
def test_what_goes_together_with_a_policy_is_taken_in_any_order(properties: str) -> None:
    parse_view("f", f"CREATE MATERIALIZED VIEW v TBLPROPERTIES ({properties}) AS SELECT 1")


@pytest.mark.parametrize("stem", ["a.b", "../x", "", "a b", "x" * 129])
def test_a_file_whose_name_cannot_be_a_views_is_refused(stem: str) -> None:
    with pytest.raises(ViewRefused) as refused:
        parse_view(stem, "SELECT 1")
    assert refused.value.code == "VIEW_NAME"
