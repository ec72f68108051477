"""A query and the queries inside it as one: occurrences, conditions, columns.

Every reference to a table is an occurrence of its own, also where a WITH query is read twice. A
subquery's columns are put, bracketed, in the place of the names that mean them; its conditions join
the others in front of the outer ones. An aggregated subquery flattens only where the query around
it does nothing but select from it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from steadyview.changes import RelationName, RelationSchema
from steadyview.errors import ViewRefused
from steadyview.views.conditions import conjuncts
from steadyview.views.expressions import Name, read
from steadyview.views.fragments import Fragment, Piece, put, reference
from steadyview.views.grouping import GroupingDraft
from steadyview.views.names import find_relation
from steadyview.views.outline import (
    Alias,
    Cte,
    Join,
    Parenthesized,
    Query,
    Relation,
    Subquery,
    Table,
)
from steadyview.views.render import render
from steadyview.views.scope import Scope, Visible
from steadyview.views.select_list import NamedColumn, SelectList, lookup_in
from steadyview.views.source_text import SourceText, Span

_MOST_OCCURRENCES = 64


@dataclass(frozen=True)
class Environment:
    """The WITH queries in sight, each with those that it sees itself."""

    ctes: Mapping[str, tuple[Cte, Environment]]

    def with_cte(self, cte: Cte) -> Environment:
        """This, and one more query, which hides an older one of the same name."""
        return Environment({**self.ctes, cte.alias.name.lower(): (cte, self)})


@dataclass(frozen=True)
class World:
    """What the view may read: watched relations, their unusable columns, other views' names."""

    relations: Sequence[RelationSchema]
    unsupported: Mapping[RelationName, Mapping[str, str]]
    other_views: Collection[str]


@dataclass(frozen=True)
class Flat:
    """A flattened query's columns; with `grouping` they speak of groups."""

    columns: tuple[NamedColumn, ...]
    grouping: GroupingDraft | None


class Flattener:
    """Collects occurrences and conditions while it goes through a query."""

    def __init__(self, source: SourceText, world: World) -> None:
        self._source = source
        self._world = world
        self.occurrences: list[tuple[RelationSchema, str]] = []
        self.conditions: list[Fragment] = []

    def query(self, query: Query, environment: Environment) -> Flat:
        """The query's columns; what it reads and requires is collected."""
        for cte in query.ctes:
            environment = environment.with_cte(cte)
        scope = self._product(query.relations, environment)
        if scope.grouping:
            return self._over_groups(query, scope)
        if query.where:
            self._require(query.where, scope)
        chosen = SelectList(self._source, query, scope)
        if not chosen.is_grouped:
            return Flat(chosen.plain(), None)
        return Flat(*chosen.grouped())

    def _over_groups(self, query: Query, scope: Scope) -> Flat:
        chosen = SelectList(self._source, query, scope)
        if query.where or chosen.is_grouped:
            at = query.where.start if query.where else query.at
            raise self._not_top(at)
        return Flat(chosen.plain(), scope.grouping)

    def _not_top(self, at: int) -> ViewRefused:
        fact = "joins, filters or aggregates the result of an aggregation"
        return self._source.refuse_at("AGGREGATE_NOT_TOP", at, fact)

    def _require(self, span: Span, scope: Scope) -> None:
        lookup = lookup_in(self._source, scope)
        for part in conjuncts(self._source, span):
            self.conditions.append(render(self._source, read(self._source, part), lookup))

    def _product(self, relations: tuple[Relation, ...], environment: Environment) -> Scope:
        product = self._relation(relations[0], environment)
        for relation in relations[1:]:
            product = self._beside(product, self._relation(relation, environment), relation.at)
        return product

    def _beside(self, left: Scope, right: Scope, at: int) -> Scope:
        if left.grouping or right.grouping:
            raise self._not_top(at)
        return Scope(left.columns + right.columns)

    def _relation(self, relation: Relation, environment: Environment) -> Scope:
        if isinstance(relation, Table):
            return self._table(relation, environment)
        if isinstance(relation, Join):
            return self._join(relation, environment)
        if isinstance(relation, Parenthesized):
            scope = self._product(relation.relations, environment)
            return self._aliased(scope, relation.alias, relation.at) if relation.alias else scope
        return self._subquery(relation, environment)

    def _subquery(self, relation: Subquery, environment: Environment) -> Scope:
        flat = self.query(relation.query, environment)
        return self._aliased(_scope_of(flat), relation.alias, relation.at)

    def _table(self, table: Table, environment: Environment) -> Scope:
        name = table.parts[0].lower()
        if len(table.parts) == 1 and name in environment.ctes:
            cte, seen = environment.ctes[name]
            named = self._aliased(_scope_of(self.query(cte.query, seen)), cte.alias, cte.at)
            return self._aliased(named, table.alias, table.at) if table.alias else named
        world = self._world
        relation = find_relation(
            self._source, table.parts, table.at, world.relations, world.other_views
        )
        scope = self._occurrence(relation, table)
        return self._aliased(scope, table.alias, table.at) if table.alias else scope

    def _occurrence(self, relation: RelationSchema, table: Table) -> Scope:
        number = len(self.occurrences)
        if number == _MOST_OCCURRENCES:
            fact = f"has more than {_MOST_OCCURRENCES} occurrences of tables"
            raise self._source.refuse_at("TOO_MANY_RELATIONS", table.at, fact)
        self.occurrences.append((relation, table.alias.name if table.alias else table.parts[-1]))
        unsupported = self._world.unsupported.get(relation.name, {})
        columns = [
            Visible(table.parts, c.name, reference(number, i), unsupported=unsupported.get(c.name))
            for i, c in enumerate(relation.columns)
        ]
        known = {c.name for c in relation.columns}
        columns += [
            Visible(table.parts, name, (Piece("NULL"),), unsupported=kind)
            for name, kind in unsupported.items()
            if name not in known
        ]
        return Scope(tuple(columns))

    def _aliased(self, scope: Scope, alias: Alias | None, at: int) -> Scope:
        if alias is None:
            return scope.renamed("", ())
        count = len(scope.star(()))
        if alias.columns and len(alias.columns) != count:
            fact = f'names {len(alias.columns)} columns for the {count} of "{alias.name}"'
            way = f'name all {count}, or write "{alias.name}" without names'
            raise self._source.refuse_at("UNKNOWN_COLUMN", at, fact, instead=way)
        return scope.renamed(alias.name, alias.columns)

    def _join(self, join: Join, environment: Environment) -> Scope:
        left = self._relation(join.left, environment)
        right = self._relation(join.right, environment)
        both = self._beside(left, right, join.at)
        if join.on:
            self._require(join.on, both)
        return self._merged(left, right, join) if join.using else both

    def _merged(self, left: Scope, right: Scope, join: Join) -> Scope:
        """USING: the left keys first, then the other columns; the right keys hide."""
        keys = [self._using(left, right, name, at) for name, at in join.using]
        left_keys = [left_key for left_key, _ in keys]
        right_keys = [right_key for _, right_key in keys]
        hidden = [replace(key, hidden=True) for key in right_keys]
        return Scope(
            (*left_keys, *_without(left, left_keys), *_without(right, right_keys), *hidden)
        )

    def _using(self, left: Scope, right: Scope, name: str, at: int) -> tuple[Visible, Visible]:
        written = Name((name,), Span(at, at + 1))
        offset = self._source.offset(at)
        a, b = (
            put(lookup_in(self._source, side)(written), spaced=True, offset=offset)
            for side in (left, right)
        )
        self.conditions.append((*a, Piece("=", True, offset), *b))
        return left.find((name,))[0], right.find((name,))[0]


def _without(scope: Scope, keys: list[Visible]) -> list[Visible]:
    return [c for c in scope.columns if all(c is not key for key in keys)]


def _scope_of(flat: Flat) -> Scope:
    return Scope(tuple(Visible((), c.name, c.value) for c in flat.columns), flat.grouping)
