"""What a query's text says that its plan does not tell: quotes, statements, sources."""

from __future__ import annotations

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from steadyview.changes import RelationName
from steadyview.errors import ViewRefused
from steadyview.views.source_text import SourceText


def double_quoted(sql: str) -> list[str]:
    """The texts in double quotes, which are no names in Spark.

    >>> double_quoted('''SELECT "id", 'a"b' FROM v -- "no" ''')
    ['id']
    """
    tokens = SourceText(sql, view="query").tokens
    return [t.value for t in tokens if t.value is not None and t.raw.startswith('"')]


def several_statements(sql: str) -> bool:
    """Whether something follows a semicolon.

    >>> several_statements("SELECT ';' ;"), several_statements("SELECT 1; DROP TABLE x")
    (False, True)
    """
    try:
        words = [t.raw for t in SourceText(sql, view="query").tokens]
    except ViewRefused:
        return False
    return ";" in words and any(word != ";" for word in words[words.index(";") :])


def mentions_source(sql: str, source: str) -> bool:
    """Whether the query reads `source.table`; also where it cannot be parsed and may do so.

    >>> mentions_source("SELECT 1 AS crm FROM Sales.orders", "sales")
    True
    >>> mentions_source("SELECT 1 AS crm FROM Sales.orders", "crm")
    False
    """
    tables = _tables(sql)
    if tables is None:
        return source.lower() in sql.lower()
    return any(parts[0] == source.lower() for parts in tables if len(parts) > 1)


def mentions_relation(sql: str, relation: RelationName) -> bool:
    """Whether the query may read the relation, by whichever of its names.

    >>> orders = RelationName("sales", ("public", "orders"))
    >>> texts = ("sales.Orders", "public.orders", "sales.public.orders", "crm.orders")
    >>> [mentions_relation(f"SELECT * FROM {text}", orders) for text in texts]
    [True, True, True, False]
    """
    tables = _tables(sql)
    if tables is None:
        return relation.source.lower() in sql.lower()
    whole = [part.lower() for part in (relation.source, *relation.path)]
    names = [whole[i:] for i in range(len(whole))] + [[whole[0], whole[-1]]]
    return any(parts in names for parts in tables)


def _tables(sql: str) -> list[list[str]] | None:
    """The names that are read, in parts of lower case; None for a text that cannot be parsed."""
    try:
        tree = sqlglot.parse_one(sql, read="spark")
    except SqlglotError:
        return None
    return [[part.name.lower() for part in t.parts] for t in tree.find_all(exp.Table)]
