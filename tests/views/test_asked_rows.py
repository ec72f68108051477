"""The rows that constants name are enough for a query, wherever in it they stand."""

from __future__ import annotations

import random
import sqlite3
from collections import Counter, defaultdict

import pytest

from steadyview.changes import Column, RelationName, RelationSchema
from steadyview.views import asked_rows as module
from steadyview.views.asked_rows import AskedRows, asked_rows
from tests.plans.texts import Text, Writer, drawn
from tests.views.shop import CUSTOMERS, LINES, ORDERS

COLUMNS = ("c0", "c1")
RELATIONS = tuple(
    RelationSchema(RelationName(f"r{i}", ()), tuple(Column(c, "BIGINT", "", True) for c in COLUMNS))
    for i in range(8)
)
VIEWS = {"totals": (("id", "BIGINT"), ("n", "BIGINT"))}


def rows(text: Text, seed: int, asked: dict[RelationName, AskedRows]) -> Counter:
    """The query's rows by SQLite, over these rows of its tables alone."""
    dice = random.Random(seed)
    database = sqlite3.connect(":memory:")
    for relation in RELATIONS:
        name, only = relation.name.source, asked.get(relation.name)
        database.execute(f"CREATE TABLE {name} (c0, c1)")
        for _ in range(dice.randrange(5)):
            row = [dice.choice((None, 0, 1, 2)) for _ in COLUMNS]
            if only is None or row[only.column] in only.values:
                database.execute(f"INSERT INTO {name} VALUES (?, ?)", row)
    return Counter(database.execute(text.lite).fetchall())


def texts(count: int):
    for seed in range(count):
        dice = random.Random(seed)
        text = Writer(drawn(dice), len(RELATIONS)).view(dice.randrange(3))
        if asked := asked_rows(text.spark, RELATIONS, {}):
            yield seed, text, asked


def test_a_query_over_the_rows_that_are_asked_for_is_the_query_over_all() -> None:
    tried = 0
    for seed, text, asked in texts(350):
        tried += 1
        for state in range(4):
            assert rows(text, state, asked) == rows(text, state, {}), (seed, text.spark, asked)
    assert tried > 20


def test_a_table_that_is_read_twice_is_needed_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "Counter", lambda _: defaultdict(lambda: 1))
    with pytest.raises(AssertionError):
        test_a_query_over_the_rows_that_are_asked_for_is_the_query_over_all()


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("SELECT * FROM sales.orders WHERE id = 5 ORDER BY id LIMIT 1", {ORDERS: (0, (5,))}),
        ("SELECT 1 FROM sales.orders o WHERE 7 = o.customer_id", {ORDERS: (1, (7,))}),
        (
            "SELECT n FROM totals t LEFT JOIN sales.orders o ON o.id = t.id AND o.id IN (3, 4)",
            {ORDERS: (0, (3, 4))},
        ),
        ("SELECT n FROM totals t LEFT JOIN sales.orders o ON o.id = t.id WHERE o.id = 3", {}),
        ("SELECT * FROM sales.orders WHERE id = '5'", {}),
        ("SELECT * FROM sales.orders WHERE id = 5.0", {}),
        ("SELECT * FROM sales.orders WHERE id = 99999999999999999999", {}),
        ("SELECT * FROM sales.orders WHERE id IN (5, NULL)", {}),
        ("SELECT * FROM sales.orders WHERE id = 5 OR id = 6", {}),
        ("SELECT * FROM sales.orders WHERE id + 1 = 5", {}),
        ("SELECT 1 FROM sales.orders a, sales.orders b WHERE a.id = 1 AND b.id = 1", {}),
        ("SELECT * FROM crm.customers WHERE region = 'north'", {}),
        ("SELECT * FROM sales.order_lines WHERE price = 3", {}),
        ("SELECT id, RANK() OVER (ORDER BY id) FROM sales.orders WHERE id = 5", {}),
    ],
)
def test_only_what_a_source_surely_finds_is_asked_of_it(sql: str, found: dict) -> None:
    asked = asked_rows(sql, (ORDERS, LINES, CUSTOMERS), VIEWS)
    assert asked == {relation.name: AskedRows(*rows) for relation, rows in found.items()}
