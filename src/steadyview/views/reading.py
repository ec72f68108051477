"""From a view's SELECT to sqlglot's tree, or to the place where it cannot be read."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError

from steadyview.errors import ViewRefused
from steadyview.views.dialect import parsed
from steadyview.views.misreadings import (
    misreading,
    misspelt_word,
    quoted_name,
    unknown_type,
    unreadable,
)
from steadyview.views.source_text import SourceText

_PARSER_FAILURES = (
    SqlglotError,
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    AssertionError,
    RecursionError,
)
_TRAVELS = {"VERSION", "TIMESTAMP", "SYSTEM_VERSION", "SYSTEM_TIME"}
TAIL = ("order", "limit", "offset")
_MARKERS = {"?", "$", "@", ":", "{", "}"}


def read_query(source: SourceText, *, pipes: bool = False) -> exp.Expression:
    """The tree of the text; SYNTAX_ERROR or PARAMETER, with its place, if there is none.

    `pipes`: the text may have |>, whose tree is not as it is written.
    """
    _ = source.partner
    _check_tokens(source, pipes=pipes)
    try:
        tree = parsed(source.text)
    except ParseError as error:
        raise _syntax_error(source, error) from None
    except _PARSER_FAILURES:
        raise source.refusal("SYNTAX_ERROR", 0, "cannot be read as SQL") from None
    if not isinstance(tree, (exp.Query, exp.Values)):
        raise source.refusal("SYNTAX_ERROR", 0, "is no query")
    return tree


def without_tail(tree: exp.Expression) -> exp.Expression:
    """The query without what is done to its rows at the end."""
    bare = tree.copy()
    for key in TAIL:
        bare.set(key, None)
    return bare


def _check_tokens(source: SourceText, *, pipes: bool) -> None:
    """Refuse what sqlglot reads and Spark does not, or otherwise."""
    for at, token in enumerate(source.tokens):
        if token.word in _MARKERS:
            raise source.refuse_at("PARAMETER", at, f'has the marker "{token.word}"')
        quoted = quoted_name(source, at)
        if quoted and "." in (source.word(at - 1), source.word(at + 1)):
            raise source.refuse_at("SYNTAX_ERROR", at, "quotes a name like a text", instead=quoted)
        if token.word == "|>" and not pipes:
            raise source.refuse_at("UNSUPPORTED_SYNTAX", at, "uses |>")
        if token.word == "," and source.word(at + 1) == "FROM" and source.word(at + 2) != ".":
            fact = 'has nothing between "," and FROM'
            raise source.refuse_at("SYNTAX_ERROR", at + 1, fact, instead='leave out the ","')


def _syntax_error(source: SourceText, error: ParseError) -> ViewRefused:
    first = error.errors[0] if error.errors else {}
    line, column = first.get("line") or 1, first.get("col") or 1
    column = max(column - len(first.get("highlight") or " ") + 1, 1)
    start = 0
    for _ in range(line - 1):
        newline = source.text.find("\n", start)
        start = newline + 1 if newline >= 0 else start
    return _unreadable_from(source, min(max(start + column - 1, 0), len(source.text)))


def _unreadable_from(source: SourceText, place: int) -> ViewRefused:
    at = next((i for i, t in enumerate(source.tokens) if t.stop > place), len(source.tokens))
    if at == len(source.tokens):
        return source.refusal("SYNTAX_ERROR", place, "ends too early")
    type_ = unknown_type(source, at)
    if type_ is not None:
        fact = f'casts to the unknown type "{source.tokens[at].raw}"'
        return source.refuse_at("UNKNOWN_TYPE", at, fact, instead=type_ or None)
    if source.word(at) == "FOR" and source.word(at + 1) in _TRAVELS:
        return source.refuse_at("TIME_TRAVEL", at, "reads a table as of another time")
    if not misspelt_word(source, at) and misspelt_word(source, at - 1):
        at -= 1  # it was taken for the alias of what stands before it
    way = misreading(source, at)
    return source.refuse_at("SYNTAX_ERROR", at, unreadable(source, at), instead=way)
