"""From joined rows to what a reader sees, and when two readings are the same.

A SELECT-PROJECT-JOIN view shows its outputs, an aggregate view one row per group. The group of a
global aggregate is always there.

Values are compared as Python compares them, but for two cases, which are told apart first, in the
view and in a recorded state alike: a calculated truth is never the number 1 or 0; and an average,
which has no exact decimal, is the double nearest to it (as Spark's AVG of whole numbers is).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import isfinite
from typing import TypeAlias

from steadyview.algebra import Row, Value
from steadyview.checking.flat_rows import Layout, plain_column
from steadyview.errors import DefiniteError
from steadyview.views.definition import Definition, Grouping
from steadyview.views.interpret import interpret
from steadyview.views.sql_values import add, multiply

State: TypeAlias = dict[Row, int]
"""What a reader sees: rows with counts, none of them zero."""
Visible: TypeAlias = Callable[[Sequence[tuple[Row, int]]], State]
Tell: TypeAlias = Callable[[Value], Value]

_KEY = re.compile(r"_g(\d+)")


@dataclass(frozen=True)
class Shown:
    """A visible column. `column`: the (occurrence, column) it shows as it is, None: a calculation.

    `tell` makes values comparable; None: they are as they are.
    """

    name: str
    column: tuple[int, int] | None
    tell: Tell | None


def visible_of(definition: Definition, layout: Layout) -> tuple[Visible, tuple[Shown, ...]]:
    """What is made of joined rows, and of which columns it is."""
    if definition.grouping is None:
        columns = [plain_column(output.sql) for output in definition.outputs]
    else:
        columns = [_key_column(output.sql, definition.grouping) for output in definition.outputs]
    shown = tuple(
        Shown(output.name, column, None if column else _teller(output.sql))
        for output, column in zip(definition.outputs, columns, strict=True)
    )
    if definition.grouping is None:
        return _projection(definition, layout, shown), shown
    return _Aggregation(definition, layout, shown).visible, shown


def told(shown: Sequence[Shown], row: Row) -> Row:
    """The row as something to compare."""
    return tuple([s.tell(v) if s.tell else v for s, v in zip(shown, row, strict=True)])


def untold(row: Row) -> Row:
    """The row that was made comparable, as a reader sees it."""
    return tuple([_as_seen(value) for value in row])


def _as_seen(value: Value) -> Value:
    if type(value) is tuple:
        return value[0]
    return Decimal(repr(value)) if type(value) is float else value


def _key_column(sql: str, grouping: Grouping) -> tuple[int, int] | None:
    key = _KEY.fullmatch(sql)
    return plain_column(grouping.keys[int(key[1])]) if key else None


def _teller(sql: str) -> Tell:
    return _average if "_visible_avg_" in sql else _truth


def _truth(value: Value) -> Value:
    return (value,) if type(value) is bool else value


def _average(value: Value) -> Value:
    if type(value) not in (int, Decimal, Fraction):
        return _truth(value)
    try:
        double = float(value)
    except OverflowError:
        return value
    return double if isfinite(double) else value


def _projection(definition: Definition, layout: Layout, shown: Sequence[Shown]) -> Visible:
    output = layout.values([output.sql for output in definition.outputs])
    calculated = any(s.tell for s in shown)

    def visible(joined: Sequence[tuple[Row, int]]) -> State:
        state: State = {}
        for flat, count in joined:
            row = told(shown, output(flat)) if calculated else output(flat)
            state[row] = state.get(row, 0) + count
        return state

    return visible


class _Aggregation:
    """Groups by the values of the keys; per argument the number and the sum of its values."""

    def __init__(self, definition: Definition, layout: Layout, shown: Sequence[Shown]) -> None:
        grouping = definition.grouping
        assert grouping is not None
        self._shown = shown
        self._outputs = [interpret(output.sql) for output in definition.outputs]
        self._keys = layout.values(grouping.keys)
        self._has_keys = bool(grouping.keys)
        self._arguments = layout.values([argument.sql for argument in grouping.arguments])
        self._summed = [argument.summed for argument in grouping.arguments]

    def visible(self, joined: Sequence[tuple[Row, int]]) -> State:
        groups: dict[Row, _Group] = {} if self._has_keys else {(): _Group(len(self._summed))}
        for flat, count in joined:
            key = self._keys(flat)
            if key not in groups:
                groups[key] = _Group(len(self._summed))
            groups[key].add(self._arguments(flat), count, self._summed)
        state: State = {}
        for key, group in groups.items():
            names = group.names(key)
            row = told(self._shown, tuple([output((), names) for output in self._outputs]))
            state[row] = state.get(row, 0) + 1
        return state


class _Group:
    """COUNT(*), and per argument how many values it has and their exact sum."""

    def __init__(self, arguments: int) -> None:
        self._count = 0
        self._nonnull = [0] * arguments
        self._sums: list[Value] = [0] * arguments

    def add(self, values: Row, count: int, summed: Sequence[bool]) -> None:
        self._count += count
        for a, value in enumerate(values):
            if value is not None:
                self._nonnull[a] += count
                if summed[a]:
                    self._sums[a] = add(self._sums[a], multiply(value, count))

    def names(self, key: Row) -> Mapping[str, Value]:
        names: dict[str, Value] = {"_count": self._count}
        names |= {f"_g{g}": value for g, value in enumerate(key)}
        for a, (nonnull, total) in enumerate(zip(self._nonnull, self._sums, strict=True)):
            names[f"_nonnull_{a}"] = nonnull
            names[f"_visible_sum_{a}"] = total if nonnull else None
            names[f"_visible_avg_{a}"] = _quotient(total, nonnull) if nonnull else None
        return names


def _quotient(total: Value, count: int) -> Decimal:
    """The double nearest to the quotient, as the shortest decimal that names it."""
    try:
        return Decimal(repr(float(Fraction(total) / count)))
    except OverflowError:
        raise DefiniteError("an average of the view is too large for a double") from None
