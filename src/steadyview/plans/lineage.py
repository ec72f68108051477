"""Where a column's values come from: columns of scans, unchanged, or an expression.

A column may be looked up if every value it can have other than NULL stands in a column of some
scan. A union has one such column per part; constant rows have none, and need none while they are by
themselves: they never change.
"""

from __future__ import annotations

from dataclasses import dataclass

from steadyview.plans.constant import Constant
from steadyview.plans.extreme import Extreme
from steadyview.plans.operator import Operator
from steadyview.plans.project import Project
from steadyview.plans.scan import Scan, column
from steadyview.plans.union_all import UnionAll


@dataclass(frozen=True, order=True)
class Place:
    """Column `column` of scan `scan`, both by number."""

    scan: int
    column: int


def origin(operator: Operator, name: str) -> tuple[Place, ...] | None:
    """The places where a column's values stand; None where they are computed."""
    found = _origin(operator, name)
    return None if found is None else found.places


def holds_all(operator: Operator, name: str) -> tuple[Place, ...] | None:
    """The places that hold every value of a column but NULL; None where others are possible."""
    found = _origin(operator, name) if name in operator.columns else None
    return None if found is None or found.constant else found.places


@dataclass(frozen=True)
class _Origin:
    """Places, and whether some values are constants, which stand nowhere."""

    places: tuple[Place, ...]
    constant: bool = False


def _origin(operator: Operator, name: str) -> _Origin | None:
    if isinstance(operator, Scan):
        places = {column(operator.number, i): Place(operator.number, i) for i in operator.used}
        return _Origin((places[name],))
    if isinstance(operator, Constant):
        return _Origin((), constant=True)
    if isinstance(operator, Project):
        sql = dict(operator.outputs)[name]
        return _origin(operator.operand, sql) if sql in operator.operand.columns else None
    if isinstance(operator, Extreme):
        return _origin(operator.operand, name) if name in operator.keys else None
    if isinstance(operator, UnionAll):
        place = operator.columns.index(name)
        return _all([_origin(part, part.columns[place]) for part in operator.parts])
    return _passed(operator, name)


def _all(parts: list[_Origin | None]) -> _Origin | None:
    known = [p for p in parts if p is not None]
    if len(known) < len(parts):
        return None
    return _Origin(tuple(p for part in known for p in part.places), any(p.constant for p in known))


def _passed(operator: Operator, name: str) -> _Origin | None:
    """Through a filter or a join; a constant joined with what changes is no longer constant."""
    below = next((o for o in operator.operands if name in o.columns), None)
    found = None if below is None else _origin(below, name)
    joined = len(operator.operands) > 1
    return None if found is None or (found.constant and joined) else found
