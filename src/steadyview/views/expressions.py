"""One expression of the view's text: its column names, its aggregates, its alias.

The grammar of expressions is sqlglot's; what it finds is kept as spans of the user's tokens. What
cannot be maintained inside an expression is refused here, at its token: functions that are not
deterministic scalars, subqueries, windows, markers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError

from steadyview.errors import ViewRefused
from steadyview.nearest import did_you_mean
from steadyview.views.functions import AGGREGATES, INSTEAD, SCALAR, SESSION_WORDS, refusal_of
from steadyview.views.misreadings import misreading, quoted_name, unknown_type, unreadable
from steadyview.views.source_text import SourceText, Span

_LEAD = "SELECT "
_MARKERS = {"?", "$", "@", ":", "{", "}"}
_LIKES = {"LIKE", "ILIKE", "RLIKE"}
_NOT_FUNCTIONS = frozenset(
    {"IN", "AND", "OR", "NOT", "CASE", "WHEN", "THEN", "ELSE", "BETWEEN", "LIKE", "ILIKE", "RLIKE"}
    | {"REGEXP", "IS", "AS", "ON", "DISTINCT", "INTERVAL", "ESCAPE", "DIV", "FROM", "FOR", "BY"}
    | {
        "PLACING",
        "BOTH",
        "LEADING",
        "TRAILING",
        "OVER",
        "FILTER",
        "COLLATE",
        "USING",
        "SELECT",
        "EXCEPT",
    }
)
_PARSER_FAILURES = (
    SqlglotError,
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    RecursionError,
)


@dataclass(frozen=True)
class Name:
    """A column's name as written, dotted."""

    parts: tuple[str, ...]
    span: Span


@dataclass(frozen=True)
class Call:
    """An aggregate (COUNT, SUM, AVG). `argument` is None where rows are counted."""

    aggregate: str
    span: Span
    argument: Span | None


@dataclass(frozen=True)
class Expression:
    """An expression: `star` is the qualifier of a `*` (empty for a bare one), None for others."""

    span: Span
    alias: str | None
    names: tuple[Name, ...]
    calls: tuple[Call, ...]
    star: tuple[str, ...] | None = None


def read(source: SourceText, span: Span, *, item: bool = False) -> Expression:
    """The expression in `span`; with `item`, one of a SELECT list (alias and `*` allowed)."""
    _refuse_foreign(source, span)
    tree = _parsed(source, span)
    alias = None
    if item:
        span, alias, tree = _without_alias(source, span, tree)
        star = _star(tree)
        if star is not None:
            return Expression(span, alias, (), (), star)
    _refuse_shapes(source, span, tree)
    calls = tuple(_calls(source, span))
    names = tuple(_names(source, span, tree))
    _refuse_session_words(source, span, {name.span.start for name in names})
    return Expression(span, alias, names, calls)


def check_syntax(source: SourceText) -> None:
    """SYNTAX_ERROR, with its place, if the whole text cannot be read as Spark's SQL."""
    try:
        sqlglot.parse_one(source.text, read="spark")
    except ParseError as error:
        raise _syntax_error(source, error, 0, 0) from None
    except _PARSER_FAILURES:
        raise source.refusal("SYNTAX_ERROR", 0, "cannot be read as SQL") from None


def _parsed(source: SourceText, span: Span) -> exp.Expression:
    start = source.offset(span.start)
    try:
        tree = sqlglot.parse_one(_LEAD + source.slice(span), read="spark")
    except ParseError as error:
        raise _syntax_error(source, error, start, len(_LEAD)) from None
    except _PARSER_FAILURES:
        raise source.refusal("SYNTAX_ERROR", start, "has an unreadable expression") from None
    parts = [key for key, value in tree.args.items() if value]
    if not isinstance(tree, exp.Select) or parts != ["expressions"] or len(tree.expressions) != 1:
        raise source.refusal("SYNTAX_ERROR", start, "has no single expression here")
    expression: exp.Expression = tree.expressions[0]
    return expression


def _syntax_error(source: SourceText, error: ParseError, start: int, lead: int) -> ViewRefused:
    """The parser's error, moved from the text it was given to its place in the view."""
    first = error.errors[0] if error.errors else {}
    line, column = first.get("line") or 1, first.get("col") or 1
    column = max(column - len(first.get("highlight") or " ") + 1, 1)
    offset = column - 1 - (lead if line == 1 else 0)
    for _ in range(line - 1):
        newline = source.text.find("\n", start)
        start = newline + 1 if newline >= 0 else start
    place = min(max(start + offset, 0), len(source.text))
    return _unreadable_from(source, place)


def _unreadable_from(source: SourceText, place: int) -> ViewRefused:
    at = next((i for i, t in enumerate(source.tokens) if t.stop > place), len(source.tokens))
    if at == len(source.tokens):
        return source.refusal("SYNTAX_ERROR", place, "ends too early")
    _refuse_spelling(source, at)
    way = misreading(source, at)
    return source.refusal("SYNTAX_ERROR", place, unreadable(source, at), instead=way)


def _without_alias(
    source: SourceText, span: Span, tree: exp.Expression
) -> tuple[Span, str | None, exp.Expression]:
    if isinstance(tree, exp.Aliases):
        raise source.refuse_at("GENERATOR", span.start, "gives several names to one expression")
    if not isinstance(tree, exp.Alias):
        return span, None, tree
    last = source.tokens[span.stop - 1]
    if not last.name or last.name != tree.alias:
        way = quoted_name(source, span.stop - 1)
        fact = f"has {last.raw} where a column's name was expected"
        raise source.refuse_at(
            "UNSUPPORTED_SYNTAX", span.stop - 1, fact, instead=way, recompute=not way
        )
    stop = span.stop - 1
    stop -= source.word(stop - 1) == "AS"
    return Span(span.start, stop), last.name, tree.this


def _star(tree: exp.Expression) -> tuple[str, ...] | None:
    star = tree.this if isinstance(tree, exp.Column) else tree
    if not isinstance(star, exp.Star) or any(star.args.values()):
        return None
    return tuple(part.name for part in tree.parts[:-1]) if isinstance(tree, exp.Column) else ()


def _refuse_shapes(source: SourceText, span: Span, tree: exp.Expression) -> None:
    for star in tree.find_all(exp.Star):
        if not isinstance(star.parent, exp.Count):
            way = "list the columns one by one"
            fact = 'has a "*" that is not COUNT(*) or a whole list of columns'
            raise source.refuse_at("UNSUPPORTED_SYNTAX", span.start, fact, instead=way)
    for alias in tree.find_all(exp.Alias):
        if not isinstance(alias.parent, exp.Struct):
            raise source.refuse_at("SYNTAX_ERROR", span.start, "has an alias inside an expression")


def _names(source: SourceText, span: Span, tree: exp.Expression) -> Iterator[Name]:
    base = source.offset(span.start) - len(_LEAD)
    number = {source.tokens[i].start: i for i in range(span.start, span.stop)}
    found: dict[int, Name] = {}
    for column in tree.find_all(exp.Column):
        at = [number.get(base + part.meta.get("start", -1)) for part in column.parts]
        first, last = at[0], at[-1]
        if first is None or last is None:
            raise source.refuse_at("UNSUPPORTED_SYNTAX", span.start, "has an unreadable column")
        parts = tuple(source.tokens[i].name for i in range(first, last + 1, 2))
        found[first] = Name(parts, Span(first, last + 1))
    yield from (found[i] for i in sorted(found))


def _refuse_foreign(source: SourceText, span: Span) -> None:
    """Refuse what no maintained expression holds, token by token."""
    for i in range(span.start, span.stop):
        word, before = source.word(i), source.word(i - 1)
        if word in _MARKERS:
            raise source.refuse_at("PARAMETER", i, f'has the marker "{word}"')
        if word in {"SELECT", "VALUES"} and before == "(":
            raise _subquery(source, span, i)
        if word == "OVER" and before in {")", "NULLS"}:
            raise source.refuse_at("WINDOW", i, "uses a window function")
        if word == "FILTER" and before == ")":
            raise source.refuse_at("AGGREGATE_FILTER", i, "filters an aggregate")
        if _is_call(source, i):
            _refuse_call(source, i)
        _refuse_spelling(source, i)


def _subquery(source: SourceText, span: Span, i: int) -> ViewRefused:
    """A join can take the place of IN and EXISTS only where they are a condition by themselves."""
    kind = source.word(i - 2)
    if kind not in {"IN", "EXISTS"}:
        return source.refuse_at("SUBQUERY", i, "has a subquery in an expression", instead="")
    negation = "NOT " if source.word(i - 3) in {"NOT", "!"} else ""
    words = {source.word(at) for at in range(span.start, i)}
    ends = source.partner[i - 1] == span.stop - 1
    alone = ends and source.word(span.start - 1) in {"WHERE", "ON", "AND", "("}
    joinable = alone and words.isdisjoint({"NOT", "!", "OR", "CASE"})
    fact = f"uses {negation}{kind} with a subquery"
    return source.refuse_at("SUBQUERY", i, fact, instead=None if joinable else "")


def _refuse_spelling(source: SourceText, i: int) -> None:
    """Refuse types that Spark has not, and names in double quotes where only a name can be."""
    type_ = unknown_type(source, i)
    if type_ is not None:
        fact = f'casts to the unknown type "{source.tokens[i].raw}"'
        raise source.refuse_at("UNKNOWN_TYPE", i, fact, instead=type_ or None)
    quoted = quoted_name(source, i)
    if quoted and "." in (source.word(i - 1), source.word(i + 1)):
        raise source.refuse_at("SYNTAX_ERROR", i, "quotes a name like a text", instead=quoted)


def _is_call(source: SourceText, i: int) -> bool:
    word, before = source.word(i), source.word(i - 1)
    if source.word(i + 1) != "(" or not source.tokens[i].name or word in _NOT_FUNCTIONS:
        return False
    if word in {"ANY", "SOME", "ALL"} and before in _LIKES:
        return False
    return before not in {"AS", "::"}


def _refuse_call(source: SourceText, i: int) -> None:
    name = source.tokens[i].name.lower()
    if source.word(i - 1) == ".":
        raise _unknown_function(source, i)
    code = refusal_of(name, arguments=source.word(i + 2) != ")")
    if code == "UNKNOWN_FUNCTION":
        raise _unknown_function(source, i)
    if code:
        fact = f'calls the function "{name}"'
        recompute = False if name in INSTEAD else None
        raise source.refuse_at(code, i, fact, instead=INSTEAD.get(name), recompute=recompute)
    if name in AGGREGATES and source.word(i + 2) == "DISTINCT":
        raise source.refuse_at("DISTINCT_AGGREGATE", i, f'uses "{name}" over DISTINCT')


def _unknown_function(source: SourceText, i: int) -> ViewRefused:
    name = source.tokens[i].name.lower()
    if source.word(i - 1) == ".":
        name = f"{source.tokens[i - 2].name.lower()}.{name}"
    near = did_you_mean(name, SCALAR | AGGREGATES.keys())
    return source.refuse_at(
        "UNKNOWN_FUNCTION", i, f'calls the unknown function "{name}"', instead=near
    )


def _calls(source: SourceText, span: Span) -> Iterator[Call]:
    inside = span.start
    for i in range(span.start, span.stop):
        aggregate = AGGREGATES.get(source.tokens[i].name.lower())
        if not aggregate or not _is_call(source, i):
            continue
        if i < inside:
            raise source.refuse_at("AGGREGATE_MISPLACED", i, "has an aggregate in an aggregate")
        inside = source.partner[i + 1]
        yield Call(aggregate, Span(i, inside + 1), _argument(source, aggregate, i + 2, inside))


def _argument(source: SourceText, aggregate: str, start: int, stop: int) -> Span | None:
    if start >= stop:
        raise source.refuse_at("SYNTAX_ERROR", start, f"has {aggregate} of nothing")
    at = start
    while at < stop:
        if source.word(at) == ",":
            raise source.refuse_at("OTHER_AGGREGATE", at, f"has {aggregate} of several expressions")
        at = source.partner.get(at, at) + 1
    alone = stop - start == 1
    if aggregate == "COUNT" and alone and _counts_rows(source, start):
        return None
    return Span(start, stop)


def _counts_rows(source: SourceText, at: int) -> bool:
    return source.word(at) == "*" or source.tokens[at].raw.isdigit()


def _refuse_session_words(source: SourceText, span: Span, names: set[int]) -> None:
    for i in range(span.start, span.stop):
        bare = source.word(i).lower() in SESSION_WORDS and source.word(i - 1) != "."
        if bare and i not in names and source.word(i + 1) not in {"(", "."}:
            raise source.refuse_at("SESSION_FUNCTION", i, f'uses "{source.tokens[i].raw}"')
