"""Where clauses end: the words of Spark's SELECT that cannot be part of what stands before them.

Most of Spark's keywords may also be names. A word ends an expression only where an operand has just
ended: `WHERE offset > 1 OFFSET 2` has one column and one clause.
"""

from __future__ import annotations

from steadyview.views.source_text import SourceText

SET_OPERATIONS = frozenset({"UNION", "EXCEPT", "INTERSECT", "MINUS"})
TRAILING = {
    "HAVING": "HAVING",
    "ORDER BY": "ORDER_BY",
    "SORT BY": "ORDER_BY",
    "CLUSTER BY": "ORDER_BY",
    "DISTRIBUTE BY": "ORDER_BY",
    "LIMIT": "LIMIT",
    "OFFSET": "LIMIT",
    "FETCH": "LIMIT",
    "WINDOW": "WINDOW",
    "QUALIFY": "WINDOW",
    "LATERAL": "LATERAL_VIEW",
    "PIVOT": "PIVOT",
    "UNPIVOT": "PIVOT",
    "|>": "UNSUPPORTED_SYNTAX",
    **dict.fromkeys(SET_OPERATIONS, "SET_OPERATION"),
}
"""Clauses behind FROM, WHERE and GROUP BY, with the code that refuses each."""

_JOIN_KINDS = frozenset(
    {"INNER", "CROSS", "LEFT", "RIGHT", "FULL", "OUTER", "SEMI", "ANTI", "NATURAL", "ASOF"}
)
_CLAUSES = frozenset({"FROM", "WHERE", "GROUP BY", "ON", "USING", "JOIN", *TRAILING})
_SOFT = frozenset({"LIMIT", "OFFSET", "FETCH", "WINDOW", "QUALIFY", "LATERAL", "PIVOT", "UNPIVOT"})
_BEHIND_TABLES = frozenset({"TABLESAMPLE", "AS", "SELECT", "INSERT", "SET"})
_NEVER_OPERANDS = frozenset(
    {"AND", "OR", "NOT", "IN", "LIKE", "ILIKE", "RLIKE", "REGEXP", "IS", "BETWEEN", "CASE", "WHEN"}
    | {
        "THEN",
        "ELSE",
        "DIV",
        "ESCAPE",
        "SELECT",
        "DISTINCT",
        "ALL",
        "WHERE",
        "ON",
        "FROM",
        "BY",
        "AS",
    }
)


def joins(source: SourceText, i: int) -> bool:
    """Whether a join starts at token i: JOIN, or its kind (`LEFT(x, 2)` is a function)."""
    while source.word(i) in _JOIN_KINDS:
        i += 1
    return source.word(i) == "JOIN"


def ends_expression(source: SourceText, i: int) -> bool:
    """Whether token i is a clause's word that ends the expression or list before it."""
    word = source.word(i)
    if word not in _CLAUSES and not joins(source, i):
        return False
    before = source.word(i - 1)
    if before == "." or source.word(i + 1) == ".":
        return False
    if word == "FROM" and before == "DISTINCT" and source.word(i - 2) in {"IS", "NOT"}:
        return False
    if word == "EXCEPT" and before == "*" and source.word(i + 1) == "(":
        return False
    soft = word in _SOFT or word == "MINUS"
    return not soft or before in {")", "]", "*", ""} or _names(before)


def _names(word: str) -> bool:
    return (word[0].isalpha() or word[0] == "_") and word not in _NEVER_OPERANDS


def travels(source: SourceText, i: int) -> bool:
    """Whether a time travel clause starts at token i."""
    if source.word(i) == "FOR":
        i += 1
    known = source.word(i) in {"VERSION", "TIMESTAMP", "SYSTEM_VERSION", "SYSTEM_TIME"}
    return source.word(i) == "@" or (
        known and [source.word(i + 1), source.word(i + 2)] == ["AS", "OF"]
    )


def is_alias(source: SourceText, i: int) -> bool:
    """Whether token i, right behind a table, is the table's alias without AS."""
    if i >= len(source.tokens) or not source.tokens[i].name:
        return False
    word = source.word(i)
    if word in _CLAUSES or word in _BEHIND_TABLES:
        return False
    return not joins(source, i) and not travels(source, i) and not _is_group(source, i)


def _is_group(source: SourceText, i: int) -> bool:
    return source.word(i) in {"GROUP", "ORDER", "SORT", "CLUSTER"} and source.word(i + 1) == "BY"
