"""What a query sees, and what it becomes inside a block: rows with a scope, and named columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from steadyview.changes import RelationName, RelationSchema
from steadyview.views.columns import Scope, VisibleColumn
from steadyview.views.relational import Relational, filtered, joined
from steadyview.views.trees import names


@dataclass(frozen=True)
class Readable:
    """What the view may read: watched relations, their unusable columns, other views' columns."""

    relations: Sequence[RelationSchema]
    unsupported: Mapping[RelationName, Mapping[str, str]]
    views: Mapping[str, Sequence[tuple[str, str]]]


@dataclass(frozen=True)
class Sight:
    """What a query sees: WITH queries (each with what it sees itself), and the scopes around it.

    `reach`: whether columns of the nearest scope around may be named here.
    """

    ctes: Mapping[str, tuple[exp.CTE, Sight]] = field(default_factory=dict)
    outer: tuple[Scope, ...] = ()
    reach: bool = False

    def with_ctes(self, query: exp.Expression) -> Sight:
        """This, and the WITH queries of the query, each of which sees those before it."""
        sight = self
        clause = query.args.get("with_")
        for cte in clause.expressions if clause else ():
            named = {**sight.ctes, cte.alias.lower(): (cte, replace(sight, outer=(), reach=False))}
            sight = replace(sight, ctes=named)
        return sight

    def apart(self) -> Sight:
        """From inside a draft: what is around can be seen, but not named."""
        return replace(self, reach=False)

    def within(self, scope: Scope) -> Sight:
        """From inside a subquery of the scope."""
        return Sight(self.ctes, (scope, *self.outer), reach=True)


@dataclass(frozen=True)
class Named:
    """A column of a query: its name, its bound expression, where it comes from."""

    name: str
    value: exp.Expression
    at: int


@dataclass
class BlockRows:
    """A query or FROM clause read into a block.

    `beyond`: conditions that speak of columns around the query, still to be met. `marks`: what took
    the place of subqueries, by their text.
    """

    relation: Relational
    scope: Scope = Scope()
    columns: tuple[Named, ...] = ()
    beyond: tuple[exp.Expression, ...] = ()
    marks: dict[str, exp.Expression] = field(default_factory=dict)

    def require(self, conditions: Sequence[exp.Expression]) -> None:
        """Only rows that meet them."""
        own = frozenset(self.relation.columns)
        within = [c for c in conditions if names(c) <= own]
        self.relation = filtered(self.relation, within)
        self.beyond += tuple(c for c in conditions if not names(c) <= own)


def product(groups: Sequence[BlockRows]) -> BlockRows:
    """All pairs."""
    first, *others = groups
    for other in others:
        relation = joined(first.relation, other.relation)
        first = BlockRows(
            relation, first.scope.beside(other.scope), beyond=first.beyond + other.beyond
        )
    return first


def scope_of(columns: Sequence[Named]) -> Scope:
    """The columns of a query without a name."""
    return Scope(tuple(VisibleColumn(("",), c.name, c.value) for c in columns))
