"""Fragments of a view's SQL, evaluated in plain Python.

For worlds without Spark: the tests of the maintenance and the simulator. A fragment is Spark SQL
over stored names (`t{o}.c{i}`; in aggregate outputs bare names such as `_count`). Understood are
columns, literals (integer, decimal, string, boolean, NULL), `= <> < <= > >= <=>`, AND OR NOT,
IS [NOT] NULL, `+ - *`, BETWEEN, IN with a list, CASE. Anything else is refused when the fragment is
compiled, never answered approximately.

Three-valued logic and the meaning of operators are those of `sql_values`.
Not promised: Spark's overflow errors; integers here are unbounded and decimals exact.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import TypeAlias

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from steadyview.algebra import Row, Value
from steadyview.errors import DefiniteError
from steadyview.views.sql_values import (
    add,
    at_least,
    at_most,
    conjunction,
    disjunction,
    equal,
    greater,
    less,
    multiply,
    negation,
    negative,
    same,
    subtract,
    unequal,
)

Rows: TypeAlias = Sequence[Row]
"""The row bound to every occurrence, by occurrence number."""
Names: TypeAlias = Mapping[str, Value]
"""The values of bare names."""
Evaluate: TypeAlias = Callable[[Rows, Names], Value]
ColumnOf: TypeAlias = tuple[int, int]
"""(occurrence, column), both by number."""

_OCCURRENCE, _COLUMN = re.compile(r"t(\d+)"), re.compile(r"c(\d+)")
_INTEGER, _DECIMAL = re.compile(r"\d+"), re.compile(r"\d*\.\d+|\d+\.\d*")


@lru_cache(maxsize=4096)
def interpret(sql: str) -> Evaluate:
    """The fragment as a function of bound rows and named values.

    >>> interpret("t0.c1 + t1.c0 > 3")([(0, 1), (5,)], {})
    True
    >>> interpret("CASE WHEN _count = 0 THEN NULL ELSE _sum_0 END")([], {"_count": 2, "_sum_0": 7})
    7
    """
    return _compiled(_parsed(sql))


@lru_cache(maxsize=4096)
def column_equality(sql: str) -> tuple[ColumnOf, ColumnOf] | None:
    """The two columns, if the condition is `=` between plain columns and nothing else.

    >>> column_equality("t0.c1 = t2.c0")
    ((0, 1), (2, 0))
    """
    tree = _parsed(sql).unnest()
    if not isinstance(tree, exp.EQ):
        return None
    sides = (tree.this, tree.expression)
    if not all(isinstance(side, exp.Column) and side.table for side in sides):
        return None
    return _address(sides[0]), _address(sides[1])


def _parsed(sql: str) -> exp.Expression:
    try:
        tree = sqlglot.parse_one(sql, read="spark")
    except SqlglotError as error:
        raise DefiniteError(f'cannot interpret "{sql}"', detail="it does not parse") from error
    assert isinstance(tree, exp.Expression)
    return tree


def _compiled(node: exp.Expression) -> Evaluate:
    build = _BUILDERS.get(type(node))
    if build is None:
        raise _not_interpreted(node)
    return build(node)


def _not_interpreted(node: exp.Expression) -> DefiniteError:
    return DefiniteError(
        f'cannot interpret "{node.sql("spark")}"',
        detail=f"in memory there is no {type(node).__name__}",
        hint="maintain the view on Spark",
    )


def _column(node: exp.Expression) -> Evaluate:
    if not isinstance(node, exp.Column) or not node.table:
        name = node.name
        return lambda _rows, names: names[name]
    occurrence, column = _address(node)
    return lambda rows, _names: rows[occurrence][column]


def _address(node: exp.Expression) -> ColumnOf:
    assert isinstance(node, exp.Column)
    occurrence, column = _OCCURRENCE.fullmatch(node.table), _COLUMN.fullmatch(node.name)
    if not occurrence or not column:
        raise DefiniteError(f'"{node.sql("spark")}" is no stored column', detail="expected t0.c0")
    return int(occurrence[1]), int(column[1])


def _literal(node: exp.Expression) -> Evaluate:
    text = node.name
    if node.is_string:
        return _constant(text)
    if _INTEGER.fullmatch(text):
        return _constant(int(text))
    if _DECIMAL.fullmatch(text):
        return _constant(Decimal(text))
    raise _not_interpreted(node)


def _constant(value: Value) -> Evaluate:
    return lambda _rows, _names: value


def _binary(apply: Callable[[Value, Value], Value]) -> Callable[[exp.Expression], Evaluate]:
    def build(node: exp.Expression) -> Evaluate:
        left, right = _compiled(node.this), _compiled(node.expression)
        return lambda rows, names: apply(left(rows, names), right(rows, names))

    return build


def _unary(apply: Callable[[Value], Value]) -> Callable[[exp.Expression], Evaluate]:
    def build(node: exp.Expression) -> Evaluate:
        operand = _compiled(node.this)
        return lambda rows, names: apply(operand(rows, names))

    return build


def _is(node: exp.Expression) -> Evaluate:
    if not isinstance(node.expression, exp.Null):
        raise _not_interpreted(node)
    operand = _compiled(node.this)
    return lambda rows, names: operand(rows, names) is None


def _between(node: exp.Expression) -> Evaluate:
    if node.args.get("symmetric"):
        raise _not_interpreted(node)
    operand, low, high = (_compiled(node.args[part]) for part in ("this", "low", "high"))

    def evaluate(rows: Rows, names: Names) -> Value:
        value = operand(rows, names)
        above, below = at_least(value, low(rows, names)), at_most(value, high(rows, names))
        return conjunction([above, below])

    return evaluate


def _in(node: exp.Expression) -> Evaluate:
    if not node.expressions:
        raise _not_interpreted(node)
    operand, members = _compiled(node.this), [_compiled(member) for member in node.expressions]

    def evaluate(rows: Rows, names: Names) -> Value:
        value = operand(rows, names)
        return disjunction([equal(value, member(rows, names)) for member in members])

    return evaluate


def _case(node: exp.Expression) -> Evaluate:
    subject = node.this and _compiled(node.this)
    branches = [(_compiled(i.this), _compiled(i.args["true"])) for i in node.args["ifs"]]
    default = _compiled(node.args["default"]) if node.args.get("default") else _constant(None)

    def evaluate(rows: Rows, names: Names) -> Value:
        for when, then in branches:
            found = when(rows, names)
            if (equal(subject(rows, names), found) if subject else found) is True:
                return then(rows, names)
        return default(rows, names)

    return evaluate


def _paren(node: exp.Expression) -> Evaluate:
    return _compiled(node.this)


def _boolean(node: exp.Expression) -> Evaluate:
    return _constant(bool(node.this))


_BUILDERS: Mapping[type[exp.Expression], Callable[[exp.Expression], Evaluate]] = {
    exp.Column: _column,
    exp.Literal: _literal,
    exp.Boolean: _boolean,
    exp.Null: lambda _node: _constant(None),
    exp.Paren: _paren,
    exp.EQ: _binary(equal),
    exp.NEQ: _binary(unequal),
    exp.LT: _binary(less),
    exp.LTE: _binary(at_most),
    exp.GT: _binary(greater),
    exp.GTE: _binary(at_least),
    exp.NullSafeEQ: _binary(same),
    exp.NullSafeNEQ: _binary(lambda x, y: not same(x, y)),
    exp.And: _binary(lambda p, q: conjunction([p, q])),
    exp.Or: _binary(lambda p, q: disjunction([p, q])),
    exp.Not: _unary(negation),
    exp.Is: _is,
    exp.Neg: _unary(negative),
    exp.Add: _binary(add),
    exp.Sub: _binary(subtract),
    exp.Mul: _binary(multiply),
    exp.Between: _between,
    exp.In: _in,
    exp.Case: _case,
}
