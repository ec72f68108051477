"""JOIN: two relations of FROM become one, of every kind.

inner, cross    conditions sink as WHERE's do
LEFT            the right side's columns may be padded: what is computed of them is computed
below the join, so that it is NULL in a padded row
RIGHT           LEFT with the sides swapped
FULL            both sides padded
SEMI, ANTI      the left side's columns alone
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from steadyview.plans.split_join import Kind
from steadyview.views.binding import Binder
from steadyview.views.blocks import Block
from steadyview.views.columns import Scope, VisibleColumn
from steadyview.views.relational import Projected, halved, joined
from steadyview.views.rows import BlockRows, Sight
from steadyview.views.subqueries import Subqueries, asks
from steadyview.views.trees import column, conjuncts, inside, place, plain

if TYPE_CHECKING:
    from steadyview.views.queries import Reader

_KINDS: dict[str, Kind] = {
    "left": "left",
    "right": "left",
    "full": "full",
    "semi": "semi",
    "anti": "anti",
}


@dataclass(frozen=True)
class Joining:
    """Joins relations of a block."""

    reader: Reader
    sight: Sight
    block: Block

    def joined(self, left: BlockRows, right: BlockRows, join: exp.Join) -> BlockRows:
        """The join of two relations, as the text says it."""
        kind = _kind(join)
        if kind == "inner":
            return self._inner(left, right, join)
        return self._split(kind, left, right, join)

    def _inner(self, left: BlockRows, right: BlockRows, join: exp.Join) -> BlockRows:
        scope, conditions = self._merged(left, right, join, "inner")
        both = left.scope.beside(right.scope)
        relation = joined(left.relation, right.relation)
        rows = BlockRows(relation, both, beyond=left.beyond + right.beyond)
        rows.require(conditions)
        if join.args.get("on"):
            Subqueries.over(self.reader, rows, self.sight, self.block).require(join.args["on"])
        rows.scope = scope
        return rows

    def _split(self, kind: str, left: BlockRows, right: BlockRows, join: exp.Join) -> BlockRows:
        for condition in (*left.beyond, *right.beyond):
            fact = "uses a column of the query around it below an outer join"
            way = "compare with columns of the query around in WHERE, outside of outer joins"
            raise self.reader.source.refusal("SUBQUERY", place(condition), fact, instead=way)
        if kind in ("right", "full"):
            _pad(left, self.block)
        if kind in ("left", "full"):
            _pad(right, self.block)
        scope, conditions = self._merged(left, right, join, kind)
        conditions += self._on(left, right, join)
        sides = (right, left) if kind == "right" else (left, right)
        relation = halved(_KINDS[kind], sides[0].relation, sides[1].relation, conditions)
        return BlockRows(relation, left.scope if kind in ("semi", "anti") else scope)

    def _on(self, left: BlockRows, right: BlockRows, join: exp.Join) -> list[exp.Expression]:
        """The conditions of ON; EXISTS and IN of one side alone become marks of that side."""
        on = join.args.get("on")
        both = left.scope.beside(right.scope)
        found = []
        for part in conjuncts(on) if on is not None else ():
            if any(asks(node) for node in part.walk()):
                side = self._side_of(part, left, right)
                found.append(Subqueries.over(self.reader, side, self.sight, self.block).value(part))
            else:
                found.append(Binder(self.reader.source, both, self.sight.outer).bind(part))
        self.reader.check_clock(found, self.block)
        return found

    def _side_of(self, part: exp.Expression, left: BlockRows, right: BlockRows) -> BlockRows:
        """The side that all names of the expression mean."""
        named = [tuple(p.name for p in c.parts) for c in part.find_all(exp.Column)]
        for side, other in ((right, left), (left, right)):
            if not any(other.scope.find(n) and not side.scope.find(n) for n in named):
                return side
        asked = next(node for node in part.walk() if asks(node))
        fact = "has a subquery over both sides of an outer join in ON"
        way = "let the subquery use columns of one side only"
        raise self.reader.source.refusal("SUBQUERY", place(asked), fact, instead=way)

    def _merged(
        self, left: BlockRows, right: BlockRows, join: exp.Join, kind: str
    ) -> tuple[Scope, list[exp.Expression]]:
        """The scope of the join, and what USING asks for."""
        using = join.args.get("using") or ()
        if not using:
            return left.scope.beside(right.scope), []
        pairs = [self._key(left.scope, right.scope, word) for word in using]
        conditions: list[exp.Expression] = [
            exp.EQ(this=inside(a.value), expression=inside(b.value)) for a, b in pairs
        ]
        shown = [_shown_key(a, b, kind) for a, b in pairs]
        lefts, rights = [a for a, _ in pairs], [b for _, b in pairs]
        hidden = [replace(b, hidden=True) for b in rights]
        if kind in ("right", "full"):
            hidden = [replace(a, hidden=True) for a in lefts] + hidden
        columns = (*shown, *_without(left.scope, lefts), *_without(right.scope, rights), *hidden)
        return Scope(columns), conditions

    def _key(
        self, left: Scope, right: Scope, word: exp.Expression
    ) -> tuple[VisibleColumn, VisibleColumn]:
        named = exp.Column(this=word.copy())
        named.meta["start"] = place(word)
        for side in (left, right):
            Binder(self.reader.source, side).bind(named)
        return left.find((word.name,))[0], right.find((word.name,))[0]


def _pad(rows: BlockRows, block: Block) -> None:
    """Columns that are computed must be NULL in a padded row: they are made below the join."""
    fresh: list[tuple[str, exp.Expression]] = []
    columns = []
    for c in rows.scope.columns:
        if plain(c.value) is None:
            fresh.append((block.fresh("p"), c.value))
            columns.append(replace(c, value=column(fresh[-1][0])))
        else:
            columns.append(c)
    if fresh:
        kept = tuple((n, column(n)) for n in rows.relation.columns)
        rows.relation = Projected(rows.relation, (*kept, *fresh))
        rows.scope = Scope(tuple(columns))


def _kind(join: exp.Join) -> str:
    kind = str(join.kind or "").lower()
    return kind if kind in ("semi", "anti") else str(join.side or "inner").lower()


def _shown_key(left: VisibleColumn, right: VisibleColumn, kind: str) -> VisibleColumn:
    """The key that is seen without a qualifier."""
    if kind == "right":
        return right
    if kind != "full":
        return left
    both = exp.Anonymous(this="COALESCE", expressions=[inside(left.value), inside(right.value)])
    return VisibleColumn((), left.name, both)


def _without(scope: Scope, keys: Sequence[VisibleColumn]) -> list[VisibleColumn]:
    return [c for c in scope.columns if all(c is not key for key in keys)]
