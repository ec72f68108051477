# ruff: noqa: E501 - a statement is read best on one line
"""What plans look like: joins by key, conditions far down, nothing read twice or in vain."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from steadyview.plans.draft import Draft, DraftInput, RelationInput, ViewInput
from steadyview.plans.filter import Filter
from steadyview.plans.inner_join import InnerJoin
from steadyview.plans.operator import Operator, walk
from steadyview.plans.scan import Scan
from steadyview.plans.split_join import SplitJoin
from steadyview.views.plan import views_read
from tests.views.shop import CUSTOMERS, ORDERS, plan, view


def only(text: str) -> Draft:
    drafts = plan(text).drafts
    assert len(drafts) == 1
    return drafts[0]


def joins(block: Operator) -> Iterator[InnerJoin | SplitJoin]:
    return (o for o in walk(block) if isinstance(o, (InnerJoin, SplitJoin)))


def filters(block: Operator) -> dict[Operator, str]:
    return {o.operand: o.condition for o in walk(block) if isinstance(o, Filter)}


@pytest.mark.parametrize(
    "text",
    [
        "SELECT o.id FROM sales.orders o, crm.customers c, sales.order_lines l WHERE l.order_id = o.id AND c.id = o.customer_id",
        "SELECT o.id FROM crm.customers c, sales.order_lines l, sales.orders o WHERE l.order_id = o.id AND c.id = o.customer_id",
        "SELECT o.id FROM crm.customers c CROSS JOIN (sales.order_lines l JOIN sales.orders o ON l.order_id = o.id) WHERE c.id = o.customer_id",
    ],
)
def test_no_join_lacks_an_equality_that_it_could_have(text: str) -> None:
    assert all(join.equalities for join in joins(only(text).block))


def test_islands_are_joined_by_key_inside() -> None:
    text = (
        "SELECT a.id FROM sales.orders a, crm.customers b, sales.orders c, crm.customers d"
        " WHERE a.id = d.id AND b.id = c.id"
    )
    assert sorted(len(join.equalities) for join in joins(only(text).block)) == [0, 1, 1]


def test_conditions_go_to_the_relation_they_speak_of() -> None:
    text = (
        "SELECT o.id FROM sales.orders o LEFT JOIN crm.customers c ON c.id = o.customer_id AND c.region = 'a'"
        " JOIN sales.order_lines l ON l.order_id = o.id WHERE o.note = 'x' AND l.quantity > 1"
    )
    found = {o.number: c for o, c in filters(only(text).block).items() if isinstance(o, Scan)}
    assert found == {0: "t0_c3 = 'x'", 1: "t1_c1 = 'a'", 2: "t2_c2 > 1"}


def test_no_condition_goes_below_padding() -> None:
    text = "SELECT o.id FROM sales.orders o LEFT JOIN crm.customers c ON c.id = o.id WHERE c.region IS NULL"
    (where,) = filters(only(text).block)
    assert isinstance(where, SplitJoin)


def test_only_used_columns_are_scanned() -> None:
    text = "SELECT o.id FROM sales.orders o, crm.customers c WHERE o.note = 'x'"
    scans = {o.number: o.used for o in walk(only(text).block) if isinstance(o, Scan)}
    assert scans == {0: (0, 3), 1: (0,)}


def test_a_right_join_is_a_left_join_of_the_other_side() -> None:
    (join,) = joins(only("SELECT o.id FROM sales.orders o RIGHT JOIN crm.customers c ON c.id = o.id").block)
    assert isinstance(join, SplitJoin)
    assert (join.kind, join.left, join.right) == ("left", Scan(1, (0,)), Scan(0, (0,)))


def test_a_plain_subquery_is_part_of_the_block() -> None:
    text = "WITH late AS (SELECT id FROM sales.orders WHERE id > 9) SELECT x.id FROM (SELECT id + 1 AS id FROM late) x WHERE x.id < 20"
    draft = only(text)
    assert draft.inputs == (RelationInput(ORDERS.name),)
    assert filters(draft.block) == {Scan(0, (0,)): "(t0_c0 > 9) AND ((t0_c0 + 1) < 20)"}


def test_a_with_query_that_is_read_twice_is_one_draft() -> None:
    text = "WITH w AS (SELECT id FROM sales.orders WHERE id > 9) SELECT a.id FROM w a JOIN w b ON a.id = b.id"
    below, above = plan(text).drafts
    assert below.inputs == (RelationInput(ORDERS.name),)
    assert above.inputs == (DraftInput(0), DraftInput(0))


def test_equal_drafts_are_one() -> None:
    grouped = "(SELECT region, COUNT(*) AS n FROM crm.customers GROUP BY region)"
    drafts = plan(f"SELECT a.n FROM {grouped} a JOIN {grouped} b ON a.n = b.n").drafts
    assert [d.inputs for d in drafts] == [
        (RelationInput(CUSTOMERS.name),),
        (DraftInput(0), DraftInput(0)),
    ]


def test_choosing_from_groups_is_no_node_of_its_own() -> None:
    text = "SELECT upper(r) AS r, s / n AS mean FROM (SELECT region r, COUNT(*) n, SUM(id) s FROM crm.customers GROUP BY region) WHERE n > 1"
    grouped = only(text).grouped
    assert grouped is not None
    assert grouped.outputs == (("c0", "upper(g0)"), ("c1", "a1 / a0"))
    assert grouped.having == "(a0 > 1)"


def test_other_views_are_read_by_their_names_without_regard_to_case() -> None:
    draft = only("SELECT v.n FROM Other_View v JOIN sales.orders o ON o.id = v.id")
    assert draft.inputs == (ViewInput("other_view"), RelationInput(ORDERS.name))


def test_a_with_query_hides_a_view() -> None:
    text = "WITH other_view AS (SELECT id FROM sales.orders) SELECT id FROM other_view"
    assert only(text).inputs == (RelationInput(ORDERS.name),)


def test_the_views_that_a_text_reads() -> None:
    text = "WITH c AS (SELECT * FROM B) SELECT * FROM c JOIN s.d ON TRUE WHERE EXISTS (SELECT 1 FROM a)"
    assert views_read(view(text), ["a", "b", "c", "d"]) == ["b", "a"]


def test_a_struct_keeps_the_names_of_its_columns() -> None:
    draft = only("SELECT to_json(struct(id, o.note, id + 1)) AS j FROM sales.orders o")
    assert "struct(t0_c0 AS `id`, t0_c3 AS `note`, t0_c0 + 1)" in str(draft.block)


def test_names_are_the_users() -> None:
    found = plan("SELECT id AS `Order No`, COUNT(*), MAX(note) FROM sales.orders GROUP BY id")
    assert found.names == ("Order No", "count(1)", "max(note)")
    assert found.drafts[-1].columns == ("c0", "c1", "c2")
