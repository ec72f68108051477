"""How the scans of a block hang together: one link per join, asked in both directions.

A join is *linked* by one of its equalities whose columns are both found at scans. Along a link the
values at one side's scans are keys to look up at the other's. A join without such an equality is
linked by nothing: as soon as something changes on one side, the other is read whole, from its
*entry*, the scans whose rows decide which rows the side has at all.

`own`: the side must be whole at the keys of its own change too, because there its rows are not just
added: the inner side of LEFT, semi, anti and mark joins, both sides of FULL.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from steadyview.plans.extreme import Extreme
from steadyview.plans.inner_join import Equality, InnerJoin
from steadyview.plans.lineage import Place, origin
from steadyview.plans.operator import Operator, walk
from steadyview.plans.scan import Scan, scans
from steadyview.plans.split_join import SplitJoin
from steadyview.plans.union_all import UnionAll


@dataclass(frozen=True)
class Side:
    """One side of a join: its scans, where its key stands (None: nowhere), where to start reading.

    `findable`: rows can be looked up by the key; otherwise the side is read whole.
    """

    scans: frozenset[int]
    keys: tuple[Place, ...] | None
    entry: frozenset[int]
    own: bool
    findable: bool = True


@dataclass(frozen=True)
class Link:
    """What a join asks each of its sides for."""

    left: Side
    right: Side

    def directed(self) -> tuple[tuple[Side, Side], tuple[Side, Side]]:
        """(from, to), both ways."""
        return (self.left, self.right), (self.right, self.left)


class Columns(Protocol):
    """What is known of the columns that scans read."""

    def comparable(self, left: Place, right: Place) -> bool:
        """Whether `=` between the two is plain equality of their values, without a cast."""

    def findable(self, place: Place) -> bool:
        """Whether a lookup by values of the column finds at least every row that `=` does."""

    def indexed(self, place: Place) -> bool:
        """Whether such a lookup is cheap."""


class AnyColumns:
    """Columns that can all be compared and looked up."""

    def comparable(self, left: Place, right: Place) -> bool:
        """They can."""
        return True

    def findable(self, place: Place) -> bool:
        """They can."""
        return True

    def indexed(self, place: Place) -> bool:
        """It is."""
        return True


def links(block: Operator, columns: Columns | None = None) -> Iterator[Link]:
    """The links of every join of the block, from above."""
    known = columns or AnyColumns()
    for operator in walk(block):
        if isinstance(operator, (InnerJoin, SplitJoin)):
            yield _link(operator, known)
        if isinstance(operator, Extreme):
            yield _of_groups(operator)


_Pair = tuple[tuple[Place, ...], tuple[Place, ...]]


def _link(join: InnerJoin | SplitJoin, columns: Columns) -> Link:
    kind = join.kind if isinstance(join, SplitJoin) else "inner"
    found = [(_places(join.left, e.left), _places(join.right, e.right)) for e in _usable(join)]
    pairs = [(a, b) for a, b in found if a is not None and b is not None]
    usable = [p for p in pairs if all(columns.comparable(a, b) for a in p[0] for b in p[1])]
    left, right = min(usable, key=lambda pair: _dear(pair, columns), default=(None, None))
    return Link(
        _side(join.left, left, columns, own=kind == "full"),
        _side(join.right, right, columns, own=kind != "inner"),
    )


def _of_groups(extreme: Extreme) -> Link:
    """Nobody asks on behalf of others: the groups of the operand's own change are needed."""
    nobody = Side(frozenset(), (), frozenset(), own=False)
    places = _places(extreme.operand, extreme.group)
    below = extreme.operand
    return Link(nobody, Side(scans(below), places, entry(below), own=True))


def _side(
    operator: Operator, keys: tuple[Place, ...] | None, columns: Columns, *, own: bool
) -> Side:
    findable = keys is not None and all(columns.findable(p) for p in keys)
    return Side(scans(operator), keys, entry(operator), own, findable)


def _dear(pair: _Pair, columns: Columns) -> tuple[int, int]:
    """How many places cannot be looked up, and how many only dearly."""
    places = [*pair[0], *pair[1]]
    unfindable = sum(not columns.findable(p) for p in places)
    return unfindable, sum(not columns.indexed(p) for p in places)


def _usable(join: InnerJoin | SplitJoin) -> list[Equality]:
    """NULL as a value may come from a padded row, which stands in no scan."""
    return [e for e in join.equalities if not e.null_safe]


def _places(side: Operator, name: str) -> tuple[Place, ...] | None:
    return origin(side, name)


def entry(operator: Operator) -> frozenset[int]:
    """The scans to be read whole so that, with what they lead to, the operator is whole."""
    if isinstance(operator, Scan):
        return frozenset({operator.number})
    if isinstance(operator, UnionAll) or (
        isinstance(operator, SplitJoin) and operator.kind == "full"
    ):
        return frozenset().union(*(entry(o) for o in operator.operands))
    if isinstance(operator, InnerJoin):
        return entry(operator.left) or entry(operator.right)
    return entry(operator.operands[0]) if operator.operands else frozenset()
