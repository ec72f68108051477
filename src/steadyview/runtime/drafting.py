"""Stopgap: a flat definition as a draft."""

from __future__ import annotations

import re

from steadyview.plans.aggregates import Aggregate, Grouped
from steadyview.plans.draft import Draft, PlanDraft, RelationInput
from steadyview.plans.filter import Filter
from steadyview.plans.inner_join import Equality, InnerJoin
from steadyview.plans.operator import Operator
from steadyview.plans.project import Project
from steadyview.plans.scan import Scan
from steadyview.views.definition import Definition
from steadyview.views.join_tree import join_tree

_REF = re.compile(r"\bt(\d+)\.c(\d+)\b")


def _sql(text: str) -> str:
    return _REF.sub(r"t\1_c\2", text)


def drafted(definition: Definition) -> PlanDraft:
    tree = join_tree(definition)
    block: Operator = _scan(definition, 0, tree.start_conditions(0))
    bound = {0}
    for step in tree.steps(0):
        v = step.edge.v
        right = _scan(definition, v, ())
        equalities, rest = [], []
        for condition in step.conditions:
            found = re.fullmatch(r"t(\d+)\.c(\d+) = t(\d+)\.c(\d+)", condition)
            if found and v in (int(found[1]), int(found[3])) and found[1] != found[3]:
                a, b = (int(found[1]), int(found[2])), (int(found[3]), int(found[4]))
                a, b = (a, b) if b[0] == v else (b, a)
                equalities.append(Equality(f"t{a[0]}_c{a[1]}", f"t{b[0]}_c{b[1]}"))
            else:
                rest.append(f"({_sql(condition)})")
        block = InnerJoin(block, right, tuple(equalities), " AND ".join(rest) or None)
        bound.add(v)
    inputs = tuple(RelationInput(o.relation.name) for o in definition.occurrences)
    names = tuple(o.name for o in definition.outputs)
    grouping = definition.grouping
    if grouping is None:
        outputs = tuple((f"c{i}", _sql(o.sql)) for i, o in enumerate(definition.outputs))
        return PlanDraft((Draft(Project(block, outputs), inputs),), names)
    aggregates: list[Aggregate] = [Aggregate("_count", "count")]
    for a, argument in enumerate(grouping.arguments):
        sql = _sql(argument.sql)
        aggregates.append(Aggregate(f"_nonnull_{a}", "count", sql))
        if argument.summed:
            aggregates.append(Aggregate(f"_visible_sum_{a}", "sum", sql))
            aggregates.append(Aggregate(f"_visible_avg_{a}", "avg", sql))
    keys = tuple((f"_g{i}", _sql(k)) for i, k in enumerate(grouping.keys))
    outputs = tuple((f"c{i}", o.sql) for i, o in enumerate(definition.outputs))
    times = Grouped.__dataclass_fields__["times"].default if keys else "1"
    return PlanDraft((Draft(block, inputs, Grouped(keys, tuple(aggregates), outputs, times)),), names)


def _scan(definition: Definition, number: int, conditions: tuple[str, ...]) -> Operator:
    occurrence = definition.occurrences[number]
    scan: Operator = Scan(number, occurrence.columns)
    parts = [occurrence.filter] if occurrence.filter else []
    parts += [c for c in conditions]
    if parts:
        scan = Filter(scan, " AND ".join(f"({_sql(p)})" for p in parts))
    return scan
