"""From a view's file to its SELECT, its name and its properties.

Accepted are a bare SELECT (the file's name is the view's) and

    CREATE [OR REPLACE] MATERIALIZED VIEW [IF NOT EXISTS] name
    [TBLPROPERTIES ('key' = 'value', ...)] [COMMENT '...'] AS SELECT ...

in Spark's lexical rules. The SELECT itself is kept as written, not one character changed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from steadyview.errors import ViewRefused
from steadyview.nearest import did_you_mean, nearest
from steadyview.timing import REFRESH_TO, UnknownZone, schedule, schedule_meant
from steadyview.views.compression import COMPRESSIONS, compression
from steadyview.views.misreadings import misspelt_word
from steadyview.views.source_text import SourceText, Token
from steadyview.views.trailing import FORMS, staleness, trailing

PROPERTIES = (
    "steadyview.level",
    "steadyview.algorithm",
    "steadyview.fallback",
    "steadyview.table",
    "steadyview.changes",
    "steadyview.compress",
    "steadyview.max_staleness",
    "steadyview.policy",
    "steadyview.schedule",
    "steadyview.refresh_to",
    "steadyview.serve",
    "steadyview.serve.key",
    "steadyview.serve.from",
)
LEVELS = ("convergent", "weak", "strong", "complete")
FALLBACKS = ("recompute", "refuse")
IMMEDIATE = "immediate"
SERVED_FROM = ("changes", "log")
POLICIES = (IMMEDIATE, "ipda", "dpda", "snapshot")
BY_CHANGES = ("ipda", "dpda")
"""Policies that propagate changes, and apply them later."""
_CHOICES = {
    "steadyview.level": (LEVELS, "UNKNOWN_LEVEL", "level"),
    "steadyview.fallback": (FALLBACKS, "UNKNOWN_FALLBACK", "fallback"),
    "steadyview.policy": (POLICIES, "UNKNOWN_POLICY", "policy"),
    "steadyview.refresh_to": (REFRESH_TO, "UNKNOWN_REFRESH_TO", "time to refresh to"),
    "steadyview.serve.from": (SERVED_FROM, "UNKNOWN_SERVE_FROM", "way of serving"),
}
"""Properties that are one of a few words: these, the code of another one, what they say."""
Place = tuple[int | None, int | None]
_NAME = re.compile(r"\w{1,128}")
_QUERY_STARTS = {"SELECT", "WITH", "(", "FROM", "VALUES", "TABLE"}


@dataclass(frozen=True)
class ViewText:
    """A view as its file has it.

    `select` is the exact text of the query, which starts at `line` and `column` of the file.
    `algorithm_at` and the like: line and column of the properties that ask for these.
    """

    name: str
    select: str
    line: int = 1
    column: int = 1
    level: str = "complete"
    properties: Mapping[str, str] = field(default_factory=dict)
    algorithm_at: Place = (None, None)
    level_at: Place = (None, None)
    policy_at: Place = (None, None)
    schedule_at: Place = (None, None)
    refresh_to_at: Place = (None, None)
    serve_at: Place = (None, None)

    @property
    def asked_level(self) -> str | None:
        """The level that the file asks for; None: that of what the view reads."""
        return self.properties.get("steadyview.level")

    @property
    def algorithm(self) -> str | None:
        """The name of the algorithm that the file forces, not looked at any further here."""
        return self.properties.get("steadyview.algorithm")

    @property
    def fallback(self) -> str:
        """What to do when the view is refused: 'recompute' or 'refuse' (the default)."""
        return self.properties.get("steadyview.fallback", "refuse")

    @property
    def table(self) -> str | None:
        """How far the view's table may trail, as the file has it; see `trailing`."""
        return self.properties.get("steadyview.table")

    @property
    def changes(self) -> str | None:
        """How far the table of the view's changes may trail, as the file has it."""
        return self.properties.get("steadyview.changes")

    @property
    def compress(self) -> str | None:
        """Which single moments are given up, as the file has it; see `compression`."""
        return self.properties.get("steadyview.compress")

    @property
    def max_staleness(self) -> timedelta | None:
        """How old an answer over the view may be, where a query does not say; None: of any age."""
        found = self.properties.get("steadyview.max_staleness")
        return None if found is None else staleness(found)

    @property
    def policy(self) -> str:
        """When changes are propagated and applied: one of POLICIES, 'immediate' by default."""
        return self.properties.get("steadyview.policy", IMMEDIATE)

    @property
    def schedule(self) -> str | None:
        """The schedule of refreshes as the file has it, None: on demand; see `timing`."""
        return self.properties.get("steadyview.schedule")

    @property
    def refresh_to(self) -> str:
        """What a refresh brings the view to: one of REFRESH_TO, 'tick' by default."""
        return self.properties.get("steadyview.refresh_to", "tick")

    @property
    def serve(self) -> str | None:
        """The store that the view's records are kept in, None: in none."""
        return self.properties.get("steadyview.serve")

    @property
    def serve_key(self) -> tuple[str, ...]:
        """The columns of the records' key that the file names, as it spells them."""
        found = self.properties.get("steadyview.serve.key", "")
        return tuple(name.strip() for name in found.split(",") if name.strip())

    @property
    def serve_from(self) -> str:
        """What its records are kept from: one of SERVED_FROM."""
        return self.properties.get("steadyview.serve.from", SERVED_FROM[0])

    def source(self) -> SourceText:
        """The SELECT's tokens, with places in the file."""
        recomputed = self.fallback == "recompute"
        return SourceText(
            self.select, view=self.name, line=self.line, column=self.column, recomputed=recomputed
        )


def parse_view(file_name_stem: str, text: str) -> ViewText:
    """The view in a file; ViewRefused if the file holds anything but one view.

    >>> parse_view("v", "CREATE MATERIALIZED VIEW w AS SELECT 1 AS a;").select
    'SELECT 1 AS a'
    """
    return _FileReader(SourceText(text, view=file_name_stem)).view()


def view_name(file_name_stem: str, text: str) -> str:
    """The name of the view in a file; the file's own where there is no view to be read.

    >>> view_name("v", "CREATE MATERIALIZED VIEW w AS SELECT 1 AS a"), view_name("v", "DROP")
    ('w', 'v')
    """
    try:
        return parse_view(file_name_stem, text).name
    except ViewRefused:
        return file_name_stem


def renamed(file_name_stem: str, text: str, new: str) -> str:
    """The file's text once its view is called `new`; ViewRefused if that is no name for a view.

    >>> renamed("v", "create materialized view v AS SELECT v FROM s.v", "w")
    'create materialized view w AS SELECT v FROM s.v'
    >>> renamed("v", "SELECT 1 AS a", "w")
    'SELECT 1 AS a'
    """
    source = SourceText(text, view=file_name_stem)
    if _NAME.fullmatch(new) is None:
        raise source.refuse_at("VIEW_NAME", 0, f'cannot have the name "{new}"')
    if source.word(0) != "CREATE":
        return text
    token = _FileReader(source).created()
    spelt = f"`{new}`" if token.raw.startswith("`") else new
    return text[: token.start] + spelt + text[token.stop :]


class _FileReader:
    """Reads one file's tokens from left to right."""

    def __init__(self, source: SourceText) -> None:
        self._source = source
        self._at = 0
        self._property_at: dict[str, int] = {}

    def view(self) -> ViewText:
        stop = self._one_statement()
        name, properties = self._source.view, {}
        if self._source.word(0) == "CREATE":
            name = self._created_name()
        if _NAME.fullmatch(name) is None:
            at = max(self._at - 1, 0)
            fact = f'cannot have the name "{name}"'
            raise self._source.refuse_at("VIEW_NAME", at, fact)
        if self._at:
            properties = self._clauses()
            self._check_policy(properties)
            self._check_served(properties)
        if self._source.word(self._at) not in _QUERY_STARTS or self._at >= stop:
            way = misspelt_word(self._source, self._at, ("SELECT", "CREATE", "WITH"))
            fact = "holds no SELECT here"
            raise self._source.refuse_at("NOT_A_VIEW", self._at, fact, instead=way)
        start = self._source.offset(self._at)
        line, column = self._source.place(start)
        select = self._source.text[start : self._source.tokens[stop - 1].stop]
        level = properties.get("steadyview.level", "complete")
        asked = ("algorithm", "level", "policy", "schedule", "refresh_to", "serve")
        places = (self._place_of(f"steadyview.{key}") for key in asked)
        return ViewText(name, select, line, column, level, properties, *places)

    def _one_statement(self) -> int:
        tokens = self._source.tokens
        stop = len(tokens)
        while stop and tokens[stop - 1].word == ";":
            stop -= 1
        if not stop:
            raise self._refused("NOT_A_VIEW", "is empty")
        for i, token in enumerate(tokens[:stop]):
            if token.word == ";":
                raise self._source.refuse_at("SEVERAL_STATEMENTS", i + 1, "has a second statement")
        return stop

    def created(self) -> Token:
        """The name behind CREATE."""
        self._created_name()
        return self._source.tokens[self._at - 1]

    def _created_name(self) -> str:
        self._expect("CREATE")
        if self._take("OR"):
            self._expect("REPLACE")
        self._expect("MATERIALIZED")
        self._expect("VIEW")
        if self._take("IF"):
            self._expect("NOT")
            self._expect("EXISTS")
        token = self._next()
        if self._source.word(self._at) == "." or not token.name:
            self._at -= 1
            raise self._refused("VIEW_NAME", "is not created under one plain name")
        return token.name

    def _clauses(self) -> dict[str, str]:
        properties: dict[str, str] = {}
        while not self._take("AS"):
            if self._take("TBLPROPERTIES"):
                properties |= self._properties()
            elif self._take("COMMENT"):
                self._string()
            else:
                fact = f'has "{self._shown()}" where AS was expected'
                way = misspelt_word(self._source, self._at, ("AS", "TBLPROPERTIES", "COMMENT"))
                if self._source.word(self._at) == "(":
                    way = "name the columns in SELECT: SELECT x AS a, y AS b"
                raise self._source.refuse_at("NOT_A_VIEW", self._at, fact, instead=way)
        return properties

    def _properties(self) -> dict[str, str]:
        properties: dict[str, str] = {}
        self._expect("(")
        while True:
            start = self._at
            key = self._key()
            self._take("=")
            value = self._string()
            self._check_property(start, key, value)
            properties[key] = value
            if self._take(")"):
                return properties
            self._expect(",")

    def _key(self) -> str:
        if self._at < len(self._source.tokens) and self._source.tokens[self._at].value is not None:
            return self._string()
        parts = [self._next().name]
        while self._take("."):
            parts.append(self._next().name)
        return ".".join(parts)

    def _check_property(self, at: int, key: str, value: str) -> None:
        refuse = self._source.refuse_at
        self._property_at[key] = at
        if key in _CHOICES:
            known, code, word = _CHOICES[key]
            if value not in known:
                fact, way = f'asks for the unknown {word} "{value}"', did_you_mean(value, known)
                raise refuse(code, at, fact, instead=way)
        if key in ("steadyview.table", "steadyview.changes"):
            self._check_table(at, value)
        if key == "steadyview.compress":
            self._check_compression(at, value)
        if key == "steadyview.max_staleness":
            self._check_staleness(at, value)
        if key == "steadyview.schedule":
            self._check_schedule(at, value)
        if key not in PROPERTIES and nearest(key.partition(".")[0], ["steadyview"]):
            fact, way = f'has the unknown property "{key}"', did_you_mean(key, PROPERTIES)
            raise refuse("UNKNOWN_PROPERTY", at, fact, instead=way)

    def _check_table(self, at: int, value: str) -> None:
        try:
            trailing(value)
        except ValueError:
            fact, way = f'has the unknown table setting "{value}"', did_you_mean(value, FORMS)
            raise self._source.refuse_at("UNKNOWN_TABLE_SETTING", at, fact, instead=way) from None

    def _check_compression(self, at: int, value: str) -> None:
        try:
            compression(value)
        except ValueError:
            fact, way = f'has the unknown compression "{value}"', did_you_mean(value, COMPRESSIONS)
            raise self._source.refuse_at("UNKNOWN_COMPRESSION", at, fact, instead=way) from None

    def _check_staleness(self, at: int, value: str) -> None:
        try:
            staleness(value)
        except ValueError:
            fact = f'has the unknown bound of staleness "{value}"'
            raise self._source.refuse_at("UNKNOWN_STALENESS", at, fact) from None

    def _check_schedule(self, at: int, value: str) -> None:
        try:
            schedule(value, "UTC")
        except ValueError as wrong:
            way = wrong.hint if isinstance(wrong, UnknownZone) else schedule_meant(value)
            fact = f'has the unknown schedule "{value}": {wrong}'
            raise self._source.refuse_at("UNKNOWN_SCHEDULE", at, fact, instead=way) from None

    def _check_policy(self, properties: Mapping[str, str]) -> None:
        """Refuse what does not go together with the policy."""
        policy = properties.get("steadyview.policy", IMMEDIATE)
        if policy == IMMEDIATE:
            way = "ask for the policy 'ipda', 'dpda' or 'snapshot', or leave the property out"
            fact = "is refreshed immediately, so that '{}' means nothing"
            self._refuse_beside("steadyview.schedule", fact, way)
            self._refuse_beside("steadyview.refresh_to", fact, way)
        elif policy in BY_CHANGES:
            way = f"ask for the policy '{IMMEDIATE}', or leave the algorithm out"
            fact = f"forces an algorithm, which the policy '{policy}' does not use"
            self._refuse_beside("steadyview.algorithm", fact, way)
            if properties.get("steadyview.fallback") == "recompute":
                way = "ask for the policy 'snapshot', or leave the fallback out"
                fact = f"may be recomputed, and the policy '{policy}' needs its single changes"
                self._refuse_beside("steadyview.fallback", fact, way)

    def _check_served(self, properties: Mapping[str, str]) -> None:
        """Refuse what is said of records that are in no store."""
        if "steadyview.serve" not in properties:
            way = "add 'steadyview.serve', or leave the key out"
            fact = "names a key of records, and no store for them: '{}'"
            self._refuse_beside("steadyview.serve.key", fact, way, "SERVE_KEY")
            way = "add 'steadyview.serve', or leave the way out"
            fact = "names a way of serving, and no store: '{}'"
            self._refuse_beside("steadyview.serve.from", fact, way, "UNKNOWN_SERVE_FROM")

    def _refuse_beside(self, key: str, fact: str, way: str, code: str = "SCHEDULE") -> None:
        """This code at this property, if it is there."""
        if key in self._property_at:
            at = self._property_at[key]
            raise self._source.refuse_at(code, at, fact.format(key), instead=way)

    def _place_of(self, key: str) -> Place:
        at = self._property_at.get(key)
        return (None, None) if at is None else self._source.place(self._source.offset(at))

    def _string(self) -> str:
        token = self._next()
        if token.value is None:
            self._at -= 1
            raise self._refused("NOT_A_VIEW", f'has "{self._shown()}" where a text was expected')
        value = token.value
        # Spark reads '' inside a text as one quote; the lexer gives two texts side by side.
        for token in self._source.tokens[self._at :]:
            if token.value is None or token.spaced:
                break
            value += "'" + token.value
            self._at += 1
        return value

    def _next(self) -> Token:
        if self._at >= len(self._source.tokens):
            raise self._refused("NOT_A_VIEW", "ends too early")
        self._at += 1
        return self._source.tokens[self._at - 1]

    def _take(self, word: str) -> bool:
        found = self._source.word(self._at) == word
        self._at += found
        return found

    def _expect(self, word: str) -> None:
        if not self._take(word):
            fact = f'has "{self._shown()}" where {word} was expected'
            way = misspelt_word(self._source, self._at, (word,))
            raise self._source.refuse_at("NOT_A_VIEW", self._at, fact, instead=way)

    def _shown(self) -> str:
        tokens = self._source.tokens
        return tokens[self._at].raw if self._at < len(tokens) else "the end"

    def _refused(self, code: str, fact: str) -> Exception:
        return self._source.refuse_at(code, self._at, fact)
