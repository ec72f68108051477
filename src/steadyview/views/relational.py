"""Relations in the making: what FROM, WHERE and subqueries become before they are operators.

Conditions sink as they are put on: through projections and unions, to one side of an inner join, to
the kept side of LEFT, semi, anti and mark joins; never to a side that is padded. An inner join has
any number of parts; `finished` chooses their order, so that every join has an equality if it can.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from sqlglot import exp

from steadyview.plans.constant import Constant
from steadyview.plans.filter import Filter
from steadyview.plans.inner_join import Equality, InnerJoin
from steadyview.plans.operator import Operator
from steadyview.plans.project import Project
from steadyview.plans.scan import Scan
from steadyview.plans.scan import column as scan_column
from steadyview.plans.split_join import Kind, SplitJoin
from steadyview.plans.union_all import UnionAll
from steadyview.views.dialect import written
from steadyview.views.trees import (
    all_names,
    column,
    conjunction,
    names,
    plain,
    substituted,
    unbracketed,
)

Conditions: TypeAlias = "tuple[exp.Expression, ...]"


@dataclass(frozen=True)
class Scanned:
    """An input with `width` columns; `spare` is read where none is needed."""

    number: int
    width: int
    spare: int = 0

    @property
    def columns(self) -> tuple[str, ...]:
        """All of the input's."""
        return tuple(scan_column(self.number, i) for i in range(self.width))


@dataclass(frozen=True)
class Constants:
    """Rows that were written down."""

    columns: tuple[str, ...]
    rows: tuple[tuple[exp.Expression, ...], ...]


@dataclass(frozen=True)
class Filtered:
    """The rows that meet all conditions."""

    below: Relational
    conditions: Conditions

    @property
    def columns(self) -> tuple[str, ...]:
        """Those below."""
        return self.below.columns


@dataclass(frozen=True)
class Projected:
    """New columns."""

    below: Relational
    outputs: tuple[tuple[str, exp.Expression], ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The new ones."""
        return tuple(name for name, _ in self.outputs)


@dataclass(frozen=True)
class Joined:
    """The inner join of all parts on all conditions."""

    parts: tuple[Relational, ...]
    conditions: Conditions

    @property
    def columns(self) -> tuple[str, ...]:
        """Those of all parts."""
        return tuple(c for part in self.parts for c in part.columns)


@dataclass(frozen=True)
class Halved:
    """LEFT, FULL, semi, anti and mark joins."""

    kind: Kind
    left: Relational
    right: Relational
    conditions: Conditions
    mark: str = ""

    @property
    def columns(self) -> tuple[str, ...]:
        """As in `SplitJoin`."""
        if self.kind in ("left", "full"):
            return self.left.columns + self.right.columns
        return (*self.left.columns, self.mark) if self.kind == "mark" else self.left.columns


@dataclass(frozen=True)
class Added:
    """UNION ALL."""

    parts: tuple[Relational, ...]
    columns: tuple[str, ...]


Relational: TypeAlias = "Scanned | Constants | Filtered | Projected | Joined | Halved | Added"
NOTHING = Constants((), ((),))
"""One row without columns: what a SELECT without FROM reads."""


def filtered(below: Relational, conditions: Sequence[exp.Expression]) -> Relational:
    """The rows that meet the conditions, each as far down as it means the same."""
    for condition in conditions:
        below = _filtered(below, condition)
    return below


def _filtered(below: Relational, condition: exp.Expression) -> Relational:
    needed = names(condition)
    if isinstance(below, Projected):
        lowered = substituted(condition, dict(below.outputs))
        return Projected(_filtered(below.below, lowered), below.outputs)
    if isinstance(below, Added):
        parts = [_filtered(p, _renamed(condition, below.columns, p.columns)) for p in below.parts]
        return Added(tuple(parts), below.columns)
    if isinstance(below, Joined):
        return _sunk(below, condition)
    sinks = isinstance(below, Halved) and below.kind != "full" and needed
    if isinstance(below, Halved) and sinks and needed <= set(below.left.columns):
        left = _filtered(below.left, condition)
        return Halved(below.kind, left, below.right, below.conditions, below.mark)
    if isinstance(below, Filtered):
        lower = _filtered(below.below, condition)
        if not isinstance(lower, Filtered) or lower.below is not below.below:
            return Filtered(lower, below.conditions)
        return Filtered(below.below, (*below.conditions, condition))
    return Filtered(below, (condition,))


def _renamed(condition: exp.Expression, old: Sequence[str], new: Sequence[str]) -> exp.Expression:
    return substituted(condition, {a: column(b) for a, b in zip(old, new, strict=True)})


def _sunk(below: Joined, condition: exp.Expression) -> Relational:
    needed = names(condition)
    for i, part in enumerate(below.parts):
        if needed and needed <= set(part.columns):
            parts = (*below.parts[:i], _filtered(part, condition), *below.parts[i + 1 :])
            return Joined(parts, below.conditions)
    return Joined(below.parts, (*below.conditions, condition))


def joined(
    left: Relational, right: Relational, conditions: Sequence[exp.Expression] = ()
) -> Relational:
    """The inner join."""
    parts: list[Relational] = []
    held: list[exp.Expression] = []
    for side in (left, right):
        if isinstance(side, Joined):
            parts += side.parts
            held += side.conditions
        elif side is not NOTHING:
            parts.append(side)
    if len(parts) < 2:
        return filtered(parts[0] if parts else NOTHING, [*held, *conditions])
    return filtered(Joined(tuple(parts), tuple(held)), conditions)


def halved(
    kind: Kind,
    left: Relational,
    right: Relational,
    conditions: Sequence[exp.Expression],
    mark: str = "",
) -> Relational:
    """The join; its conditions over the inner side alone go there, and a semi join's to both."""
    kept: list[exp.Expression] = []
    for condition in conditions:
        needed = names(condition)
        if kind != "full" and needed and needed <= set(right.columns):
            right = filtered(right, [condition])
        elif kind == "semi" and needed and needed <= set(left.columns):
            left = filtered(left, [condition])
        else:
            kept.append(condition)
    return Halved(kind, left, right, tuple(kept), mark)


def finished(relation: Relational, needed: frozenset[str]) -> Operator:
    """The operator that gives the needed columns (and perhaps others)."""
    if isinstance(relation, Scanned):
        used = [i for i, c in enumerate(relation.columns) if c in needed]
        return Scan(relation.number, tuple(used or [relation.spare][: relation.width]))
    if isinstance(relation, Constants):
        kept = [i for i, c in enumerate(relation.columns) if c in needed]
        rows = tuple(tuple(written(row[i]) for i in kept) for row in relation.rows)
        return Constant(tuple(relation.columns[i] for i in kept), rows)
    if isinstance(relation, Filtered):
        below = finished(relation.below, needed | all_names(relation.conditions))
        return Filter(below, _all(relation.conditions))
    if isinstance(relation, Projected):
        outputs = [(n, e) for n, e in relation.outputs if n in needed]
        below = finished(relation.below, all_names(e for _, e in outputs))
        return Project(below, tuple((n, written(unbracketed(e))) for n, e in outputs))
    if isinstance(relation, Added):
        return _added(relation, needed)
    if isinstance(relation, Halved):
        return _halved(relation, needed)
    return _ordered(relation, needed)


def _all(conditions: Sequence[exp.Expression]) -> str:
    whole = conjunction(conditions)
    assert whole is not None
    return written(whole)


def _added(relation: Added, needed: frozenset[str]) -> Operator:
    kept = [i for i, c in enumerate(relation.columns) if c in needed]
    parts = []
    for part in relation.parts:
        wanted = tuple(part.columns[i] for i in kept)
        below = finished(part, frozenset(wanted))
        if below.columns != wanted:
            below = Project(below, tuple((f"u_{c}", c) for c in wanted))
        parts.append(below)
    return UnionAll(tuple(parts), tuple(relation.columns[i] for i in kept))


def _halved(relation: Halved, needed: frozenset[str]) -> Operator:
    needed |= all_names(relation.conditions)
    left, right = (
        finished(side, needed & frozenset(side.columns)) for side in (relation.left, relation.right)
    )
    equalities, others = _sorted(relation.conditions, left.columns, right.columns)
    condition = _all(others) if others else None
    return SplitJoin(relation.kind, left, right, equalities, condition, relation.mark)


def _sorted(
    conditions: Sequence[exp.Expression], left: Sequence[str], right: Sequence[str]
) -> tuple[tuple[Equality, ...], list[exp.Expression]]:
    """The equalities between the two sides, and the rest."""
    equalities: dict[Equality, None] = {}
    others: list[exp.Expression] = []
    for condition in conditions:
        pair = equated(condition)
        if pair and pair[0] in left and pair[1] in right:
            equalities[Equality(pair[0], pair[1], pair[2])] = None
        elif pair and pair[1] in left and pair[0] in right:
            equalities[Equality(pair[1], pair[0], pair[2])] = None
        else:
            others.append(condition)
    return tuple(equalities), others


def equated(condition: exp.Expression) -> tuple[str, str, bool] | None:
    """The two columns that the condition says are equal, and whether NULL equals NULL in it."""
    bare = unbracketed(condition)
    if not isinstance(bare, (exp.EQ, exp.NullSafeEQ)):
        return None
    left, right = plain(bare.this), plain(bare.expression)
    if left is None or right is None:
        return None
    return left, right, isinstance(bare, exp.NullSafeEQ)


def _ordered(relation: Joined, needed: frozenset[str]) -> Operator:
    """One join after the other, each with the nearest part that is left."""
    needed |= all_names(relation.conditions)
    waiting = [finished(part, needed & frozenset(part.columns)) for part in relation.parts]
    held = list(relation.conditions)
    made = waiting.pop(0)
    while waiting:
        at = min(range(len(waiting)), key=lambda i: (_distance(made, waiting[i], held), i))
        if _distance(made, waiting[at], held) == _FAR and len(waiting) > 1:
            at, made = _island(made, waiting, held), made
        made, held = _join(made, waiting.pop(at), held)
    return Filter(made, _all(held)) if held else made


_KEYED, _SAFE, _MET, _FAR = range(4)


def _distance(left: Operator, right: Operator, conditions: Sequence[exp.Expression]) -> int:
    own, other = set(left.columns), set(right.columns)
    best = _FAR
    for condition in conditions:
        needed = names(condition)
        if not (needed & own and needed & other):
            continue
        pair = equated(condition)
        best = min(best, _MET if pair is None else _SAFE if pair[2] else _KEYED)
    return best


def _island(made: Operator, waiting: list[Operator], held: list[exp.Expression]) -> int:
    """What is far from all that was joined: its own parts are joined first, as one."""
    island = waiting.pop(0)
    while True:
        near = [i for i, w in enumerate(waiting) if _distance(island, w, held) == _KEYED]
        if not near:
            break
        island, rest = _join(island, waiting.pop(near[0]), held)
        held[:] = rest
    waiting.insert(0, island)
    return 0


def _join(
    left: Operator, right: Operator, conditions: Sequence[exp.Expression]
) -> tuple[Operator, list[exp.Expression]]:
    """The join of two, with all conditions that it can meet; and the conditions that are left."""
    both = set(left.columns) | set(right.columns)
    now = [c for c in conditions if names(c) and names(c) <= both]
    later = [c for c in conditions if not (names(c) and names(c) <= both)]
    equalities, others = _sorted(now, left.columns, right.columns)
    return InnerJoin(left, right, equalities, _all(others) if others else None), later
