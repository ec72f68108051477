"""Which names of some known ones a query reads from."""

from __future__ import annotations

import re
from collections.abc import Collection

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError


def mentioned(sql: str, known: Collection[str]) -> set[str]:
    """The known names that the query reads; where it cannot be parsed, those that occur in it.

    >>> sorted(mentioned("SELECT b FROM a JOIN c USING (x)", ["a", "b", "C"]))
    ['C', 'a']
    """
    try:
        tree = sqlglot.parse_one(sql, read="spark")
        words = {table.name.lower() for table in tree.find_all(exp.Table)}
    except SqlglotError:
        words = {word.lower() for word in re.findall(r"\w+", sql)}
    return {name for name in known if name.lower() in words}


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
