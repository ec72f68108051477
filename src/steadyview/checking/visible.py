"""From joined rows to what a reader sees, and when two readings are the same.

A SELECT-PROJECT-JOIN view shows its outputs, an aggregate view one row per group. The group of a
global aggregate is always there.

Values are compared as Python compares them, but for two cases, which are told apart first, in the
view and in a recorded state alike: a calculated truth is never the number 1 or 0; and an average
may have been rounded (`averages`). A calculation with averages is made with doubles, and compared
as a double.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TypeAlias

from steadyview.algebra import Row, Value
from steadyview.checking.averages import Average, Exact, nearest_double
from steadyview.checking.flat_rows import Layout, plain_column
from steadyview.views.definition import Definition, Grouping
from steadyview.views.interpret import Evaluate, interpret
from steadyview.views.sql_values import add, multiply

State: TypeAlias = dict[Row, int]
"""What a reader sees: rows with counts, none of them zero."""
Visible: TypeAlias = Callable[[Sequence[tuple[Row, int]]], State]
Tell: TypeAlias = Callable[[Value], Value]

_KEY = re.compile(r"_g(\d+)")
_AVERAGE = re.compile(r"_visible_avg_(\d+)")
_NUMBERS = (int, Decimal, Fraction, float)


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
    if isinstance(value, Exact):
        return Decimal(value.value.numerator) / value.value.denominator
    return value.value if isinstance(value, Average) else value


def _key_column(sql: str, grouping: Grouping) -> tuple[int, int] | None:
    key = _KEY.fullmatch(sql)
    return plain_column(grouping.keys[int(key[1])]) if key else None


def _teller(sql: str) -> Tell:
    if _AVERAGE.fullmatch(sql):
        return _average
    return _double if "_visible_avg_" in sql else _truth


def _truth(value: Value) -> Value:
    return (value,) if type(value) is bool else value


def _average(value: Value) -> Value:
    return Average(value) if type(value) in _NUMBERS else _truth(value)


def _double(value: Value) -> Value:
    return nearest_double(value) if type(value) in _NUMBERS else _truth(value)


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
        self._outputs = [_output(output.sql) for output in definition.outputs]
        self._keys = layout.values(grouping.keys)
        self._has_keys = bool(grouping.keys)
        self._arguments = layout.values([argument.sql for argument in grouping.arguments])
        self._summed = [argument.summed for argument in grouping.arguments]
        averages = [re.findall(_AVERAGE, output.sql) for output in definition.outputs]
        self._averaged = {int(number) for numbers in averages for number in numbers}

    def visible(self, joined: Sequence[tuple[Row, int]]) -> State:
        groups: dict[Row, _Group] = {} if self._has_keys else {(): _Group(len(self._summed))}
        for flat, count in joined:
            key = self._keys(flat)
            if key not in groups:
                groups[key] = _Group(len(self._summed))
            groups[key].add(self._arguments(flat), count, self._summed)
        state: State = {}
        for key, group in groups.items():
            names = {**group.names(key), **dict(group.averages(self._averaged))}
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
        return names

    def averages(self, arguments: Iterable[int]) -> Iterator[tuple[str, Value]]:
        """The averages of these arguments: exact, and as something to calculate with."""
        for a in arguments:
            total, nonnull = self._sums[a], self._nonnull[a]
            average = Exact(Fraction(total) / nonnull, type(total) is Decimal) if nonnull else None
            yield f"_exact_avg_{a}", average
            yield f"_visible_avg_{a}", average and _shortest(average)


def _output(sql: str) -> Evaluate:
    """An average that is shown as it is stays exact; everything else is interpreted."""
    average = _AVERAGE.fullmatch(sql)
    if average is None:
        return interpret(sql)
    name = f"_exact_avg_{average[1]}"
    return lambda _, names: names[name]


def _shortest(average: Exact) -> Decimal:
    """The nearest double, as the shortest decimal that names it."""
    double = nearest_double(average.value)
    return Decimal(repr(double)) if type(double) is float else Decimal(int(average.value))
