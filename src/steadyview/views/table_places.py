"""Where any SELECT that Spark accepts names its tables.

A walk over tokens and brackets, so that windows, set operations, PIVOT and whatever else a
recomputed view may hold need no grammar here. A table stands behind FROM, JOIN and the commas of
FROM. Brackets are a query, a list of relations (where a table was expected), or anything else
(`EXTRACT(DAY FROM x)` has no table).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from steadyview.views.source_text import SourceText, Span
from steadyview.views.words import SET_OPERATIONS, TRAILING, is_alias, travels

_QUERY_STARTS = {"SELECT", "WITH", "FROM"}
_ENDS_FROM = {"WHERE", "GROUP BY", "SELECT", "VIEW", *TRAILING} - {"LATERAL", "PIVOT", "UNPIVOT"}


@dataclass(eq=False)
class Level:
    """One SELECT: the tables it reads, and the SELECT around it."""

    parent: Level | None
    tables: list[TablePlace] = field(default_factory=list)

    def outward(self) -> list[Level]:
        """This level and those around it, innermost first."""
        return [self, *(self.parent.outward() if self.parent else [])]


@dataclass(frozen=True, eq=False)
class TablePlace:
    """A table's name in the text. `alias` is the one written, None if there is none.

    An alias may be put behind token `behind`.
    """

    parts: tuple[str, ...]
    span: Span
    level: Level
    alias: str | None
    behind: int

    @property
    def visible_name(self) -> str:
        """What columns may be qualified with (lower case)."""
        return (self.alias or self.parts[-1]).lower()


@dataclass(frozen=True)
class Places:
    """All tables in the order of the text, the level of every token, the names of WITH queries."""

    tables: tuple[TablePlace, ...]
    levels: tuple[Level, ...]
    ctes: frozenset[str]


@dataclass
class _Frame:
    level: Level
    is_query: bool
    in_from: bool
    expecting: bool


def places(source: SourceText) -> Places:
    """The places of all tables in the text."""
    return _Walk(source).places()


class _Walk:
    def __init__(self, source: SourceText) -> None:
        self._source = source
        self._frames = [_Frame(Level(None), is_query=True, in_from=False, expecting=False)]
        self._tables: list[TablePlace] = []

    def places(self) -> Places:
        levels: list[Level] = []
        at, stop = 0, len(self._source.tokens)
        _ = self._source.partner
        while at < stop:
            after = self._step(at)
            levels += [self._frames[-1].level] * (after - at)
            at = after
        return Places(tuple(self._tables), tuple(levels), frozenset(self._ctes()))

    def _step(self, at: int) -> int:
        """Go past token `at` (past the whole name where a table stands); the next token."""
        frame, word = self._frames[-1], self._source.word(at)
        if word == "(":
            self._open(frame, self._source.word(at + 1))
        elif word == ")":
            self._frames.pop()
        elif frame.expecting and self._source.tokens[at].name and word != "LATERAL":
            return self._table(frame, at)
        elif self._source.word(at - 1) != ".":
            self._clause(frame, word, at)
        return at + 1

    def _open(self, frame: _Frame, word: str) -> None:
        expecting, frame.expecting = frame.expecting, False
        if word in _QUERY_STARTS:
            level = Level(frame.level)
            self._frames.append(_Frame(level, is_query=True, in_from=False, expecting=False))
        else:
            self._frames.append(
                _Frame(frame.level, is_query=False, in_from=expecting, expecting=expecting)
            )

    def _clause(self, frame: _Frame, word: str, at: int) -> None:
        if frame.is_query and word == "FROM" and self._source.word(at - 1) != "DISTINCT":
            frame.in_from = frame.expecting = True
        elif word == "JOIN" or (word == "," and frame.in_from):
            frame.expecting = frame.in_from or frame.is_query
        elif word in SET_OPERATIONS and self._source.word(at - 1) != "*":
            frame.level = Level(frame.level.parent)
            frame.in_from = frame.expecting = False
        elif frame.is_query and word in _ENDS_FROM:
            frame.in_from = frame.expecting = False

    def _table(self, frame: _Frame, at: int) -> int:
        frame.expecting = False
        stop = at + 1
        while self._source.word(stop) == "." and self._names(stop + 1):
            stop += 2
        if self._source.word(stop) != "(":
            self._tables.append(self._place(frame.level, Span(at, stop)))
            frame.level.tables.append(self._tables[-1])
        return stop

    def _names(self, at: int) -> bool:
        return at < len(self._source.tokens) and bool(self._source.tokens[at].name)

    def _place(self, level: Level, span: Span) -> TablePlace:
        parts = tuple(self._source.tokens[i].name for i in range(span.start, span.stop, 2))
        behind = self._behind_clauses(span.stop)
        alias = None
        if self._source.word(behind) == "AS" and self._names(behind + 1):
            alias = self._source.tokens[behind + 1].name
        elif is_alias(self._source, behind):
            alias = self._source.tokens[behind].name
        return TablePlace(parts, span, level, alias, behind - 1)

    def _behind_clauses(self, at: int) -> int:
        """Past time travel and TABLESAMPLE, which stand between a table and its alias."""
        if travels(self._source, at):
            at += 4 + (self._source.word(at) == "FOR")
        if self._source.word(at) == "TABLESAMPLE":
            at = self._source.partner.get(at + 1, at) + 1
            if self._source.word(at) == "REPEATABLE":
                at = self._source.partner.get(at + 1, at) + 1
        return at

    def _ctes(self) -> list[str]:
        """Every `name [(columns)] [AS] (` behind WITH, RECURSIVE or a comma."""
        names: list[str] = []
        for i, token in enumerate(self._source.tokens):
            if token.name and self._source.word(i - 1) in {"WITH", "RECURSIVE", ","}:
                after = self._source.partner.get(i + 1, i) + 1
                after += self._source.word(after) == "AS"
                if self._source.word(after) == "(":
                    names.append(token.name.lower())
        return names
