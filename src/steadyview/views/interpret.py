"""Fragments of a view's SQL, evaluated in plain Python.

For worlds without Spark: the tests of the maintenance and the simulator. A fragment is Spark SQL
over stored names (`t{o}.c{i}`; in aggregate outputs bare names such as `_count`). Understood are
columns, literals (integer, decimal, string, boolean, NULL), `= <> < <= > >= <=>`, AND OR NOT,
IS [NOT] NULL, `+ - *`, BETWEEN, IN with a list, CASE. Anything else is refused when the fragment is
compiled, never answered approximately.

Three-valued logic: a truth is True, False or None, and None (unknown) is also SQL's NULL.
Assumes: both sides of a comparison are of one kind (numbers, strings, truths).
Not promised: Spark's overflow errors; integers here are unbounded and decimals exact.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Context, Decimal, Inexact
from functools import lru_cache
from typing import TypeAlias

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from steadyview.algebra import Row, Value
from steadyview.errors import DefiniteError

Rows: TypeAlias = Sequence[Row]
"""The row bound to every occurrence, by occurrence number."""
Names: TypeAlias = Mapping[str, Value]
"""The values of bare names."""
Evaluate: TypeAlias = Callable[[Rows, Names], Value]
ColumnOf: TypeAlias = tuple[int, int]
"""(occurrence, column), both by number."""

_EXACT = Context(prec=100, traps=[Inexact])
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


def _strict(apply: Callable[[Value, Value], Value]) -> Callable[[exp.Expression], Evaluate]:
    """A builder for an operator that is NULL as soon as one operand is."""

    def build(node: exp.Expression) -> Evaluate:
        left, right = _compiled(node.this), _compiled(node.expression)

        def evaluate(rows: Rows, names: Names) -> Value:
            x, y = left(rows, names), right(rows, names)
            return None if x is None or y is None else apply(x, y)

        return evaluate

    return build


def _compared(holds: Callable[[Value, Value], bool]) -> Callable[[Value, Value], bool]:
    def apply(x: Value, y: Value) -> bool:
        if _kind(x) is not _kind(y):
            raise DefiniteError(f"cannot compare {x!r} with {y!r}", detail="they differ in kind")
        return holds(x, y)

    return apply


def _kind(value: Value) -> type:
    """Numbers compare with numbers; everything else only with its own type, truths included."""
    return Decimal if type(value) in (int, Decimal) else type(value)


def _arithmetic(
    integers: Callable[[int, int], int], decimals: Callable[[Decimal, Decimal], Decimal]
) -> Callable[[Value, Value], Value]:
    def apply(x: Value, y: Value) -> Value:
        if type(x) is int and type(y) is int:
            return integers(x, y)
        if _kind(x) is not Decimal or _kind(y) is not Decimal:
            raise DefiniteError(f"cannot calculate with {x!r} and {y!r}", detail="expected numbers")
        return decimals(Decimal(x), Decimal(y))

    return apply


_equal = _compared(operator.eq)
_not_below, _not_above = _compared(operator.ge), _compared(operator.le)


def _null_safe(*, negated: bool) -> Callable[[exp.Expression], Evaluate]:
    def build(node: exp.Expression) -> Evaluate:
        left, right = _compiled(node.this), _compiled(node.expression)

        def evaluate(rows: Rows, names: Names) -> bool:
            x, y = left(rows, names), right(rows, names)
            same = x is y if x is None or y is None else _equal(x, y)
            return same is not negated

        return evaluate

    return build


def conjunction(truths: Sequence[bool | None]) -> bool | None:
    """SQL's AND: one False decides, otherwise one unknown does.

    >>> conjunction([True, None]), conjunction([None, False])
    (None, False)
    """
    if any(truth is False for truth in truths):
        return False
    return None if any(truth is None for truth in truths) else True


def disjunction(truths: Sequence[bool | None]) -> bool | None:
    """SQL's OR: one True decides, otherwise one unknown does.

    >>> disjunction([False, None]), disjunction([None, True])
    (None, True)
    """
    return negation(conjunction([negation(truth) for truth in truths]))


def negation(truth: bool | None) -> bool | None:
    """SQL's NOT: the unknown stays unknown."""
    return None if truth is None else not truth


def _connective(
    combine: Callable[[Sequence[bool | None]], bool | None],
) -> Callable[[exp.Expression], Evaluate]:
    def build(node: exp.Expression) -> Evaluate:
        left, right = _compiled(node.this), _compiled(node.expression)
        return lambda rows, names: combine([left(rows, names), right(rows, names)])

    return build


def _not(node: exp.Expression) -> Evaluate:
    operand = _compiled(node.this)
    return lambda rows, names: negation(operand(rows, names))


def _negative(node: exp.Expression) -> Evaluate:
    operand, minus = _compiled(node.this), _arithmetic(operator.sub, _EXACT.subtract)

    def evaluate(rows: Rows, names: Names) -> Value:
        value = operand(rows, names)
        return None if value is None else minus(0, value)

    return evaluate


def _is(node: exp.Expression) -> Evaluate:
    if not isinstance(node.expression, exp.Null):
        raise _not_interpreted(node)
    operand = _compiled(node.this)
    return lambda rows, names: operand(rows, names) is None


def _comparison(holds: Callable[[Value, Value], bool], x: Value, y: Value) -> bool | None:
    return None if x is None or y is None else holds(x, y)


def _between(node: exp.Expression) -> Evaluate:
    if node.args.get("symmetric"):
        raise _not_interpreted(node)
    operand, low, high = (_compiled(node.args[part]) for part in ("this", "low", "high"))

    def evaluate(rows: Rows, names: Names) -> bool | None:
        value = operand(rows, names)
        above = _comparison(_not_below, value, low(rows, names))
        below = _comparison(_not_above, value, high(rows, names))
        return conjunction([above, below])

    return evaluate


def _in(node: exp.Expression) -> Evaluate:
    if not node.expressions:
        raise _not_interpreted(node)
    operand, members = _compiled(node.this), [_compiled(member) for member in node.expressions]

    def evaluate(rows: Rows, names: Names) -> bool | None:
        value = operand(rows, names)
        return disjunction([_comparison(_equal, value, m(rows, names)) for m in members])

    return evaluate


def _case(node: exp.Expression) -> Evaluate:
    subject = node.this and _compiled(node.this)
    branches = [(_compiled(i.this), _compiled(i.args["true"])) for i in node.args["ifs"]]
    default = _compiled(node.args["default"]) if node.args.get("default") else _constant(None)

    def evaluate(rows: Rows, names: Names) -> Value:
        for when, then in branches:
            truth = when(rows, names)
            if subject:
                truth = _comparison(_equal, subject(rows, names), truth)
            if truth is True:
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
    exp.EQ: _strict(_equal),
    exp.NEQ: _strict(_compared(operator.ne)),
    exp.LT: _strict(_compared(operator.lt)),
    exp.LTE: _strict(_not_above),
    exp.GT: _strict(_compared(operator.gt)),
    exp.GTE: _strict(_not_below),
    exp.NullSafeEQ: _null_safe(negated=False),
    exp.NullSafeNEQ: _null_safe(negated=True),
    exp.And: _connective(conjunction),
    exp.Or: _connective(disjunction),
    exp.Not: _not,
    exp.Is: _is,
    exp.Neg: _negative,
    exp.Add: _strict(_arithmetic(operator.add, _EXACT.add)),
    exp.Sub: _strict(_arithmetic(operator.sub, _EXACT.subtract)),
    exp.Mul: _strict(_arithmetic(operator.mul, _EXACT.multiply)),
    exp.Between: _between,
    exp.In: _in,
    exp.Case: _case,
}
