"""What a person probably meant where the text says something else: words, quotes, types.

Each function looks at one token and gives a hint, or None where it looks right.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from steadyview.changes import RelationSchema
from steadyview.nearest import did_you_mean
from steadyview.views.source_text import SourceText

_CLAUSES = ("SELECT", "FROM", "JOIN", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "UNION")
_FAR = 0.75
"""Nearer than usual: DELETE is no misspelt SELECT."""
_CASTS = frozenset({"CAST", "TRY_CAST"})
_TYPES = frozenset(
    {"ARRAY", "BIGINT", "BINARY", "BOOLEAN", "BYTE", "CHAR", "CHARACTER", "DATE", "DEC", "DECIMAL"}
    | {"DOUBLE", "FLOAT", "GEOGRAPHY", "GEOMETRY", "INT", "INTEGER", "INTERVAL", "LONG", "MAP"}
    | {"NUMERIC", "REAL", "SHORT", "SMALLINT", "STRING", "STRUCT", "TIME", "TIMESTAMP"}
    | {"TIMESTAMP_LTZ", "TIMESTAMP_NTZ", "TINYINT", "VARCHAR", "VARIANT", "VOID"}
)
_SIZED = frozenset({"CHAR", "CHARACTER", "VARCHAR"})
_OF_OTHERS = {
    **dict.fromkeys(("TEXT", "CLOB", "CITEXT", "NVARCHAR", "UUID", "JSON", "JSONB"), "STRING"),
    **dict.fromkeys(_SIZED, "STRING"),
    **dict.fromkeys(("BYTEA", "BLOB", "VARBINARY"), "BINARY"),
    "INT2": "SMALLINT",
    "INT4": "INT",
    "INT8": "BIGINT",
    "FLOAT4": "FLOAT",
    "FLOAT8": "DOUBLE",
    "BOOL": "BOOLEAN",
    "TIMESTAMPTZ": "TIMESTAMP",
    "DATETIME": "TIMESTAMP_NTZ",
}
"""Types that other databases have, and Spark's for the same values."""


def misspelt_word(
    source: SourceText, at: int, words: Collection[str] = _CLAUSES
) -> str | None:
    """The keyword that the bare word at token `at` may have been meant to be."""
    word = source.word(at)
    if not word.isalpha() or word in words or source.word(at - 1) == ".":
        return None
    return did_you_mean(word, words, _FAR)


def misreading(source: SourceText, at: int) -> str | None:
    """What was probably meant where the text cannot be read at token `at`."""
    quoted = quoted_name(source, at)
    return quoted or misspelt_word(source, at) or misspelt_word(source, at - 1)


def unreadable(source: SourceText, at: int) -> str:
    """The fact that the text cannot be read from token `at` on."""
    raw = source.tokens[at].raw
    shown = raw if raw[0] in "\"'`" else f'"{raw}"'
    return f"cannot be read from {shown} onwards"


def quoted_name(source: SourceText, at: int) -> str | None:
    """How to quote a name, where token `at` is in double quotes."""
    token = source.tokens[at] if at < len(source.tokens) else None
    if token is None or not token.raw.startswith('"'):
        return None
    return f"Spark quotes names with backticks, and texts with double quotes: write `{token.value}`"


def unknown_type(source: SourceText, at: int) -> str | None:
    """What to write for the type at token `at`, where a type stands there that Spark has not."""
    if not _is_type(source, at):
        return None
    name = source.word(at).partition(" ")[0]
    sized = source.word(at + 1) == "("
    if not name or (name in _TYPES and (sized or name not in _SIZED)):
        return None
    known = _OF_OTHERS.get(name)
    if known:
        return f"write {known}: CAST(x AS {known})"
    return did_you_mean(name, _TYPES) or ""


def _is_type(source: SourceText, at: int) -> bool:
    if source.word(at - 1) == "::":
        return True
    if source.word(at - 1) != "AS":
        return False
    opening = max((o for o, c in source.partner.items() if o < at < c), default=0)
    return source.word(opening) == "(" and source.word(opening - 1) in _CASTS


def texts_like_columns(source: SourceText, relations: Sequence[RelationSchema]) -> Iterator[str]:
    """A warning for every text in double quotes that is spelled like a column.

    Other databases quote names so; in Spark it is the same text in every row.
    """
    columns = {c.name.lower() for r in relations for c in r.columns}
    columns |= {
        token.name.lower()
        for at, token in enumerate(source.tokens)
        if token.name and source.word(at - 1) == "AS"
    }
    for token in source.tokens:
        if token.raw.startswith('"') and token.value and token.value.lower() in columns:
            line, column = source.place(token.start)
            yield (
                f"line {line}, column {column}: {token.raw} is a text, the same in every row;"
                f" for the column write {token.value}, or `{token.value}` in backticks,"
                f" for the text '{token.value}'"
            )
