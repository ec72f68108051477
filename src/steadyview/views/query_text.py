"""A query's text over views and source tables: which tables it means, and what it reads of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from sqlglot import exp

from steadyview.changes import RelationName, RelationSchema
from steadyview.errors import QueryRefused, ViewRefused
from steadyview.views.names import find_relation
from steadyview.views.parse import ViewText
from steadyview.views.reading import read_query
from steadyview.views.rewrite import with_tables

_NAME = "the query"


def tables_meant(
    sql: str, names: Iterable[tuple[str, ...]], relations: Sequence[RelationSchema]
) -> list[RelationSchema]:
    """The watched relations that these names of several parts mean; QueryRefused for any other."""
    source = _text(sql).source()
    found: dict[RelationName, RelationSchema] = {}
    for parts in sorted(names):
        try:
            relation = find_relation(source, parts, 0, relations)
        except ViewRefused as unknown:
            raise QueryRefused(
                f'"{".".join(parts)}" is not a view, nor a table of a source',
                detail="a view is named by one word, a table that steadyview captures by source and"
                " table; files, other tables and catalogs are not read",
                hint=unknown.hint,
            ) from None
        found[relation.name] = relation
    return list(found.values())


def columns_named(sql: str, relation: RelationSchema) -> list[int]:
    """The columns of the relation that the query may read: all, where a star may mean them.

    >>> from steadyview.changes import Column
    >>> columns = tuple(Column(n, "INT") for n in ("id", "name", "Born"))
    >>> people = RelationSchema(RelationName("crm", ("people",)), columns)
    >>> columns_named("SELECT COUNT(*), MAX(p.born) FROM crm.people p", people)
    [2]
    >>> columns_named("SELECT p.* FROM crm.people p", people)
    [0, 1, 2]
    """
    tree = _tree(sql)
    stars = (s for s in tree.find_all(exp.Star) if isinstance(s.parent, (exp.Select, exp.Column)))
    if next(stars, None) is not None:
        return list(range(len(relation.columns)))
    named = {str(identifier.name).lower() for identifier in tree.find_all(exp.Identifier)}
    natural = any(join.args.get("method") for join in tree.find_all(exp.Join))
    if natural:
        return list(range(len(relation.columns)))
    return [i for i, c in enumerate(relation.columns) if c.name.lower() in named]


def over_tables(
    sql: str,
    tables: Mapping[RelationName, str],
    relations: Sequence[RelationSchema],
    views: Iterable[str],
) -> str:
    """The query's text, reading `tables[relation]` (quoted already) in the place of each."""
    read = {view: "`" + view.replace("`", "``") + "`" for view in views}
    try:
        return with_tables(_text(sql), tables, relations, read)
    except ViewRefused as error:
        raise _refused(error) from None


def _tree(sql: str) -> exp.Expression:
    try:
        return read_query(_text(sql).source(), pipes=True)
    except ViewRefused as error:
        raise _refused(error) from None


def _text(sql: str) -> ViewText:
    return ViewText(_NAME, sql.strip().rstrip(";"))


def _refused(error: ViewRefused) -> QueryRefused:
    fact = error.message.replace(f'view "{_NAME}"', _NAME)
    return QueryRefused(
        f"{fact}",
        detail="a query over tables of sources has to be readable to us, not to Spark alone",
        hint=error.hint,
    )
