"""Grouped rows with MIN or MAX as two nodes: a fold by group and value, and what gathers it.

    fold     a row per (group, values of the extremes), with the sums of the other aggregates
    gather   per group: extremes over the values, totals of the sums, then HAVING and the outputs

The fold keeps as many rows as a group has different values.
"""

from __future__ import annotations

from steadyview.plans.aggregates import Grouped, GroupedTypes
from steadyview.plans.constant import Constant
from steadyview.plans.dialect import Dialect
from steadyview.plans.filter import Filter
from steadyview.plans.fold import ROWS, Fold, Key
from steadyview.plans.gather import Extreme, Gather, Total
from steadyview.plans.operator import Operator
from steadyview.plans.project import Project
from steadyview.plans.scan import Scan, column
from steadyview.plans.split_join import SplitJoin

_GROUP = "_group"


def values_of(grouped: Grouped) -> tuple[str, ...]:
    """The distinct expressions whose extremes are wanted."""
    return tuple(dict.fromkeys(a.argument for a in grouped.extremes if a.argument is not None))


def inner_fold(
    grouped: Grouped, types: GroupedTypes, value_types: tuple[str, ...], dialect: Dialect
) -> Fold:
    """The fold by group and value; it shows the group's number, keys, values and sums."""
    made = grouped.fold(types)
    values = tuple(
        Key(f"_v{i}", sql, type_)
        for i, (sql, type_) in enumerate(zip(values_of(grouped), value_types, strict=True))
    )
    keys = (*made.keys, *values)
    number = dialect.number([k.name for k in made.keys])
    shown = [number, *(k.name for k in keys), *(s.name for s in made.all_sums)]
    outputs = tuple((f"c{i}", sql) for i, sql in enumerate(shown))
    return Fold(keys, made.sums, outputs, f"CASE WHEN {ROWS} > 0 THEN 1 ELSE 0 END")


def gathering(grouped: Grouped, fold: Fold, types: GroupedTypes) -> Operator:
    """The block that reads the fold's rows as scan 0."""
    plain = grouped.fold(types)
    groups = [k.name for k in plain.keys]
    names = [_GROUP, *(k.name for k in fold.keys), *(s.name for s in fold.all_sums)]
    scan = Scan(0, tuple(range(len(names))))
    named = tuple((name, column(0, i)) for i, name in enumerate(names))
    place = {sql: f"_v{i}" for i, sql in enumerate(values_of(grouped))}
    extremes = tuple(
        Extreme(a.name, "min" if a.function == "min" else "max", place[a.argument])
        for a in grouped.extremes
        if a.argument is not None
    )
    totals = tuple(Total(s.name, s.type) for s in fold.all_sums)
    block: Operator = Gather(Project(scan, named), _GROUP, tuple(groups), totals, extremes)
    if not groups:
        block = _always(block, totals, extremes)
    same = tuple((name, name) for name in (*groups, *(e.name for e in extremes)))
    block = Project(block, same + plain.values)
    if grouped.having:
        block = Filter(block, grouped.having)
    return Project(block, grouped.outputs)


def _always(
    block: Operator, totals: tuple[Total, ...], extremes: tuple[Extreme, ...]
) -> Operator:
    """Without keys there is one row, also of nothing: totals are zero then."""
    joined = SplitJoin("left", Constant(("_one",), (("1",),)), block)
    filled = [(t.name, f"COALESCE({t.name}, CAST(0 AS {t.type}))") for t in totals]
    return Project(joined, (*filled, *((e.name, e.name) for e in extremes)))
