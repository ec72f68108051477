"""What a query's text says that its plan does not tell: quotes, statements, sources."""

from __future__ import annotations

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

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
    try:
        tree = sqlglot.parse_one(sql, read="spark")
    except SqlglotError:
        return source.lower() in sql.lower()
    tables = (table.parts for table in tree.find_all(exp.Table))
    return any(len(parts) > 1 and parts[0].name.lower() == source.lower() for parts in tables)
