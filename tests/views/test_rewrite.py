# ruff: noqa: E501 - a statement is read best on one line
from __future__ import annotations

import pytest

from steadyview.errors import ViewRefused
from steadyview.views.rewrite import tables_of, with_tables
from tests.views.shop import CUSTOMERS, ORDERS, RELATIONS, define, view

NAMES = {r.name: f"`{r.name.path[-1][0]}{i}`" for i, r in enumerate(RELATIONS)}
"""orders `o0`, order_lines `o1`, customers `c2`, ..., audit.public.orders `o8`."""


def rewritten(text: str) -> str:
    return with_tables(view(text), NAMES, RELATIONS)


def test_only_table_names_change() -> None:
    text = (
        "SELECT o.id -- from sales.orders\nFROM sales.orders o JOIN crm.customers AS c USING (id)\n"
    )
    assert rewritten(text) == (
        "SELECT o.id -- from sales.orders\nFROM `o0` o JOIN `c2` AS c USING (id)"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "SELECT orders.id, sales.orders.note, sales.orders.* FROM sales.orders",
            "SELECT orders.id, `orders`.note, `orders`.* FROM `o0` AS `orders`",
        ),
        (
            "SELECT public.orders.id, SALES.PUBLIC.Orders.id FROM sales.public.orders WHERE id > 1",
            "SELECT `orders`.id, `orders`.id FROM `o0` AS `orders` WHERE id > 1",
        ),
        (
            "SELECT sales.orders.id, audit.orders.id FROM sales.orders, audit.orders WHERE orders.audited",
            "SELECT `_0_orders`.id, `_1_orders`.id FROM `o0` AS `_0_orders`, `o8` AS `_1_orders`"
            " WHERE `_1_orders`.audited",
        ),
        (
            "SELECT id FROM sales.orders WHERE EXISTS"
            " (SELECT 1 FROM audit.orders WHERE sales.orders.id = orders.id)",
            "SELECT id FROM `o0` AS `_0_orders` WHERE EXISTS"
            " (SELECT 1 FROM `o8` AS `_1_orders` WHERE `_0_orders`.id = `_1_orders`.id)",
        ),
    ],
)
def test_columns_keep_their_qualifiers_meaning(text: str, expected: str) -> None:
    assert rewritten(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "SELECT * FROM sales.orders o LEFT OUTER JOIN crm.customers c ON c.id = o.id",
            "SELECT * FROM `o0` o LEFT OUTER JOIN `c2` c ON c.id = o.id",
        ),
        (
            "SELECT id FROM sales.orders UNION ALL (SELECT id FROM sales.orders EXCEPT SELECT id FROM crm.customers)",
            "SELECT id FROM `o0` AS `orders` UNION ALL (SELECT id FROM `o0` AS `orders` EXCEPT SELECT id FROM `c2` AS `customers`)",
        ),
        (
            "SELECT EXTRACT(YEAR FROM o.placed), TRIM(BOTH ' ' FROM note) FROM sales.orders o"
            " WHERE o.id IS NOT DISTINCT FROM o.customer_id",
            "SELECT EXTRACT(YEAR FROM o.placed), TRIM(BOTH ' ' FROM note) FROM `o0` o"
            " WHERE o.id IS NOT DISTINCT FROM o.customer_id",
        ),
        (
            "SELECT SUM(id) OVER (PARTITION BY orders.note ORDER BY orders.id) s FROM sales.orders"
            " QUALIFY s > 1 ORDER BY s LIMIT 3",
            "SELECT SUM(id) OVER (PARTITION BY orders.note ORDER BY orders.id) s FROM `o0` AS `orders`"
            " QUALIFY s > 1 ORDER BY s LIMIT 3",
        ),
        (
            "WITH orders AS (SELECT * FROM sales.orders o WHERE id IN (SELECT id FROM crm.customers c))"
            " SELECT orders.id FROM orders",
            "WITH orders AS (SELECT * FROM `o0` o WHERE id IN (SELECT id FROM `c2` c))"
            " SELECT orders.id FROM orders",
        ),
        (
            "SELECT * FROM crm.customers TABLESAMPLE (10 PERCENT) REPEATABLE (1), sales.orders",
            "SELECT * FROM `c2` TABLESAMPLE (10 PERCENT) REPEATABLE (1) AS `customers`, `o0` AS `orders`",
        ),
        (
            "SELECT * FROM crm.customers PIVOT (COUNT(id) FOR region IN ('a', 'b')), sales.orders o",
            "SELECT * FROM `c2` AS `customers` PIVOT (COUNT(id) FOR region IN ('a', 'b')), `o0` o",
        ),
        (
            "SELECT w FROM range(3) r, LATERAL (SELECT id AS w FROM crm.customers c), sales.orders o"
            " LATERAL VIEW posexplode(split(note, ' ')) t AS a, b",
            "SELECT w FROM range(3) r, LATERAL (SELECT id AS w FROM `c2` c), `o0` o"
            " LATERAL VIEW posexplode(split(note, ' ')) t AS a, b",
        ),
        (
            "SELECT x.id FROM ((SELECT * FROM crm.customers c) x JOIN (sales.orders o) ON true)",
            "SELECT x.id FROM ((SELECT * FROM `c2` c) x JOIN (`o0` o) ON true)",
        ),
        (
            "SELECT o.sales.orders FROM (SELECT named_struct('orders', 1) AS sales) o, crm.customers c",
            "SELECT o.sales.orders FROM (SELECT named_struct('orders', 1) AS sales) o, `c2` c",
        ),
        (
            "SELECT `select` FROM `odd source`.`MY SCHEMA`.`ta``ble`",
            "SELECT `select` FROM `T4` AS `ta``ble`",
        ),
    ],
)
def test_any_select_that_spark_accepts_can_be_rewritten(text: str, expected: str) -> None:
    assert rewritten(text) == expected


def test_tables_are_listed_once_in_the_order_of_the_text() -> None:
    text = (
        "WITH x AS (SELECT * FROM crm.customers) SELECT (SELECT COUNT(*) FROM sales.orders)"
        " FROM x LEFT JOIN CRM.Customers ON true"
    )
    assert tables_of(view(text), RELATIONS) == (CUSTOMERS, ORDERS)


@pytest.mark.parametrize("name", ["sales.nothing", "nothing", "orders"])
def test_an_unknown_table_is_refused(name: str) -> None:
    with pytest.raises(ViewRefused) as refused:
        rewritten(f"SELECT * FROM crm.customers c LEFT JOIN {name} n ON true")
    assert (refused.value.code, refused.value.column) == ("UNKNOWN_TABLE", 41)


def test_an_average_of_whole_numbers_is_an_exact_sum_and_a_count() -> None:
    text = "SELECT AVG( sales.orders.id + 1 ) * 2 AS x, mean(id) AS y FROM sales.orders"
    grouping = define(text).grouping
    assert grouping is not None
    assert [a.number for a in grouping.averages] == [0, 1]
    assert with_tables(view(text), NAMES, RELATIONS, averages=grouping.averages[:1]) == (
        "SELECT (CAST(SUM(CAST(`orders`.id + 1 AS DECIMAL(38,0))) AS DOUBLE)"
        " / NULLIF(COUNT(`orders`.id + 1), 0)) * 2 AS x, mean(id) AS y FROM `o0` AS `orders`"
    )


def test_in_as_a_value_is_spelled_out_and_in_as_a_condition_is_not() -> None:
    def exact(text: str) -> str:
        return with_tables(view(text), NAMES, RELATIONS, exact=True)

    inner = "SELECT id FROM sales.orders"
    there = "-c.id NOT IN (SELECT id FROM `o0` AS `orders`)"
    value = f"(CASE WHEN {there} THEN TRUE WHEN NOT ({there}) THEN FALSE END)"
    text = f"SELECT -c.id NOT IN ({inner}) IS NULL AS x FROM crm.customers c"
    assert exact(text) == f"SELECT {value} IS NULL AS x FROM `c2` c"
    within = "c.id IN (SELECT id FROM `o0` AS `orders`)"
    text = f"SELECT 1 FROM crm.customers c WHERE NOT (c.id IN ({inner})) AND c.id IN ({inner})"
    assert exact(text) == f"SELECT 1 FROM `c2` c WHERE NOT ({within}) AND {within}"
    value = f"(CASE WHEN {within} THEN TRUE WHEN NOT ({within}) THEN FALSE END)"
    text = f"SELECT 1 FROM crm.customers c WHERE c.id IN ({inner}) OR c.id = 2"
    assert exact(text) == f"SELECT 1 FROM `c2` c WHERE {value} OR c.id = 2"
    nested = f"SELECT c.id IN (SELECT id IN ({inner}) FROM sales.orders) AS x FROM crm.customers c"
    assert exact(nested).count("THEN TRUE") == 3
