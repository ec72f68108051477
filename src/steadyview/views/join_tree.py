"""A spanning tree over a view's occurrences, and how conditions fall to its steps.

A sweep looks partners up along directed edges u -> v of one tree, 2(n-1) of them, whatever the join
graph. The tree is a cheapest one: pairs are taken in the order

    keyed and indexed < keyed < an equality without a key < another condition < nothing (cross)

by the worse of the pair's two directions, then by the better one, then by number.

Invariant of `steps(i)`: every condition of the view is applied exactly once, at the first step (or
at the start) where all its occurrences are bound.

A lookup by key is only offered where the source's equality covers Spark's (`Column.keyable`) and
the two columns compare without a cast that changes equality. Everything else is read whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

from steadyview.views.definition import Definition, EqualColumns

_DECIMAL = re.compile(r"DECIMAL\((\d+),(\d+)\)")
_INTEGERS = {"SMALLINT", "INT", "BIGINT"}
_INDEXED, _KEYED, _EQUALITY, _CONDITION, _CROSS = range(5)


@dataclass(frozen=True)
class LookupKey:
    """Values of column `from_column` at u are looked up in column `to_column` at v (numbers)."""

    from_column: int
    to_column: int
    indexed: bool = False


@dataclass(frozen=True)
class Edge:
    """A directed edge u -> v. Without a key v is read whole, and `why` says so to a person."""

    u: int
    v: int
    key: LookupKey | None = None
    why: str = ""


@dataclass(frozen=True)
class TreeStep:
    """Go along `edge`; then every one of `conditions` (SQL) can and must be applied."""

    edge: Edge
    conditions: tuple[str, ...]


@dataclass(frozen=True)
class JoinTree:
    """The tree's directed edges, both directions of each, and the view's conditions."""

    size: int
    edges: tuple[Edge, ...]
    conditions: tuple[tuple[str, frozenset[int]], ...]

    def start_conditions(self, start: int) -> tuple[str, ...]:
        """The conditions that hold or fail with a row of `start` alone (constants among them)."""
        return _bound(self.conditions, frozenset(), frozenset({start}), starting=True)

    def steps(self, start: int) -> tuple[TreeStep, ...]:
        """The way from `start` to every other occurrence, nearest first."""
        steps: list[TreeStep] = []
        bound = frozenset({start})
        for edge in self._outward(start):
            reached = bound | {edge.v}
            steps.append(TreeStep(edge, _bound(self.conditions, bound, reached)))
            bound = reached
        return tuple(steps)

    def _outward(self, start: int) -> Iterable[Edge]:
        reached, waiting = {start}, [start]
        for u in waiting:
            for edge in self._leaving.get(u, ()):
                if edge.v not in reached:
                    reached.add(edge.v)
                    waiting.append(edge.v)
                    yield edge

    @cached_property
    def _leaving(self) -> dict[int, list[Edge]]:
        leaving: dict[int, list[Edge]] = {}
        for edge in self.edges:
            leaving.setdefault(edge.u, []).append(edge)
        return leaving


def join_tree(definition: Definition) -> JoinTree:
    """The cheapest spanning tree of the view's join graph; no edges for a single occurrence."""
    size = len(definition.occurrences)
    ranked = sorted((_cost(definition, u, v), u, v) for u, v in combinations(range(size), 2))
    component = list(range(size))
    edges: list[Edge] = []
    for _, u, v in ranked:
        if component[u] != component[v]:
            old, new = component[v], component[u]
            component = [new if c == old else c for c in component]
            edges += [_edge(definition, u, v), _edge(definition, v, u)]
    return JoinTree(size, tuple(edges), _conditions(definition))


def _conditions(definition: Definition) -> tuple[tuple[str, frozenset[int]], ...]:
    equalities = [
        (f"t{e.left}.c{e.left_column} = t{e.right}.c{e.right_column}", frozenset((e.left, e.right)))
        for e in definition.equalities
    ]
    return (*equalities, *((r.sql, r.occurrences) for r in definition.residuals))


def _bound(
    conditions: tuple[tuple[str, frozenset[int]], ...],
    before: frozenset[int],
    after: frozenset[int],
    *,
    starting: bool = False,
) -> tuple[str, ...]:
    return tuple(
        sql for sql, needs in conditions if needs <= after and (starting or not needs <= before)
    )


def _cost(definition: Definition, u: int, v: int) -> tuple[int, int]:
    there, back = _rank(definition, u, v), _rank(definition, v, u)
    return max(there, back), min(there, back)


def _rank(definition: Definition, u: int, v: int) -> int:
    pair = {u, v}
    key = _best_key(definition, u, v)
    if key:
        return _INDEXED if key.indexed else _KEYED
    if _equalities(definition, u, v):
        return _EQUALITY
    return _CONDITION if any(pair <= r.occurrences for r in definition.residuals) else _CROSS


def _edge(definition: Definition, u: int, v: int) -> Edge:
    key = _best_key(definition, u, v)
    return Edge(u, v, key, "" if key else _why_whole(definition, u, v))


def _equalities(definition: Definition, u: int, v: int) -> list[tuple[int, int]]:
    """The (column at u, column at v) of all equalities between the two, in the view's order."""
    return [columns for e in definition.equalities if (columns := _directed(e, u, v))]


def _directed(e: EqualColumns, u: int, v: int) -> tuple[int, int] | None:
    if (e.left, e.right) == (u, v):
        return e.left_column, e.right_column
    if (e.left, e.right) == (v, u):
        return e.right_column, e.left_column
    return None


def _best_key(definition: Definition, u: int, v: int) -> LookupKey | None:
    here, there = definition.occurrences[u].relation, definition.occurrences[v].relation
    indexed = {*there.indexes, *there.key[:1]}
    keys = [
        LookupKey(a, b, there.columns[b].name in indexed)
        for a, b in _equalities(definition, u, v)
        if there.columns[b].keyable and comparable(here.columns[a].type, there.columns[b].type)
    ]
    return min(keys, key=lambda key: not key.indexed, default=None)


def _why_whole(definition: Definition, u: int, v: int) -> str:
    here, there = definition.occurrences[u].relation, definition.occurrences[v].relation
    for a, b in _equalities(definition, u, v):
        left, right = here.columns[a], there.columns[b]
        if not comparable(left.type, right.type):
            return f'"{left.name}" is {left.type}, "{right.name}" is {right.type}'
        return f'the source compares "{right.name}" otherwise than Spark'
    return "no equality of two columns joins it"


def comparable(left: str, right: str) -> bool:
    """Whether Spark's `=` between columns of these types is plain equality of their values.

    >>> comparable("INT", "BIGINT"), comparable("INT", "STRING")
    (True, False)
    """
    if left == right or {left, right} <= _INTEGERS:
        return True
    return _plain_decimals(left, right)


def _plain_decimals(left: str, right: str) -> bool:
    """Whether both fit one DECIMAL of 38 digits; beyond that Spark compares rounded values.

    >>> _plain_decimals("DECIMAL(38,18)", "DECIMAL(20,0)")
    True
    >>> _plain_decimals("DECIMAL(38,18)", "DECIMAL(30,0)")
    False
    """
    found = [_DECIMAL.fullmatch(kind) for kind in (left, right)]
    sizes = [(int(m[1]), int(m[2])) for m in found if m]
    if len(sizes) < 2:
        return False
    return max(p - s for p, s in sizes) + max(s for _, s in sizes) <= 38
