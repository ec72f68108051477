# ruff: noqa: E501 - a statement is read best on one line
from __future__ import annotations

import pytest

from steadyview.views.definition import Argument, EqualColumns, Grouping, Output, Residual
from tests.views.shop import CUSTOMERS, LINES, ODD, ORDERS, define


def outputs(text: str) -> list[tuple[str, str]]:
    return [(o.name, o.sql) for o in define(text).outputs]


def expression(text: str) -> str:
    """The fragment that one selected expression over sales.orders o becomes."""
    return define(f"SELECT {text} AS x FROM sales.orders o").outputs[0].sql


def test_revenue_by_region() -> None:
    text = """
        CREATE MATERIALIZED VIEW revenue_by_region
        TBLPROPERTIES ('steadyview.level' = 'complete')
        AS SELECT c.region, COUNT(*) AS orders, SUM(l.price * l.quantity) AS revenue
           FROM sales.orders o JOIN sales.order_lines l ON l.order_id = o.id
           JOIN crm.customers c ON c.id = o.customer_id
           GROUP BY c.region"""
    found = define(text)
    assert found.name == "revenue_by_region"
    assert found.text == text[text.index("SELECT") :]
    assert [(o.relation, o.alias, o.columns, o.filter) for o in found.occurrences] == [
        (ORDERS, "o", (0, 1), None),
        (LINES, "l", (0, 1, 2), None),
        (CUSTOMERS, "c", (0, 1), None),
    ]
    assert found.equalities == (EqualColumns(0, 0, 1, 0), EqualColumns(0, 1, 2, 0))
    assert found.residuals == ()
    assert found.grouping == Grouping(("t2.c1",), (Argument("t1.c1 * t1.c2", True),))
    assert found.outputs == (
        Output("region", "_g0"),
        Output("orders", "_count"),
        Output("revenue", "_visible_sum_0"),
    )


class TestNames:
    def test_star_is_the_recorded_columns_in_order(self) -> None:
        assert outputs("SELECT * FROM crm.customers") == [("id", "t0.c0"), ("region", "t0.c1")]

    def test_a_qualified_star_is_one_relations_columns(self) -> None:
        text = "SELECT c.*, o.note FROM sales.orders o, crm.customers c"
        assert outputs(text) == [("id", "t1.c0"), ("region", "t1.c1"), ("note", "t0.c3")]

    def test_names_are_found_without_regard_to_case_and_kept_as_written(self) -> None:
        assert outputs("SELECT O.Id, nOTE FROM SALES.Orders o") == [
            ("Id", "t0.c0"),
            ("nOTE", "t0.c3"),
        ]

    @pytest.mark.parametrize("name", ["orders", "public.orders", "sales.public.orders"])
    def test_a_table_without_alias_is_known_by_every_end_of_its_name(self, name: str) -> None:
        text = f"SELECT {name}.id FROM sales.public.orders"
        assert outputs(text) == [("id", "t0.c0")]

    def test_two_tables_of_one_name_are_told_apart_by_their_sources(self) -> None:
        text = "SELECT sales.orders.id FROM sales.orders JOIN audit.orders ON sales.orders.id = audit.orders.id"
        found = define(text)
        assert [str(o.relation.name) for o in found.occurrences] == [
            "sales.public.orders",
            "audit.public.orders",
        ]
        assert found.equalities == (EqualColumns(0, 0, 1, 0),)

    def test_exact_case_decides_between_tables_that_differ_in_case_only(self) -> None:
        assert define("SELECT id FROM twice.B.Item").occurrences[0].relation.name.path == (
            "B",
            "Item",
        )

    def test_weird_identifiers(self) -> None:
        text = "SELECT x.`Key One`, `select` + `DÍA` AS `a``b` FROM `odd source`.`my schema`.`ta``ble` x"
        found = define(text)
        assert found.occurrences[0].relation == ODD
        assert outputs(text) == [("Key One", "t0.c0"), ("a`b", "t0.c1 + t0.c2")]

    def test_a_column_called_like_an_occurrence_is_still_a_column(self) -> None:
        text = "SELECT t0.t0 AS x, t0 AS y FROM `Odd Source`.`Ta``ble` t0"
        assert outputs(text) == [("x", "t0.c3"), ("y", "t0.c3")]

    def test_columns_may_be_renamed_by_the_relations_alias(self) -> None:
        assert outputs("SELECT x.b FROM crm.customers AS x(a, b) WHERE a = 1") == [("b", "t0.c1")]

    def test_an_alias_to_the_left_can_be_used(self) -> None:
        text = "SELECT id + 1 AS a, a * 2 AS b, b AS id FROM sales.orders"
        assert outputs(text)[1:] == [("b", "(t0.c0 + 1) * 2"), ("id", "(t0.c0 + 1) * 2")]

    def test_a_column_of_from_goes_before_an_alias(self) -> None:
        assert outputs("SELECT 1 AS id, id + 1 AS b FROM sales.orders")[1] == ("b", "t0.c0 + 1")

    def test_columns_without_alias_have_sparks_name_where_it_follows_from_the_text(self) -> None:
        text = (
            "SELECT COUNT(*), SUM(l.price), AVG(price), count(1) + 1, 'x' FROM sales.order_lines l"
        )
        assert [o.name for o in define(text).outputs] == [
            "count(1)",
            "sum(price)",
            "avg(price)",
            "count(1) + 1",
            "x",
        ]

    def test_clause_words_may_be_columns(self) -> None:
        text = "SELECT x.offset, limit FROM (SELECT id AS offset, note AS limit FROM sales.orders) x WHERE offset > 1 AND limit = 'a'"
        assert outputs(text) == [("offset", "t0.c0"), ("limit", "t0.c3")]
        assert define(text).occurrences[0].filter == "(t0.c0 > 1) AND (t0.c3 = 'a')"


class TestConditions:
    def test_conditions_are_sorted_into_filters_equalities_and_residuals(self) -> None:
        found = define(
            "SELECT o.id FROM sales.orders o, crm.customers c WHERE (o.customer_id) = c.id"
            " AND (c.region = 'a' AND o.id BETWEEN 1 AND 2) AND o.id <=> c.id AND 1 = 0"
            " AND (o.note = 'x' OR c.region = 'y') AND o.id = o.customer_id AND CAST(o.id AS INT) = c.id"
        )
        assert found.equalities == (EqualColumns(0, 1, 1, 0),)
        assert [o.filter for o in found.occurrences] == [
            "(t0.c0 BETWEEN 1 AND 2) AND (t0.c0 = t0.c1)",
            "(t1.c1 = 'a')",
        ]
        assert found.residuals == (
            Residual("t0.c0 IS NOT DISTINCT FROM t1.c0", frozenset({0, 1})),
            Residual("t0.c3 = 'x' OR t1.c1 = 'y'", frozenset({0, 1})),
            Residual("CAST(t0.c0 AS INT) = t1.c0", frozenset({0, 1})),
            Residual("1 = 0", frozenset()),
        )

    def test_a_case_with_and_inside_is_one_condition(self) -> None:
        found = define(
            "SELECT id FROM sales.orders WHERE CASE WHEN id = 1 AND note = 'a' THEN true END AND id > 0"
        )
        assert found.occurrences[0].filter == (
            "(CASE WHEN t0.c0 = 1 AND t0.c3 = 'a' THEN TRUE END) AND (t0.c0 > 0)"
        )

    def test_comments_vanish_from_fragments(self) -> None:
        found = define("SELECT id FROM sales.orders WHERE id -- why\n > /* so */ 1")
        assert found.occurrences[0].filter == "(t0.c0 > 1)"

    def test_equal_equalities_are_one(self) -> None:
        found = define(
            "SELECT o.id FROM sales.orders o JOIN crm.customers c ON o.id = c.id WHERE c.id == o.id"
        )
        assert found.equalities == (EqualColumns(0, 0, 1, 0),)

    def test_a_cross_join_has_no_condition(self) -> None:
        found = define("SELECT o.id FROM sales.orders o CROSS JOIN crm.customers")
        assert (found.equalities, found.residuals, len(found.occurrences)) == ((), (), 2)

    def test_star_over_using_puts_the_key_first(self) -> None:
        text = "SELECT * FROM crm.customers x(region, id) JOIN twice.a.item y USING (id)"
        assert outputs(text) == [("id", "t0.c1"), ("region", "t0.c0")]
        assert define(text).equalities == (EqualColumns(0, 1, 1, 0),)

    def test_the_hidden_key_of_using_is_seen_by_its_qualifier(self) -> None:
        text = "SELECT id, y.id AS other FROM crm.customers x JOIN twice.a.item y USING (id)"
        assert outputs(text) == [("id", "t0.c0"), ("other", "t1.c0")]
        starred = "SELECT y.* FROM crm.customers x JOIN twice.a.item y USING (id)"
        assert outputs(starred) == [("id", "t1.c0")]


class TestFlattening:
    def test_a_with_query_read_twice_is_two_occurrences_with_its_filter_each(self) -> None:
        found = define(
            "WITH late AS (SELECT id, customer_id AS c FROM sales.orders WHERE placed > DATE '2020-01-01')"
            " SELECT a.id FROM late a JOIN late b ON a.c = b.c AND a.id <> b.id"
        )
        assert [(o.relation, o.filter) for o in found.occurrences] == [
            (ORDERS, "(t0.c2 > DATE '2020-01-01')"),
            (ORDERS, "(t1.c2 > DATE '2020-01-01')"),
        ]
        assert found.equalities == (EqualColumns(0, 1, 1, 1),)
        assert found.residuals == (Residual("t0.c0 <> t1.c0", frozenset({0, 1})),)

    def test_subqueries_columns_are_put_in_brackets_where_they_are_used(self) -> None:
        text = (
            "SELECT x.s * 2 AS d, -x.s AS n FROM (SELECT id + customer_id AS s FROM sales.orders) x"
        )
        assert outputs(text) == [("d", "(t0.c0 + t0.c1) * 2"), ("n", "-(t0.c0 + t0.c1)")]

    def test_plain_columns_of_subqueries_still_make_equalities(self) -> None:
        found = define(
            "SELECT a.k FROM (SELECT (id) AS k FROM sales.orders) a"
            " JOIN (SELECT * FROM (SELECT order_id k FROM sales.order_lines)) b ON (b.k) = a.k"
        )
        assert found.equalities == (EqualColumns(0, 0, 1, 0),)

    def test_an_inner_with_hides_an_outer_one(self) -> None:
        found = define(
            "WITH x AS (SELECT id FROM sales.orders), y AS (SELECT * FROM x)"
            " SELECT * FROM (WITH x AS (SELECT id AS k FROM crm.customers) SELECT x.k, y.id FROM x, y)"
        )
        assert [o.relation for o in found.occurrences] == [CUSTOMERS, ORDERS]

    def test_a_with_query_hides_nothing_that_has_a_source(self) -> None:
        text = "WITH orders AS (SELECT region FROM crm.customers) SELECT o.note FROM sales.orders o, orders"
        assert [o.relation for o in define(text).occurrences] == [ORDERS, CUSTOMERS]

    def test_joins_in_brackets_are_transparent_or_renamed(self) -> None:
        joined = "sales.orders o JOIN sales.order_lines l ON o.id = l.order_id"
        assert outputs(f"SELECT o.id, l.price FROM ({joined})")[1] == ("price", "t1.c1")
        assert outputs(f"SELECT x.price FROM ({joined}) AS x") == [("price", "t1.c1")]

    def test_brackets_around_whole_queries_mean_nothing(self) -> None:
        assert outputs("((SELECT id FROM ((SELECT * FROM sales.orders)) x))") == [("id", "t0.c0")]

    def test_hints_mean_nothing(self) -> None:
        assert outputs("SELECT /*+ BROADCAST(o) */ id FROM sales.orders o") == [("id", "t0.c0")]

    def test_expressions_over_an_aggregated_subquery_are_outputs(self) -> None:
        found = define(
            "WITH g AS (SELECT region r, COUNT(*) n, SUM(id) s FROM crm.customers GROUP BY region)"
            " SELECT upper(r) AS r, s / n AS mean FROM g"
        )
        assert found.outputs == (
            Output("r", "upper(_g0)"),
            Output("mean", "_visible_sum_0 / _count"),
        )


class TestGroups:
    def test_equal_arguments_are_one(self) -> None:
        found = define(
            "SELECT SUM(l.price*quantity) a, avg( PRICE * quantity ) b, COUNT((price * quantity)) c,"
            " COUNT(price) d, COUNT(1) e FROM sales.order_lines l"
        )
        assert found.grouping == Grouping(
            (), (Argument("t0.c1 * t0.c2", True), Argument("t0.c1", False))
        )
        assert [o.sql for o in found.outputs] == [
            "_visible_sum_0",
            "_visible_avg_0",
            "_nonnull_0",
            "_nonnull_1",
            "_count",
        ]

    def test_outputs_may_combine_keys_aggregates_and_constants(self) -> None:
        found = define(
            "SELECT ROUND(AVG(price), 2) + COUNT(*) AS a, 'x' AS b, (quantity + 1) * 2 AS c, a + 1 AS d"
            " FROM sales.order_lines GROUP BY quantity + 1"
        )
        assert [o.sql for o in found.outputs] == [
            "ROUND(_visible_avg_0, 2) + _count",
            "'x'",
            "_g0 * 2",
            "(ROUND(_visible_avg_0, 2) + _count) + 1",
        ]

    @pytest.mark.parametrize("group", ["1", "y", "year(placed)", "YEAR( o.placed )", "ALL"])
    def test_a_key_may_be_an_ordinal_an_alias_an_expression_or_all(self, group: str) -> None:
        found = define(
            f"SELECT year(placed) AS y, COUNT(*) AS n FROM sales.orders o GROUP BY {group}"
        )
        assert found.grouping is not None
        assert [key.lower().replace(" ", "") for key in found.grouping.keys] == ["year(t0.c2)"]
        assert found.outputs[0].sql == "_g0"

    def test_in_group_by_a_column_goes_before_an_alias(self) -> None:
        found = define("SELECT upper(note) AS note2, id AS x FROM sales.orders GROUP BY note, id")
        assert found.grouping == Grouping(("t0.c3", "t0.c0"), ())

    def test_a_key_need_not_be_selected_and_counts_once(self) -> None:
        found = define("SELECT COUNT(*) AS n FROM crm.customers GROUP BY region, (REGION), id")
        assert found.grouping == Grouping(("t0.c1", "t0.c0"), ())

    def test_group_by_all_without_other_columns_is_a_global_aggregate(self) -> None:
        found = define("SELECT COUNT(*) AS n FROM crm.customers GROUP BY ALL")
        assert found.grouping == Grouping((), ())

    def test_a_key_inside_a_longer_key_is_found_where_it_stands(self) -> None:
        found = define(
            "SELECT id + 1 AS a, id AS b, lower(note) || note AS c FROM sales.orders"
            " GROUP BY id, id + 1, lower(note), note"
        )
        assert [o.sql for o in found.outputs] == ["_g1", "_g0", "_g2 || _g3"]

    def test_text_in_a_literal_is_no_key(self) -> None:
        found = define("SELECT note || 'NOTE' AS x, 'a' AS y FROM sales.orders GROUP BY note, 'A'")
        assert [o.sql for o in found.outputs] == ["_g0 || 'NOTE'", "'a'"]


@pytest.mark.parametrize(
    "text",
    [
        "o.id / 2 + o.id % 3 - o.id DIV 2",
        "o.note || 'it\\'s' || \"two\" || r'\\d' || 'a' 'b'",
        "CAST(o.id AS DECIMAL(10, 2)) + CAST(o.id AS INT) + TRY_CAST(o.note AS INT)",
        "DATE '2020-01-01' + INTERVAL '1' DAY - INTERVAL 1 MONTH + INTERVAL '1-2' YEAR TO MONTH",
        "TIMESTAMP '2020-01-01 00:00:00' > o.placed",
        "CASE WHEN o.id > 1 THEN o.note ELSE 'x' END",
        "CASE o.id WHEN 1 THEN 'a' END",
        "o.note LIKE '50/%' ESCAPE '/' AND NOT o.note RLIKE 'x' AND o.note LIKE ANY ('a', 'b')",
        "NOT o.id BETWEEN 1 AND 2 OR o.note IN ('a', 'b') AND NOT o.id IS NULL",
        "from_utc_timestamp(o.placed, 'CET') IS NOT DISTINCT FROM to_date(o.note, 'yyyy')",
        "EXTRACT(YEAR FROM o.placed) + date_part('month', o.placed) + dayofweek(o.placed)",
        "timestampdiff(MONTH, o.placed, o.placed) + dateadd(DAY, 1, o.placed)",
        "TRIM(BOTH ' ' FROM o.note) || SUBSTRING(o.note FROM 2 FOR 3) || left(o.note, 2)",
        "nvl(o.note, if(o.id = 1, 'a', 'b')) IS NOT DISTINCT FROM 'c'",
        "1.5BD + 10L + 2S + 1e3D + 0.5 + X'1F'",
        "NOT o.id = 1 AND ~o.id > -o.id AND o.id <> 1 AND o.id <> 2 AND o.id & 3 ^ 1 | 2 > 0",
        "transform(array(o.id, 2), x -> x + o.customer_id)[0]",
        "named_struct('a', o.id).a + map('k', o.id)['k'] + struct(o.id AS q).q",
        "aggregate(array(o.id), 0L, (acc, x) -> acc + x)",
        "position('a' IN o.note) + OVERLAY(o.note PLACING 'x' FROM 2)",
        "unix_timestamp(o.note, 'yyyy') + o.id",
        "o.note = 'today'",
        "o.note COLLATE UTF8_LCASE = 'x'",
        "TRUE AND NULL AND o.note = ''",
    ],
)
def test_a_fragment_is_the_users_text_with_only_names_replaced(text: str) -> None:
    expected = text
    for number, column in enumerate(["id", "customer_id", "placed", "note"]):
        expected = expected.replace(f"o.{column}", f"t0.c{number}")
    assert expression(text) == expected
