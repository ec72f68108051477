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
