"""Grouped rows with MIN or MAX as several nodes: folds below, and a block that joins them.

    values   a fold by group and value, one for each expression whose extremes are wanted
    totals   a fold by group with the sums of the other aggregates, if there are any
    above    per group the extremes over the values, beside the totals; then HAVING and the outputs

All folds are over the query's own block, so that one statement keeps them. A fold by value shows a
row per value, and so says nothing where only the count of a value changes. It keeps as many counts
as a group has different values; what is read of them is told in `ends.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Literal

from steadyview.plans.aggregates import THERE, Aggregate, Grouped, GroupedTypes
from steadyview.plans.constant import Constant
from steadyview.plans.dialect import Dialect
from steadyview.plans.extreme import Extreme
from steadyview.plans.filter import Filter
from steadyview.plans.fold import ROWS, Fold, Key
from steadyview.plans.inner_join import Equality, InnerJoin
from steadyview.plans.operator import Operator
from steadyview.plans.project import Project
from steadyview.plans.scan import Scan, column
from steadyview.plans.split_join import SplitJoin

GROUP = "_group"
ONE_GROUP = Constant((GROUP,), (("0",),))
"""The group of all rows, which is there without any."""
_VALUE = "_value"


@dataclass(frozen=True)
class Extremes:
    """The nodes: `totals` and `values` over the query's block, `block` over these folds' rows.

    `reads[n]` is the place of the fold that scan n of the block reads, the totals first.
    """

    totals: Fold | None
    values: tuple[Fold, ...]
    block: Operator
    reads: tuple[int, ...]

    @property
    def folds(self) -> tuple[Fold, ...]:
        """All that are kept, the totals first."""
        return self.values if self.totals is None else (self.totals, *self.values)


def values_of(grouped: Grouped) -> tuple[str, ...]:
    """The distinct expressions whose extremes are wanted."""
    return tuple(dict.fromkeys(a.argument for a in grouped.extremes if a.argument is not None))


def extremes(
    grouped: Grouped, types: GroupedTypes, value_types: Sequence[str], dialect: Dialect
) -> Extremes:
    """What keeps a query with extremes; `value_types` are those of `values_of`."""
    plain = grouped.fold(types)
    number = dialect.number(plain.key_names)
    typed = zip(values_of(grouped), value_types, strict=True)
    values = tuple(_values(plain, Key(_VALUE, sql, type_), number) for sql, type_ in typed)
    totals = _totals(grouped, plain, number)
    first = 0 if totals is None else 1
    places = [first + values_of(grouped).index(a.argument or "") for a in grouped.extremes]
    reads = (*range(first), *places)
    return Extremes(totals, values, _above(grouped, plain, totals), reads)


def _shown(number: str, names: Sequence[str]) -> tuple[tuple[str, str], ...]:
    return tuple((f"c{i}", sql) for i, sql in enumerate([number, *names]))


def _values(plain: Fold, value: Key, number: str) -> Fold:
    """A count per group and value; it shows the group's number, the keys and the value."""
    keys = (*plain.keys, value)
    return Fold(keys, (), _shown(number, [k.name for k in keys]), THERE)


def _totals(grouped: Grouped, plain: Fold, number: str) -> Fold | None:
    """The sums of the other aggregates; it shows the group's number, the keys and the sums."""
    names = _summed(grouped, plain)
    if not names:
        return None
    return Fold(plain.keys, plain.sums, _shown(number, [*plain.key_names, *names]), plain.times)


def _summed(grouped: Grouped, plain: Fold) -> list[str]:
    """The names of the sums that some aggregate needs."""
    counted = any(a.argument is None for a in grouped.aggregates)
    return [*([ROWS] if counted else []), *(s.name for s in plain.sums)]


def _above(grouped: Grouped, plain: Fold, totals: Fold | None) -> Operator:
    keys = plain.key_names
    parts: list[Operator] = []
    if totals is not None:
        parts.append(_read(0, [GROUP, *keys, *_summed(grouped, plain)]))
    elif not keys:
        parts.append(ONE_GROUP)
    first = 0 if totals is None else 1
    parts += [
        _extreme(first + i, a, keys, alone=not parts and i == 0)
        for i, a in enumerate(grouped.extremes)
    ]
    block = reduce(lambda left, right: _beside(left, right, keys), parts)
    same = tuple((name, name) for name in (*keys, *(a.name for a in grouped.extremes)))
    block = Project(block, same + plain.values)
    if grouped.having:
        block = Filter(block, grouped.having)
    return Project(block, grouped.outputs)


def _read(scan: int, names: Sequence[str]) -> Project:
    read = Scan(scan, tuple(range(len(names))))
    return Project(read, tuple((name, column(scan, i)) for i, name in enumerate(names)))


def _extreme(scan: int, wanted: Aggregate, keys: Sequence[str], *, alone: bool) -> Extreme:
    """One extreme per group; `alone`: its keys have the names that the outputs know."""
    names = [GROUP, *keys] if alone else [_of(scan, name) for name in (GROUP, *keys)]
    value = _of(scan, _VALUE)
    function: Literal["min", "max"] = "min" if wanted.function == "min" else "max"
    rows = _read(scan, [*names, value])
    return Extreme(rows, names[0], tuple(names), function, value, wanted.name)


def _of(scan: int, name: str) -> str:
    return f"{name}_{scan}"


def _beside(left: Operator, right: Operator, keys: Sequence[str]) -> Operator:
    """Both of a group; without keys there is one row, also of nothing."""
    assert isinstance(right, Extreme)
    found, *others = right.keys
    on = (
        Equality(GROUP, found),
        *(Equality(key, other, null_safe=True) for key, other in zip(keys, others, strict=True)),
    )
    return InnerJoin(left, right, on) if keys else SplitJoin("left", left, right, on)
