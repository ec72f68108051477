"""What one row of a relation becomes in a view's block, evaluated in plain Python, exactly or not.

For views whose records are kept straight from the update log: no engine stands between a row image
and a record. A block of scans, filters, projections and UNION ALL is linear, so that

    rows of the block  =  the sum, over base rows, of what each becomes alone

Expressions are those of `interpret`, and only where Spark would convert nothing: numbers are
compared with numbers, texts with texts, and arithmetic is on whole numbers. Whatever else there is
raises NotByRecord when it is compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import sqlglot
from sqlglot import exp

from steadyview.algebra import Value
from steadyview.errors import DefiniteError
from steadyview.plans.filter import Filter
from steadyview.plans.operator import Operator
from steadyview.plans.project import Project
from steadyview.plans.scan import Scan, column
from steadyview.plans.union_all import UnionAll
from steadyview.views.interpret import interpret

Named = dict[str, Value]
"""A row by the names that the block has for its columns."""
RowOf = Callable[[Named], Named | None]
Types = Mapping[str, str]
_WHOLE = ("TINYINT", "SMALLINT", "INT", "BIGINT")
_COMPARED = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ)
_COMPUTED = (exp.Add, exp.Sub, exp.Mul, exp.Neg)
_LOGICAL = (exp.And, exp.Or, exp.Not)


class NotByRecord(Exception):
    """Why the view's records cannot be kept straight from the update log."""


def rows_of_scan(block: Operator, inputs: Sequence[Mapping[int, str]], number: int) -> RowOf:
    """What a row of scan `number` becomes at the top of the block; None: it is filtered out."""
    found, _ = _way(block, inputs, number)
    if found is None:
        raise NotByRecord("a table is read in a way of its own")
    return found


def block_types(block: Operator, inputs: Sequence[Mapping[int, str]]) -> Types:
    """The kinds of the block's columns: whole, number, text, truth, or Spark's type itself."""
    return _way(block, inputs, -1)[1]


def evaluated(sql: str, types: Types) -> Callable[[Named], Value]:
    """An expression over the block's columns; NotByRecord where its value could be another."""
    kind(sql, types)
    try:
        found = interpret(sql)
    except DefiniteError as error:
        raise NotByRecord(f"{sql} is computed by Spark alone") from error
    return lambda names: found((), names)


def kind(sql: str, types: Types) -> str:
    """What sort of value an expression has."""
    tree = sqlglot.parse_one(sql, read="spark")
    assert isinstance(tree, exp.Expression)
    return _kind(tree, types)


def _way(
    operator: Operator, inputs: Sequence[Mapping[int, str]], number: int
) -> tuple[RowOf | None, Types]:
    if isinstance(operator, Scan):
        read = inputs[operator.number]
        kinds = {column(operator.number, i): _of_type(read[i]) for i in operator.used}
        return (dict if operator.number == number else None), kinds
    if isinstance(operator, Filter):
        below, types = _way(operator.operand, inputs, number)
        return _filtered(below, evaluated(operator.condition, types)), types
    if isinstance(operator, Project):
        below, types = _way(operator.operand, inputs, number)
        values = [(name, evaluated(sql, types)) for name, sql in operator.outputs]
        return _projected(below, values), {n: kind(sql, types) for n, sql in operator.outputs}
    if isinstance(operator, UnionAll):
        return _united(operator, inputs, number)
    raise NotByRecord(f"it is more than a selection: it has a {type(operator).__name__}")


def _filtered(below: RowOf | None, holds: Callable[[Named], Value]) -> RowOf | None:
    if below is None:
        return None

    def row(base: Named) -> Named | None:
        found = below(base)
        return found if found is not None and holds(found) is True else None

    return row


def _projected(
    below: RowOf | None, values: Sequence[tuple[str, Callable[[Named], Value]]]
) -> RowOf | None:
    if below is None:
        return None

    def row(base: Named) -> Named | None:
        found = below(base)
        return None if found is None else {name: value(found) for name, value in values}

    return row


def _united(
    union: UnionAll, inputs: Sequence[Mapping[int, str]], number: int
) -> tuple[RowOf | None, Types]:
    parts = [_way(part, inputs, number) for part in union.parts]
    pairs = [*zip(union.parts, parts, strict=True)]
    sides = [[types[c] for c in part.columns] for part, (_, types) in pairs]
    for found in zip(*sides, strict=True):
        if len(set(found) - {"null"}) > 1:
            raise NotByRecord("its sides have columns of different types")
    kinds = dict(zip(union.columns, sides[0], strict=True))
    for part, (below, _) in pairs:
        if below is not None:
            names = zip(part.columns, union.columns, strict=True)
            return _projected(below, [(new, _named(old)) for old, new in names]), kinds
    return None, kinds


def _named(name: str) -> Callable[[Named], Value]:
    return lambda names: names[name]


def _of_type(type_: str) -> str:
    if type_ in _WHOLE:
        return "whole"
    if type_.startswith("DECIMAL"):
        return "number"
    return {"STRING": "text", "BOOLEAN": "truth"}.get(type_, type_)


def _kind(node: exp.Expression, types: Types) -> str:
    if isinstance(node, exp.Paren):
        return _kind(node.this, types)
    if isinstance(node, exp.Column):
        return types[node.name]
    if isinstance(node, exp.Literal):
        return "text" if node.is_string else "whole" if node.name.isdigit() else "number"
    if isinstance(node, (exp.Null, exp.Boolean)):
        return "null" if isinstance(node, exp.Null) else "truth"
    if isinstance(node, exp.Is):
        _kind(node.this, types)
        return "truth"
    return _computed(node, types)


def _computed(node: exp.Expression, types: Types) -> str:
    below = [_kind(child, types) for child in node.iter_expressions()]
    if isinstance(node, _LOGICAL):
        return _only(node, below, {"truth"})
    if isinstance(node, (*_COMPARED, exp.Between, exp.In)):
        alike = {"number" if b == "whole" else b for b in below} - {"null"}
        if len(alike) > 1 or not alike <= {"number", "text", "truth"}:
            raise NotByRecord(f"{node.sql('spark')} compares values of other types")
        return "truth"
    if isinstance(node, _COMPUTED):
        return _only(node, below, {"whole"})
    raise NotByRecord(f"{node.sql('spark')} is computed by Spark alone")


def _only(node: exp.Expression, below: Sequence[str], wanted: set[str]) -> str:
    if not set(below) <= {*wanted, "null"}:
        raise NotByRecord(f"{node.sql('spark')} converts types")
    return next(iter(wanted))
