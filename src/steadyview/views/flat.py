"""Queries that are one block: a join of tables on conditions, perhaps with groups on top.

    SELECT outputs FROM t0, t1, ... WHERE condition AND ... [GROUP BY keys [HAVING ...]]

Whatever the text is made of (ON, USING, subqueries in FROM, WITH), a flat query says the same in
this one form. Expressions are bound: column i of occurrence o is `t{o}_c{i}`, and aggregates are
calls over such columns, `COUNT(*)` and `SUM(t0_c1)`. The AND of all conditions is the AND of all
ON, USING and WHERE.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from steadyview.changes import RelationName
from steadyview.plans.aggregates import Aggregate, Grouped
from steadyview.plans.draft import Draft, RelationInput
from steadyview.plans.filter import Filter
from steadyview.plans.inner_join import InnerJoin
from steadyview.plans.operator import Operator, walk
from steadyview.plans.project import Project
from steadyview.plans.scan import Scan
from steadyview.views.fusing import expression
from steadyview.views.trees import column, conjuncts, substituted, unbracketed

_CALLS = {"count": "COUNT", "sum": "SUM", "avg": "AVG", "min": "MIN", "max": "MAX"}


@dataclass(frozen=True)
class FlatQuery:
    """`tables[o]` is what occurrence o reads. `grouped`: whether its rows are groups.

    Groups without keys are one group of all rows; DISTINCT is GROUP BY all outputs. Outputs and
    HAVING of groups speak of keys and aggregates by what these are, not by names.
    """

    tables: tuple[RelationName, ...]
    conditions: tuple[exp.Expression, ...]
    outputs: tuple[exp.Expression, ...]
    grouped: bool = False
    keys: tuple[exp.Expression, ...] = ()
    having: tuple[exp.Expression, ...] = ()

    @property
    def distinct(self) -> bool:
        """Whether its groups show nothing but their keys."""
        return self.grouped and not any(map(is_aggregating, (*self.outputs, *self.having)))


def flat_query(draft: Draft) -> FlatQuery | None:
    """The draft in this form; None if it is more."""
    tables = [i.relation for i in draft.inputs if isinstance(i, RelationInput)]
    if not is_flat(draft) or len(tables) < len(draft.inputs):
        return None
    found = tuple(conditions(draft.block))
    grouped = draft.grouped
    if grouped is None:
        assert isinstance(draft.block, Project)
        outputs = tuple(expression(sql) for _, sql in draft.block.outputs)
        return FlatQuery(tuple(tables), found, outputs)
    if isinstance(draft.block, Project):
        return None
    values = _values(grouped)
    having = tuple(conjuncts(expression(grouped.having))) if grouped.having else ()
    return FlatQuery(
        tuple(tables),
        found,
        tuple(unbracketed(substituted(expression(sql), values)) for _, sql in grouped.outputs),
        grouped=True,
        keys=tuple(expression(sql) for _, sql in grouped.keys),
        having=tuple(unbracketed(substituted(part, values)) for part in having),
    )


def is_flat(draft: Draft) -> bool:
    """Whether it is an inner join of tables, perhaps grouped by plain aggregates."""
    operators = [draft.block.operand] if isinstance(draft.block, Project) else [draft.block]
    flat = all(isinstance(o, (Scan, Filter, InnerJoin)) for o in walk(operators[0]))
    plain = all(isinstance(i, RelationInput) for i in draft.inputs) and bool(draft.inputs)
    tallied = draft.grouped is not None and draft.grouped.role == "sides"
    return flat and plain and not tallied


def conditions(operator: Operator) -> Iterator[exp.Expression]:
    """All that the block asks of its rows, from below."""
    for operand in operator.operands:
        yield from conditions(operand)
    if isinstance(operator, Filter):
        yield from conjuncts(expression(operator.condition))
    if isinstance(operator, InnerJoin):
        for e in operator.equalities:
            kind = exp.NullSafeEQ if e.null_safe else exp.EQ
            yield kind(this=column(e.left), expression=column(e.right))
        if operator.condition is not None:
            yield from conjuncts(expression(operator.condition))


def aggregate_call(node: exp.Expr) -> str | None:
    """Which aggregate the node calls, "COUNT DISTINCT" among them; None if it calls none."""
    if not isinstance(node, exp.Anonymous) or str(node.name).upper() not in _CALLS.values():
        return None
    distinct = any(isinstance(e, exp.Distinct) for e in node.expressions)
    return f"{str(node.name).upper()}{' DISTINCT' if distinct else ''}"


def call(name: str, argument: exp.Expression) -> exp.Anonymous:
    """A call of one argument."""
    return exp.Anonymous(this=name, expressions=[argument])


def is_aggregating(node: exp.Expression) -> bool:
    """Whether an aggregate is called in the expression."""
    return any(aggregate_call(found) for found in node.find_all(exp.Anonymous))


def _values(grouped: Grouped) -> dict[str, exp.Expression]:
    """What the names of keys and aggregates stand for."""
    keys = {name: expression(sql) for name, sql in grouped.keys}
    return keys | {a.name: _call(a) for a in grouped.aggregates}


def _call(aggregate: Aggregate) -> exp.Expression:
    if aggregate.argument is None:
        return call("COUNT", exp.Star())
    argument = expression(aggregate.argument)
    if aggregate.function == "count_distinct":
        return call("COUNT", exp.Distinct(expressions=[argument]))
    return call(_CALLS[aggregate.function], argument)
