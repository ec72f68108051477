"""Fragments in plain Python mean what a database says they mean."""

from __future__ import annotations

import sqlite3
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steadyview.errors import DefiniteError
from steadyview.views.interpret import column_equality, interpret

values = st.one_of(st.none(), st.integers(-2, 3))
rows = st.tuples(st.tuples(values, values), st.tuples(values))
OPERATORS = ["=", "<>", "<", "<=", ">", ">=", "IS NOT DISTINCT FROM", "IS DISTINCT FROM"]
ATOMS = ["t0.c0", "t0.c1", "t1.c0", "0", "1", "2", "NULL"]
choice = {n: st.integers(0, n - 1) for n in range(1, 12)}


@st.composite
def fragments(draw: Any, kind: str) -> str:
    def pick(options: list[str]) -> str:
        return options[draw(choice[len(options)])]

    def number(depth: int) -> str:
        form = pick(["atom", "calculation", "minus", "case", "switch"]) if depth else "atom"
        x, y = (number(depth - 1), number(depth - 1)) if depth else (pick(ATOMS), "")
        return {
            "atom": x,
            "calculation": f"({x} {pick(['+', '-', '*'])} {y})",
            "minus": f"(- {x})",
            "case": f"CASE WHEN {truth(depth - 1) if depth else ''} THEN {x} ELSE {y} END",
            "switch": f"CASE {x} WHEN {y} THEN {x} END",
        }[form]

    def truth(depth: int) -> str:
        if depth > 0 and pick(["leaf", "inner"]) == "inner":
            p, q = truth(depth - 1), truth(depth - 1)
            return pick([f"({p}) AND ({q})", f"({p}) OR ({q})", f"NOT ({p})"])
        x, y, z = (number(max(depth, 0)) for _ in range(3))
        return pick(
            [
                f"{x} {pick(OPERATORS)} {y}",
                f"{x} IS NULL",
                f"{x} IS NOT NULL",
                f"{x} BETWEEN {y} AND {z}",
                f"{x} IN ({y}, {z})",
                f"{x} NOT IN ({y}, {z})",
            ]
        )

    return number(2) if kind == "number" else truth(2)


def sqlite_value(sql: str, bound: Any) -> Any:
    tables = "(SELECT ? AS c0, ? AS c1) AS t0, (SELECT ? AS c0) AS t1"
    return DATABASE.execute(f"SELECT {sql} FROM {tables}", (*bound[0], *bound[1])).fetchone()[0]


DATABASE = sqlite3.connect(":memory:")


@settings(max_examples=300, deadline=None)
@given(fragments("number"), rows)
def test_numbers_agree_with_sqlite(sql: str, bound: Any) -> None:
    assert interpret(sql)(bound, {}) == sqlite_value(sql, bound)


@settings(max_examples=300, deadline=None)
@given(fragments("truth"), rows)
def test_truths_agree_with_sqlite(sql: str, bound: Any) -> None:
    # SQLite's truths are 1 and 0, which Python calls equal to True and False.
    mine = interpret(sql)(bound, {})
    assert mine in (True, False, None)
    assert mine == sqlite_value(sql, bound)


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("NULL = NULL", None),
        ("NULL <=> NULL", True),
        ("NULL <=> 1", False),
        ("NOT NULL", None),
        ("1 IN (2, NULL)", None),
        ("1 NOT IN (1, NULL)", False),
        ("NULL AND 1 = 2", False),
        ("NULL OR 1 = 1", True),
        ("'a' < 'b'", True),
        ("'it\\'s'", "it's"),
        ("0.1 + 0.2", Decimal("0.3")),
        ("1.50 = 1.5", True),
        ("2 * 0.5 - 1", Decimal("0.0")),
        ("CASE WHEN NULL THEN 1 END", None),
        ("TRUE", True),
        ("- (2)", -2),
    ],
)
def test_one_value_each(sql: str, value: Any) -> None:
    result = interpret(sql)([], {})
    assert (result, type(result)) == (value, type(value))


@pytest.mark.parametrize(
    "sql",
    ["rand()", "1 / 2", "1e3", "t0.c0 LIKE 'a%'", "CAST(t0.c0 AS INT)", "t0.c0 IS TRUE", "a b c ("],
)
def test_what_is_not_understood_is_refused_before_any_row(sql: str) -> None:
    with pytest.raises(DefiniteError, match="cannot interpret"):
        interpret(sql)


def test_a_column_that_is_not_stored_is_refused() -> None:
    with pytest.raises(DefiniteError, match='"orders.id" is no stored column'):
        interpret("orders.id = 1")


@pytest.mark.parametrize("sql", ["t0.c0 = 1", "t0.c0 < t0.c1", "t0.c0 + 'a' = 1"])
def test_values_of_different_kinds_are_never_compared(sql: str) -> None:
    with pytest.raises(DefiniteError, match="cannot"):
        interpret(sql)([("1", True)], {})


def test_only_plain_equalities_are_recognized() -> None:
    assert column_equality("(t3.c10 = t1.c2)") == ((3, 10), (1, 2))
    assert column_equality("t0.c0 <=> t1.c0") is None
    assert column_equality("t0.c0 = t1.c0 + 1") is None
    assert column_equality("t0.c0 = t1.c0 AND t0.c1 = t1.c1") is None
