"""The structure of a query: WITH, SELECT list, FROM, WHERE, GROUP BY, each as a span of tokens.

The grammar is Spark's, restricted to what can be maintained; where the text leaves it, the reader
raises the reason at the very token. Expressions are only delimited here, not read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar

from steadyview.errors import ViewRefused
from steadyview.views.misreadings import misreading, misspelt_word, quoted_name, unreadable
from steadyview.views.reasons import BY_CODE
from steadyview.views.source_text import SourceText, Span
from steadyview.views.trailing import joined, refuse_trailing, trailing_words
from steadyview.views.words import TRAILING, ends_expression, is_alias, joins, travels

_T = TypeVar("_T")
_MAXIMAL_DEPTH = 50
# Of several words of one join, the first here decides: LEFT SEMI is a semijoin.
_KIND_REFUSALS = {
    "NATURAL": "NATURAL_JOIN",
    "ASOF": "ASOF_JOIN",
    "SEMI": "SEMI_JOIN",
    "ANTI": "SEMI_JOIN",
    "LEFT": "OUTER_JOIN",
    "RIGHT": "OUTER_JOIN",
    "FULL": "OUTER_JOIN",
    "OUTER": "OUTER_JOIN",
}
_DISTINCT_ON = (
    "Spark has no DISTINCT ON: leave it out, and keep one row of each group when you read the view"
)
_NO_KEYS = "leave GROUP BY () out: aggregates without GROUP BY are over all rows"
_PRIMARY_REFUSALS = {"LATERAL": "LATERAL_JOIN", "VALUES": "NO_FROM", "TABLE": "TABLE_FUNCTION"}
_PRIMARY_HINTS = {
    "VALUES": "put the values into a table of a source",
    "TABLE": "write the name of a table, source.table, without TABLE",
}


@dataclass(frozen=True)
class Alias:
    """`AS name (columns...)`; columns empty if not renamed."""

    name: str
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """A table's dotted name as written."""

    parts: tuple[str, ...]
    alias: Alias | None
    at: int


@dataclass(frozen=True)
class Subquery:
    """A query in FROM."""

    query: Query
    alias: Alias | None
    at: int


@dataclass(frozen=True)
class Parenthesized:
    """Joins in parentheses."""

    relations: tuple[Relation, ...]
    alias: Alias | None
    at: int


@dataclass(frozen=True)
class Join:
    """An inner or cross join; `using` gives columns by name and token number."""

    left: Relation
    right: Relation
    on: Span | None
    using: tuple[tuple[str, int], ...]
    at: int


Relation: TypeAlias = "Table | Subquery | Parenthesized | Join"


@dataclass(frozen=True)
class Cte:
    """One query of a WITH clause."""

    alias: Alias
    query: Query
    at: int


@dataclass(frozen=True)
class Query:
    """One SELECT. `group` is None without GROUP BY; `group_all`: GROUP BY ALL."""

    ctes: tuple[Cte, ...]
    items: tuple[Span, ...]
    relations: tuple[Relation, ...]
    where: Span | None
    group: tuple[Span, ...] | None
    group_all: bool
    at: int


def outline(source: SourceText) -> Query:
    """The structure of the whole text; ViewRefused at the first thing that is not maintained."""
    return _Reader(source, 0, len(source.tokens), 0).whole_query()


class _Reader:
    """Reads tokens `at`..`stop`; brackets inside are read by readers of their own."""

    def __init__(self, source: SourceText, at: int, stop: int, depth: int) -> None:
        self._source = source
        self._at = at
        self._stop = stop
        self._depth = depth
        if depth > _MAXIMAL_DEPTH:
            raise source.refuse_at("UNSUPPORTED_SYNTAX", at, "is nested too deeply")

    def whole_query(self) -> Query:
        """Everything up to the stop is one query."""
        query = self._query()
        self._end()
        return query

    def whole_relations(self) -> tuple[Relation, ...]:
        """Everything up to the stop is a list of relations."""
        relations = self._list(self._joined)
        self._end()
        return relations

    def _end(self) -> None:
        if self._at >= self._stop:
            return
        if self._word() in TRAILING:
            inner = self._depth > 0
            raise refuse_trailing(self._source, self._at, self._stop, inner=inner)
        if misspelt_word(self._source, self._at - 1):
            # it was taken for the alias of what stands before it
            self._at -= 1
        way = misreading(self._source, self._at)
        if self._word() == "ON":
            way = "write every ON right behind the JOIN that it belongs to"
        raise self._misread(unreadable(self._source, self._at), way)

    def _query(self) -> Query:
        start = self._at
        ctes = self._ctes()
        if self._word() == "(":
            inner = self._inside().whole_query()
            return replace(inner, ctes=(*ctes, *inner.ctes))
        if self._word() in {"VALUES", "FROM", "TABLE"}:
            raise self._refused("NO_FROM", "has no SELECT ... FROM here")
        if not self._take("SELECT"):
            raise self._refused("UNSUPPORTED_SYNTAX", "has no SELECT where a query was expected")
        return self._select(ctes, start)

    def _select(self, ctes: tuple[Cte, ...], start: int) -> Query:
        self._take("ALL")
        if self._word() == "DISTINCT":
            raise self._distinct()
        items = self._list(self._expression)
        if self._word() in TRAILING:
            self._end()
        if not self._take("FROM"):
            raise self._without_from(start)
        relations = self._list(self._joined)
        where = self._expression() if self._take("WHERE") else None
        group, group_all = self._group() if self._take("GROUP BY") else (None, False)
        return Query(ctes, items, relations, where, group, group_all, start)

    def _distinct(self) -> ViewRefused:
        """Told with the clauses at the end of the query, which would be refused next."""
        if self._source.word(self._at + 1) == "ON":
            fact = "uses SELECT DISTINCT ON"
            return self._source.refuse_at(
                "DISTINCT", self._at, fact, instead=_DISTINCT_ON, recompute=False
            )
        behind = trailing_words(self._source, self._at, self._stop)
        fact = f"uses {joined(['SELECT DISTINCT', *behind])}"
        if not {TRAILING[word] for word in behind} <= {"ORDER_BY", "LIMIT"} or self._depth:
            return self._refused("DISTINCT", fact, "")
        instead = BY_CODE["DISTINCT"].instead
        if behind:
            instead += f"; write {joined(behind)} when you read the view"
        return self._refused("DISTINCT", fact, "" if self._is_grouped() else instead)

    def _is_grouped(self) -> bool:
        at = self._at
        while at < self._stop and self._source.word(at) != "GROUP BY":
            at = self._source.partner.get(at, at) + 1
        return at < self._stop

    def _without_from(self, start: int) -> ViewRefused:
        for at in range(start + 1, self._at):
            instead = misspelt_word(self._source, at, ["FROM"])
            if instead:
                fact = f"has {self._source.tokens[at].raw} where FROM was expected"
                return self._source.refuse_at("NO_FROM", at, fact, instead=instead)
        return self._source.refuse_at("NO_FROM", start, "has a SELECT without FROM")

    def _ctes(self) -> tuple[Cte, ...]:
        if not self._take("WITH"):
            return ()
        if self._word() == "RECURSIVE":
            raise self._refused("RECURSIVE", "uses a recursive WITH")
        return self._list(self._cte)

    def _cte(self) -> Cte:
        at = self._at
        alias = self._alias_named()
        self._take("AS")
        if self._word() != "(":
            raise self._refused("UNSUPPORTED_SYNTAX", f'has no query for "{alias.name}"')
        return Cte(alias, self._inside().whole_query(), at)

    def _group(self) -> tuple[tuple[Span, ...], bool]:
        if self._word() == "ALL" and self._ended(self._at + 1):
            self._at += 1
            return (), True
        spans = self._list(self._group_item)
        return spans, False

    def _group_item(self) -> Span:
        if self._word() == "(" and self._source.word(self._at + 1) == ")":
            raise self._source.refuse_at(
                "GROUPING_SETS", self._at, "groups by ()", instead=_NO_KEYS, recompute=False
            )
        if self._word() in {"GROUPING SETS", "CUBE", "ROLLUP"}:
            raise self._refused("GROUPING_SETS", f"groups by {self._word()}")
        span = self._expression()
        for i in range(span.start, span.stop - 1):
            if self._source.word(i) == "WITH" or self._source.word(i) == "GROUPING SETS":
                words = f"{self._source.word(i)} {self._source.word(i + 1)}".rstrip(" (")
                fact = f"groups by {words}"
                raise self._source.refuse_at("GROUPING_SETS", i, fact)
        return span

    def _joined(self) -> Relation:
        left = self._primary()
        while self._at < self._stop and joins(self._source, self._at):
            at = self._at
            self._join_kind()
            right = self._primary()
            on = self._expression() if self._take("ON") else None
            using = self._using() if on is None and self._take("USING") else ()
            left = Join(left, right, on, using, at)
        return left

    def _join_kind(self) -> None:
        start = self._at
        while not self._take("JOIN"):
            self._at += 1
        kinds = [self._source.word(i) for i in range(start, self._at - 1)]
        code = next((_KIND_REFUSALS[kind] for kind in _KIND_REFUSALS if kind in kinds), None)
        if code:
            fact = f"uses {' '.join(kinds)} JOIN"
            instead, recompute = _way_around(kinds)
            raise self._source.refuse_at(code, start, fact, instead=instead, recompute=recompute)

    def _using(self) -> tuple[tuple[str, int], ...]:
        reader = self._inside()
        names = reader._list(reader._name_at)
        reader._end()
        return names

    def _primary(self) -> Relation:
        at = self._at
        if self._word() in _PRIMARY_REFUSALS and self._source.word(at + 1) != ".":
            raise self._not_a_table()
        if self._word() == "(":
            return self._bracketed()
        parts = self._path()
        if self._word() == "(":
            raise self._source.refuse_at("TABLE_FUNCTION", at, f'reads the function "{parts[-1]}"')
        self._refuse_behind_table()
        alias = self._alias()
        self._refuse_behind_table()
        return Table(parts, alias, at)

    def _not_a_table(self) -> ViewRefused:
        word, way = self._word(), _PRIMARY_HINTS.get(self._word())
        return self._source.refuse_at(
            _PRIMARY_REFUSALS[word],
            self._at,
            f"uses {word} in FROM",
            instead=way,
            recompute=None if way is None else False,
        )

    def _bracketed(self) -> Relation:
        at = self._at
        word = self._source.word(at + 1)
        reader = self._inside()
        if word in {"SELECT", "WITH"} or (word == "(" and reader._holds_query()):
            query = reader.whole_query()
            self._refuse_behind_table()
            return Subquery(query, self._alias(), at)
        if word in _PRIMARY_REFUSALS:
            raise reader._not_a_table()
        relations = reader.whole_relations()
        self._refuse_behind_table()
        return Parenthesized(relations, self._alias(), at)

    def _holds_query(self) -> bool:
        at = self._at
        while self._source.word(at) == "(":
            closing = self._source.partner[at]
            at += 1
            if closing != self._stop - 1 and self._source.word(closing + 1) not in TRAILING:
                return False
        return self._source.word(at) in {"SELECT", "WITH"}

    def _refuse_behind_table(self) -> None:
        if self._word() == "TABLESAMPLE":
            raise self._refused("TABLESAMPLE", "uses TABLESAMPLE")
        if self._at < self._stop and travels(self._source, self._at):
            raise self._refused("TIME_TRAVEL", "reads a table as of another time")
        if self._word() in {"PIVOT", "UNPIVOT"} and self._source.word(self._at + 1) != ".":
            raise self._refused("PIVOT", f"uses {self._word()}")

    def _path(self) -> tuple[str, ...]:
        parts = [self._name_at()[0]]
        while self._take("."):
            parts.append(self._name_at()[0])
        return tuple(parts)

    def _alias(self) -> Alias | None:
        if self._at >= self._stop:
            return None
        if not self._take("AS") and not is_alias(self._source, self._at):
            return None
        return self._alias_named()

    def _alias_named(self) -> Alias:
        name, _ = self._name_at()
        if self._word() != "(":
            return Alias(name, ())
        reader = self._inside()
        columns = reader._list(reader._name_at)
        reader._end()
        return Alias(name, tuple(name for name, _ in columns))

    def _name_at(self) -> tuple[str, int]:
        at = self._at
        if at >= self._stop or not self._source.tokens[at].name:
            raise self._misread(
                "has no name where one was expected", quoted_name(self._source, at)
            )
        self._at += 1
        return self._source.tokens[at].name, at

    def _expression(self) -> Span:
        start = self._at
        while not self._ended(self._at):
            self._at = self._source.partner.get(self._at, self._at) + 1
        if start == self._at:
            raise self._refused("SYNTAX_ERROR", "has no expression where one was expected")
        return Span(start, self._at)

    def _ended(self, at: int) -> bool:
        return at >= self._stop or self._source.word(at) == "," or ends_expression(self._source, at)

    def _list(self, read: Callable[[], _T]) -> tuple[_T, ...]:
        found = [read()]
        while self._take(","):
            found.append(read())
        return tuple(found)

    def _inside(self) -> _Reader:
        """A reader of the brackets that open here; this one goes on behind them."""
        if self._word() != "(":
            raise self._refused("UNSUPPORTED_SYNTAX", 'has no "(" where one was expected')
        closing = self._source.partner[self._at]
        reader = _Reader(self._source, self._at + 1, closing, self._depth + 1)
        self._at = closing + 1
        return reader

    def _word(self) -> str:
        return self._source.word(self._at) if self._at < self._stop else ""

    def _take(self, word: str) -> bool:
        found = self._word() == word
        self._at += found
        return found

    def _misread(self, fact: str, way: str | None) -> ViewRefused:
        """What Spark would not read either, where we know what was meant."""
        recompute = None if way is None else False
        return self._source.refuse_at(
            "UNSUPPORTED_SYNTAX", self._at, fact, instead=way, recompute=recompute
        )

    def _refused(self, code: str, fact: str, instead: str | None = None) -> ViewRefused:
        return self._source.refuse_at(code, self._at, fact, instead=instead)


def _way_around(kinds: list[str]) -> tuple[str | None, bool | None]:
    """What to write for these joins where it is not what their reason says: nothing."""
    outer = not {"LEFT", "RIGHT", "FULL"}.isdisjoint(kinds)
    if "ANTI" in kinds or ("NATURAL" in kinds and outer):
        return "", True
    return None, None
