"""What SQL's operators mean on single values, in plain Python.

A value is an int, Decimal, str, bool, ... or None, which is NULL. A truth is True, False or None,
which is unknown. Every comparison and calculation with NULL is NULL; only `same` tells NULLs alike.

Assumes: both sides of an operator are of one kind (numbers, strings, truths); others are an error,
since what a database does then depends on its casts.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from decimal import Context, Decimal, Inexact
from typing import TypeAlias

from steadyview.algebra import Value
from steadyview.errors import DefiniteError

Truth: TypeAlias = bool | None
Operator: TypeAlias = Callable[[Value, Value], Value]

# Wide enough for the product of any two of Spark's decimals; a lost digit raises.
_EXACT = Context(prec=100, traps=[Inexact])


def conjunction(truths: Sequence[Truth]) -> Truth:
    """SQL's AND: one False decides, otherwise one unknown does.

    >>> conjunction([True, None]), conjunction([None, False])
    (None, False)
    """
    if any(truth is False for truth in truths):
        return False
    return None if any(truth is None for truth in truths) else True


def disjunction(truths: Sequence[Truth]) -> Truth:
    """SQL's OR: one True decides, otherwise one unknown does.

    >>> disjunction([False, None]), disjunction([None, True])
    (None, True)
    """
    return negation(conjunction([negation(truth) for truth in truths]))


def negation(truth: Truth) -> Truth:
    """SQL's NOT: the unknown stays unknown."""
    return None if truth is None else not truth


def same(x: Value, y: Value) -> bool:
    """SQL's `<=>`: never unknown, and NULL is the same as NULL."""
    return x is y if x is None or y is None else equal(x, y) is True


def negative(x: Value) -> Value:
    """The number with the other sign."""
    return subtract(0, x)


def _strict(apply: Operator) -> Operator:
    """NULL as soon as one operand is."""
    return lambda x, y: None if x is None or y is None else apply(x, y)


def _comparison(holds: Callable[[Value, Value], bool]) -> Operator:
    def apply(x: Value, y: Value) -> bool:
        if _kind(x) is not _kind(y):
            raise DefiniteError(f"cannot compare {x!r} with {y!r}", detail="they differ in kind")
        return holds(x, y)

    return _strict(apply)


def _kind(value: Value) -> type:
    """Numbers go with numbers; everything else only with its own type, truths included."""
    return Decimal if type(value) in (int, Decimal) else type(value)


def _calculation(
    integers: Callable[[int, int], int], decimals: Callable[[Decimal, Decimal], Decimal]
) -> Operator:
    def apply(x: Value, y: Value) -> Value:
        if type(x) is int and type(y) is int:
            return integers(x, y)
        if _kind(x) is not Decimal or _kind(y) is not Decimal:
            raise DefiniteError(f"cannot calculate with {x!r} and {y!r}", detail="expected numbers")
        return decimals(Decimal(x), Decimal(y))

    return _strict(apply)


equal = _comparison(operator.eq)
unequal = _comparison(operator.ne)
less = _comparison(operator.lt)
at_most = _comparison(operator.le)
greater = _comparison(operator.gt)
at_least = _comparison(operator.ge)
add = _calculation(operator.add, _EXACT.add)
subtract = _calculation(operator.sub, _EXACT.subtract)
multiply = _calculation(operator.mul, _EXACT.multiply)
