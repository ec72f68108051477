"""The user's SELECT over other tables of the same columns: table names change, and little else.

For recomputing and verifying a view, so it takes any SELECT that can be read as Spark's SQL. Names
are found in the tree, and changed in the text: all else stays as it was written, but for what Spark
computes otherwise than a view is meant (`exact`). A table without
alias gets one, so that columns qualified by the table's name keep their meaning; longer qualifiers
(`sales.orders.id`) are shortened to it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from sqlglot import exp

from steadyview.changes import RelationName, RelationSchema
from steadyview.views.definition import AverageCall
from steadyview.views.functions import AGGREGATES
from steadyview.views.names import find_relation
from steadyview.views.parse import ViewText
from steadyview.views.reading import read_query
from steadyview.views.source_text import SourceText
from steadyview.views.trees import place

Change: TypeAlias = tuple[int, int, str]
"""From, to (offsets), and what stands there instead."""
Place: TypeAlias = tuple[int, int]
"""From, to (offsets)."""
_AVERAGE = "(CAST(SUM(CAST({0} AS DECIMAL(38,0))) AS DOUBLE) / NULLIF(COUNT({0}), 0))"
_THREE_VALUED = "(CASE WHEN {0} THEN TRUE WHEN NOT ({0}) THEN FALSE END)"
"""Spark's IN is TRUE where SQL's is, and its NOT IN as well: where neither is, SQL says NULL."""


def tables_of(
    view: ViewText, relations: Sequence[RelationSchema], other_views: Collection[str] = ()
) -> tuple[RelationSchema, ...]:
    """The relations the view reads, each once, in the order of its text."""
    source = view.source()
    found = _Tables(source, relations, {name.lower(): "" for name in other_views}).relation
    return tuple({relation.name: relation for relation in found.values()}.values())


def with_tables(
    view: ViewText,
    names: Mapping[RelationName, str],
    relations: Sequence[RelationSchema],
    views: Mapping[str, str] | None = None,
    *,
    averages: Sequence[AverageCall] = (),
    exact: bool = False,
) -> str:
    """The view's SELECT, reading `names[relation]` (quoted already) for every watched relation.

    `views`: what to read (quoted already) for other views, by their names. `averages`: those of
    whole numbers. Spark's AVG adds them as doubles, in any order; here they are added exactly and
    rounded once. `exact`: IN of a query as a value is NULL where SQL says so; Spark's is FALSE.

    >>> from steadyview.changes import Column
    >>> orders = RelationSchema(RelationName("sales", ("orders",)), (Column("id", "INT"),))
    >>> view = ViewText("v", "SELECT sales.orders.id FROM sales.orders")
    >>> with_tables(view, {orders.name: "`x`"}, [orders])
    'SELECT `orders`.id FROM `x` AS `orders`'
    """
    source = view.source()
    known = {name.lower(): table for name, table in (views or {}).items()}
    tables = _Tables(source, relations, known)
    changes = [*_renamed(tables, names), *_qualifiers(tables)]
    parts = [(a.call, a.argument, _AVERAGE) for a in averages]
    if exact:
        parts += [(span, span, _THREE_VALUED) for span in _in_as_value(tables.tree)]
    # a part inside another one is changed before it
    for whole, argument, form in sorted(parts, key=lambda part: part[0][1] - part[0][0]):
        changes = _formed(source, whole, argument, form, changes)
    return _spliced(source.text, changes, 0, len(source.text))


def averages_in(view: ViewText) -> tuple[AverageCall, ...]:
    """Every AVG in the text, in order, numbered."""
    source = view.source()
    found = []
    for call in read_query(source).find_all(exp.Anonymous):
        name = str(call.name).lower()
        if AGGREGATES.get(name) == "AVG":
            found.append(_average_at(source, place(call)))
    found.sort(key=lambda a: a.call)
    return tuple(AverageCall(a.call, a.argument, i) for i, a in enumerate(found))


def _average_at(source: SourceText, offset: int) -> AverageCall:
    at = next(i for i, t in enumerate(source.tokens) if t.start == offset)
    close = source.partner[at + 1]
    tokens = source.tokens
    argument = (tokens[at + 2].start, tokens[close - 1].stop)
    return AverageCall((tokens[at].start, tokens[close].stop), argument, 0)


@dataclass(frozen=True, eq=False)
class _Table:
    """A table's name in the text."""

    node: exp.Table
    parts: tuple[str, ...]
    start: int
    stop: int
    behind: int

    @property
    def visible_name(self) -> str:
        """By which columns may be qualified."""
        return str(self.node.alias or self.parts[-1]).lower()

    def is_called(self, qualifier: list[str]) -> bool:
        """Whether a column may be qualified so."""
        if self.node.alias or len(self.parts) == 1:
            return [self.visible_name] == qualifier
        return [part.lower() for part in self.parts][-len(qualifier) :] == qualifier


class _Tables:
    """All tables of a text: what each means, and which name each without alias gets."""

    def __init__(
        self, source: SourceText, relations: Sequence[RelationSchema], views: Mapping[str, str]
    ) -> None:
        self.tree = read_query(source, pipes=True)
        ctes = {cte.alias.lower() for cte in self.tree.find_all(exp.CTE)}
        nodes = [t for t in self.tree.find_all(exp.Table) if isinstance(t.this, exp.Identifier)]
        found = {table.start: table for table in map(_table, nodes)}
        self.all = [found[start] for start in sorted(found)]
        sources = {r.name.source.lower() for r in relations if not r.name.path}
        self.relation: dict[_Table, RelationSchema] = {}
        self.view: dict[_Table, str] = {}
        for table in self.all:
            name = table.parts[0].lower()
            if len(table.parts) == 1 and name in ctes:
                continue
            if len(table.parts) == 1 and name in views and name not in sources:
                self.view[table] = views[name]
            else:
                self.relation[table] = find_relation(source, table.parts, table.start, relations)
        self.alias = self._given_aliases()

    def _given_aliases(self) -> dict[_Table, str]:
        """Its own last name for every table without alias, or a fresh one where that is taken."""
        bare = [t for t in self.all if not t.node.alias and (t in self.relation or t in self.view)]
        return {
            table: f"_{number}_{table.parts[-1]}" if self._is_taken(table) else table.parts[-1]
            for number, table in enumerate(bare)
        }

    def _is_taken(self, table: _Table) -> bool:
        """Whether a table of the same name can be seen from the same place."""
        return any(
            other is not table
            and other.visible_name == table.visible_name
            and (_sees(table, other) or _sees(other, table))
            for other in self.all
        )

    def at(self, level: exp.Expression) -> list[_Table]:
        """The tables in FROM of a query."""
        return [t for t in self.all if _level(t.node) is level]


def _table(node: exp.Table) -> _Table:
    first, last = node.parts[0], node.parts[-1]
    stop = int(last.meta["end"]) + 1
    behind = [stop]
    for key in ("sample", "version", "when"):
        part = node.args.get(key)
        if part is not None:
            behind.append(int(part.meta.get("stop", stop)))
    parts = tuple(part.name for part in node.parts)
    return _Table(node, parts, place(first), stop, max(behind))


def _outward(node: exp.Expression) -> Iterator[exp.Expression]:
    """The queries around the node, nearest first."""
    above = node.parent
    while above is not None:
        if isinstance(above, exp.Select):
            yield above
        above = above.parent


def _level(node: exp.Expression) -> exp.Expression | None:
    return next(_outward(node), None)


def _sees(table: _Table, other: _Table) -> bool:
    return any(level is _level(other.node) for level in _outward(table.node))


def _renamed(tables: _Tables, names: Mapping[RelationName, str]) -> list[Change]:
    changes: list[Change] = []
    for table in tables.all:
        relation = tables.relation.get(table)
        if relation is None and table not in tables.view:
            continue
        new = tables.view[table] if relation is None else names[relation.name]
        changes.append((table.start, table.stop, new))
        if table in tables.alias:
            changes.append((table.behind, table.behind, f" AS {_quoted(tables.alias[table])}"))
    return changes


def _qualifiers(tables: _Tables) -> list[Change]:
    changes: dict[int, Change] = {}
    for column in tables.tree.find_all(exp.Column):
        if len(column.parts) > 1:
            change = _qualifier(tables, column)
            if change is not None:
                changes[change[0]] = change
    return list(changes.values())


def _qualifier(tables: _Tables, column: exp.Column) -> Change | None:
    parts = ["*" if isinstance(p, exp.Star) else p.name.lower() for p in column.parts]
    for level in _outward(column):
        for length in range(len(parts) - 1, 0, -1):
            found = [t for t in tables.at(level) if t.is_called(parts[:length])]
            if found:
                return _shortened(tables, column, length, _chosen(tables, found, parts[length]))
    return None


def _chosen(tables: _Tables, found: list[_Table], column: str) -> _Table | None:
    """The one table meant; among several of a name, the one that has the column."""
    if len(found) > 1:
        found = [t for t in found if t in tables.relation and _has(tables.relation[t], column)]
    return found[0] if len(found) == 1 else None


def _has(relation: RelationSchema, column: str) -> bool:
    return column in {c.name.lower() for c in relation.columns}


def _shortened(
    tables: _Tables, column: exp.Column, length: int, table: _Table | None
) -> Change | None:
    alias = tables.alias.get(table) if table else None
    first, last = column.parts[0], column.parts[length - 1]
    if alias is None or (length == 1 and alias.lower() == first.name.lower()):
        return None
    return place(first), int(last.meta["end"]) + 1, _quoted(alias)


def _in_as_value(tree: exp.Expression) -> Iterator[Place]:
    """Every IN of a query that is not itself a condition: there only TRUE counts."""
    for found in tree.find_all(exp.In):
        if found.args.get("query") is None or "span" not in found.meta:
            continue
        above = found.parent
        while isinstance(above, (exp.Paren, exp.Not, exp.And)):
            above = above.parent
        if not isinstance(above, (exp.Where, exp.Having, exp.Join)):
            yield found.meta["span"]


def _formed(
    source: SourceText, whole: Place, argument: Place, form: str, changes: list[Change]
) -> list[Change]:
    """The changes, and the form with its argument in the place of the whole."""
    start, stop = whole
    inside = [c for c in changes if start <= c[0] and c[1] <= stop]
    text = _spliced(source.text, [c for c in inside if argument[0] <= c[0]], *argument)
    outside = [c for c in changes if c not in inside]
    return [*outside, (start, stop, form.format(text))]


def _spliced(text: str, changes: Sequence[Change], begin: int, end: int) -> str:
    """The text from `begin` to `end` with its changes."""
    made = text[:end]
    for start, stop, new in sorted(changes, reverse=True):
        made = made[:start] + new + made[stop:]
    return made[begin:]


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
