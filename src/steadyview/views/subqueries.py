"""EXISTS and IN with subqueries: semi and anti joins where they are a condition, marks elsewhere.

    EXISTS (Q)        semi join with Q on what Q says of the row around it
    x IN (Q)          semi join, and x = y for Q's column y
    NOT EXISTS, NOT IN    anti joins; NOT IN on `(x = y) IS NOT FALSE`
    anywhere else     a mark m: whether the row meets one of Q; for IN two of them, whether x = y is
                      TRUE for some row and whether it is NULL for some row

The subquery's rows become part of the block. Its conditions that speak of the row around it are the
join's; they may stand in its WHERE and in the ON of its inner joins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from steadyview.views.binding import Binder, unwrapped
from steadyview.views.blocks import Block
from steadyview.views.columns import Scope
from steadyview.views.dialect import written
from steadyview.views.relational import halved
from steadyview.views.rows import BlockRows, Sight
from steadyview.views.trees import (
    column,
    conjunction,
    conjuncts,
    inside,
    names,
    negated,
    place,
    unbracketed,
)

if TYPE_CHECKING:
    from steadyview.views.queries import Reader


@dataclass
class Subqueries:
    """Conditions and values over `rows`, whose subqueries speak of `scope`.

    `binder` binds the expressions; by default over the rows' own scope.
    """

    reader: Reader
    rows: BlockRows
    sight: Sight
    block: Block
    scope: Scope
    binder: Binder

    @staticmethod
    def over(reader: Reader, rows: BlockRows, sight: Sight, block: Block) -> Subqueries:
        """Over the rows' own scope."""
        binder = Binder(reader.source, rows.scope, sight.outer, sight.reach)
        return Subqueries(reader, rows, sight, block, rows.scope, binder)

    def require(self, condition: exp.Expression) -> None:
        """Only rows that meet the condition; its parts with subqueries last."""
        parts = list(conjuncts(condition))
        asking = [p for p in parts if any(asks(n) for n in p.walk())]
        simple = [self.binder.bind(p) for p in parts if p not in asking]
        self.reader.check_clock(simple, self.block)
        self.rows.require(simple)
        for part in asking:
            asked, negative = negated(part)
            if isinstance(asked, (exp.Exists, exp.In)) and asks(asked):
                self._semi(asked, negative)
            else:
                self.rows.require([self.value(part)])

    def value(self, node: exp.Expression) -> exp.Expression:
        """The expression with marks in the place of its subqueries; they are joined to the rows."""
        found = replace(self.binder, subquery=self._mark).bind(node)
        self.reader.check_clock([found], self.block)
        return found

    def _semi(self, asked: exp.Expression, negative: bool) -> None:
        inner, conditions = self._subquery(asked)
        equal = self._compared(asked, inner)
        if equal is not None:
            unsure = exp.Is(this=exp.Paren(this=equal), expression=exp.Boolean(this=False))
            conditions += [exp.Not(this=unsure)] if negative else list(conjuncts(equal))
        self._check_reach(conditions, inner)
        relation = self.rows.relation
        self.rows.relation = halved(
            "anti" if negative else "semi", relation, inner.relation, conditions
        )

    def _mark(self, asked: exp.Expression) -> exp.Expression:
        """What takes the place of a subquery; equal ones over the same rows are asked once."""
        text = written(asked)
        if text not in self.rows.marks:
            self.rows.marks[text] = self._new_mark(asked)
        return self.rows.marks[text].copy()

    def _new_mark(self, asked: exp.Expression) -> exp.Expression:
        met = self._mark_join(asked, unknown=False)
        if isinstance(asked, exp.Exists):
            return met
        unknown = self._mark_join(asked, unknown=True)
        return exp.Case(
            ifs=[
                exp.If(this=met, true=exp.Boolean(this=True)),
                exp.If(this=unknown, true=exp.Null()),
            ],
            default=exp.Boolean(this=False),
        )

    def _mark_join(self, asked: exp.Expression, *, unknown: bool) -> exp.Expression:
        """A mark: whether a row of the subquery is met (or, `unknown`, perhaps met)."""
        inner, conditions = self._subquery(asked)
        equal = self._compared(asked, inner)
        if equal is not None and unknown:
            conditions.append(exp.Is(this=exp.Paren(this=equal), expression=exp.Null()))
        elif equal is not None:
            conditions += conjuncts(equal)
        self._check_reach(conditions, inner)
        mark = self.block.fresh("m")
        relation = self.rows.relation
        self.rows.relation = halved("mark", relation, inner.relation, conditions, mark)
        return column(mark)

    def _subquery(self, asked: exp.Expression) -> tuple[BlockRows, list[exp.Expression]]:
        """The subquery's rows, and what they must meet; DISTINCT means nothing in it."""
        query = unwrapped(asked.this if isinstance(asked, exp.Exists) else asked.args["query"])
        if query.args.get("distinct") and not self.reader.is_grouped(query):
            query = query.copy()
            query.set("distinct", None)
        inner = self.reader.query(query, self.sight.within(self.scope), self.block)
        return inner, list(inner.beyond)

    def _compared(self, asked: exp.Expression, inner: BlockRows) -> exp.Expression | None:
        """What IN compares."""
        if not isinstance(asked, exp.In):
            return None
        left = unbracketed(asked.this)
        cells = left.expressions if isinstance(left, exp.Tuple) else [left]
        if len(cells) != len(inner.columns):
            fact = f"compares {len(cells)} values with {len(inner.columns)} columns"
            at = place(asked.args["query"])
            way = "select as many columns as are compared"
            raise self.reader.source.refusal("SUBQUERY", at, fact, instead=way, recompute=False)
        binder = replace(self.binder, subquery=None)
        return conjunction(
            exp.EQ(this=inside(binder.whole(a)), expression=inside(b.value))
            for a, b in zip(cells, inner.columns, strict=True)
        )

    def _check_reach(self, conditions: Sequence[exp.Expression], inner: BlockRows) -> None:
        known = {*self.rows.relation.columns, *inner.relation.columns}
        for condition in conditions:
            if not names(condition) <= known:
                fact = "uses a column of a query further out"
                raise self.reader.source.refusal("SUBQUERY", place(condition), fact)


def asks(node: exp.Expr) -> bool:
    """Whether the node is EXISTS or IN of a query."""
    if isinstance(node, exp.In):
        return node.args.get("query") is not None
    return isinstance(node, exp.Exists) and isinstance(unwrapped(node.this), exp.Query)
