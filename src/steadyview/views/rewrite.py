"""The user's SELECT over other tables of the same columns: only table names change.

For recomputing and verifying a view, so it takes any SELECT that Spark accepts. A table without
alias gets one, so that columns qualified by the table's name keep their meaning; longer qualifiers
(`sales.orders.id`) are shortened to it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TypeAlias

from steadyview.changes import RelationName, RelationSchema
from steadyview.views.definition import Average
from steadyview.views.names import find_relation
from steadyview.views.parse import ViewText
from steadyview.views.source_text import SourceText
from steadyview.views.table_places import Places, TablePlace, places

Change: TypeAlias = tuple[int, int, str]
"""Tokens from, to, and what stands there instead."""


def tables_of(
    view: ViewText, relations: Sequence[RelationSchema], other_views: Collection[str] = ()
) -> tuple[RelationSchema, ...]:
    """The relations the view reads, each once, in the order of its text."""
    source = view.source()
    found = _relations(source, places(source), relations, other_views)
    return tuple({relation.name: relation for relation in found.values()}.values())


def with_tables(
    view: ViewText,
    names: Mapping[RelationName, str],
    relations: Sequence[RelationSchema],
    averages: Sequence[Average] = (),
) -> str:
    """The view's SELECT, reading `names[relation]` (quoted already) for every watched relation.

    `averages`: those of whole numbers. Spark's AVG adds them as doubles, in any order; here they
    are added exactly and rounded once.

    >>> from steadyview.changes import Column
    >>> orders = RelationSchema(RelationName("sales", ("orders",)), (Column("id", "INT"),))
    >>> view = ViewText("v", "SELECT sales.orders.id FROM sales.orders")
    >>> with_tables(view, {orders.name: "`x`"}, [orders])
    'SELECT `orders`.id FROM `x` AS `orders`'
    """
    source = view.source()
    return _Rewrite(source, places(source), relations).text(names, averages)


def _relations(
    source: SourceText,
    found: Places,
    relations: Sequence[RelationSchema],
    other_views: Collection[str] = (),
) -> dict[TablePlace, RelationSchema]:
    """What each table's name means; names of WITH queries are left out."""
    return {
        table: find_relation(source, table.parts, table.span.start, relations, other_views)
        for table in found.tables
        if len(table.parts) > 1 or table.parts[0].lower() not in found.ctes
    }


class _Rewrite:
    def __init__(
        self, source: SourceText, found: Places, relations: Sequence[RelationSchema]
    ) -> None:
        self._source = source
        self._places = found
        self._relation = _relations(source, found, relations)
        self._aliases = self._given_aliases()

    def text(self, names: Mapping[RelationName, str], averages: Sequence[Average]) -> str:
        changes = self._qualifiers()
        for table, relation in self._relation.items():
            changes.append((table.span.start, table.span.stop, names[relation.name]))
            if table in self._aliases:
                behind = table.behind + 1
                changes.append((behind, behind, f" AS {_quoted(self._aliases[table])}"))
        for average in averages:
            changes = self._averaged(average, changes)
        return self._spliced(changes, 0, len(self._source.text))

    def _averaged(self, average: Average, changes: list[Change]) -> list[Change]:
        """The changes, and the AVG as a sum and a count: its argument stands there twice."""
        (start, stop), (first, last) = average.call, average.argument
        tokens = self._source.tokens
        inside = [c for c in changes if start <= c[0] and c[1] <= stop]
        argument = self._spliced(inside, tokens[first].start, tokens[last - 1].stop)
        total = f"CAST(SUM(CAST({argument} AS DECIMAL(38,0))) AS DOUBLE)"
        exact = f"({total} / NULLIF(COUNT({argument}), 0))"
        return [*(c for c in changes if c not in inside), (start, stop, exact)]

    def _spliced(self, changes: Sequence[Change], begin: int, end: int) -> str:
        """The text from `begin` to `end` with token ranges replaced; an empty one is put behind."""
        text, tokens = self._source.text[:end], self._source.tokens
        for start, stop, new in sorted(changes, reverse=True):
            first = tokens[start].start if start < stop else tokens[start - 1].stop
            text = text[:first] + new + text[tokens[stop - 1].stop :]
        return text[begin:]

    def _given_aliases(self) -> dict[TablePlace, str]:
        """Its own last name for every table without alias, or a fresh one where that is taken."""
        bare = [table for table in self._relation if table.alias is None]
        return {
            table: f"_{number}_{table.parts[-1]}" if self._is_taken(table) else table.parts[-1]
            for number, table in enumerate(bare)
        }

    def _is_taken(self, table: TablePlace) -> bool:
        """Whether a table of the same name can be seen from the same place."""
        return any(
            other is not table
            and other.visible_name == table.visible_name
            and (other.level in table.level.outward() or table.level in other.level.outward())
            for other in self._places.tables
        )

    def _qualifiers(self) -> list[Change]:
        inside = {i for t in self._places.tables for i in range(t.span.start, t.span.stop)}
        changes = []
        for at, token in enumerate(self._source.tokens):
            starts = self._source.word(at - 1) != "." and self._source.word(at + 1) == "."
            if token.name and starts and at not in inside:
                changes += self._qualifier(at)
        return changes

    def _qualifier(self, at: int) -> list[Change]:
        parts = self._chain(at)
        for level in self._places.levels[at].outward():
            for length in range(len(parts) - 1, 0, -1):
                found = [t for t in level.tables if _is_called(t, parts[:length])]
                if found:
                    return self._shortened(at, length, self._chosen(found, parts[length]))
        return []

    def _chain(self, at: int) -> list[str]:
        """The dotted name that starts at `at`, lower case, a final `*` included."""
        parts = [self._source.tokens[at].name.lower()]
        while self._source.word(at + 1) == "." and self._source.tokens[at + 2 :]:
            at += 2
            parts.append(self._source.tokens[at].name.lower() or self._source.tokens[at].raw)
        return parts

    def _chosen(self, tables: list[TablePlace], column: str) -> TablePlace | None:
        """The one table meant; among several of a name, the one that has the column."""
        if len(tables) > 1:
            tables = [t for t in tables if t in self._relation and self._has(t, column)]
        return tables[0] if len(tables) == 1 else None

    def _has(self, table: TablePlace, column: str) -> bool:
        return column in {c.name.lower() for c in self._relation[table].columns}

    def _shortened(
        self, at: int, length: int, table: TablePlace | None
    ) -> list[Change]:
        alias = self._aliases.get(table) if table else None
        written = self._source.tokens[at].name.lower()
        if alias is None or (length == 1 and alias.lower() == written):
            return []
        return [(at, at + 2 * length - 1, _quoted(alias))]


def _is_called(table: TablePlace, qualifier: list[str]) -> bool:
    if table.alias is not None or len(table.parts) == 1:
        return [table.visible_name] == qualifier
    return [part.lower() for part in table.parts][-len(qualifier) :] == qualifier


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
