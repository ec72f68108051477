"""Expressions of the text, bound: every name becomes a column of the block, or is refused.

What cannot be maintained inside an expression is refused here, at its place. Aggregates and
subqueries are given to whoever knows what to make of them where the expression stands.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NoReturn

from sqlglot import exp

from steadyview.errors import ViewRefused
from steadyview.nearest import did_you_mean
from steadyview.views.columns import Scope, VisibleColumn
from steadyview.views.dialect import Spelled
from steadyview.views.functions import INSTEAD, PLANNED, SCALAR, SESSION_WORDS, refusal_of
from steadyview.views.misreadings import unknown_type
from steadyview.views.source_text import SourceText
from steadyview.views.trees import inside, place

_OURS = re.compile(r"[a-z]\d+(_c\d+)?|u_.*|_.*", re.IGNORECASE | re.DOTALL)
SESSION = (exp.CurrentDate, exp.CurrentTimestamp, exp.CurrentUser, exp.SessionUser) + (
    (exp.CurrentDatetime, exp.CurrentTime, exp.CurrentRole)
)
_SUBQUERIES = (exp.Exists, exp.Subquery, exp.Query)

Asked = Callable[[exp.Expression], exp.Expression]
"""What takes the place of an aggregate or a subquery."""
Aliases = Callable[[str], "exp.Expression | None"]


@dataclass
class Binder:
    """Binds expressions over a scope.

    `outer`: the scopes around, nearest first; `reach`: whether the nearest may be named.
    `aggregate`, `subquery`: what these become; None where there can be none. `distinct`: COUNT may
    be over DISTINCT.
    `aliases`: what else a single name may mean. `after`: what happens to what IN compares.
    """

    source: SourceText
    scope: Scope
    outer: tuple[Scope, ...] = ()
    reach: bool = False
    aggregate: Asked | None = None
    distinct: bool = False
    subquery: Asked | None = None
    aliases: Aliases | None = None
    after: Asked = field(default=lambda value: value)

    def whole(self, node: exp.Expression) -> exp.Expression:
        """A whole expression, bound, and then what `after` makes of it."""
        return self.after(self.bind(node))

    def bind(self, node: exp.Expression) -> exp.Expression:
        """The expression over the block's columns."""
        for kinds, handle in self._handlers():
            if isinstance(node, kinds):
                return handle(node)
        return self._rebuilt(node)

    def _handlers(self) -> tuple[tuple[Any, Callable[[Any], exp.Expression]], ...]:
        return (
            (exp.Column, self._column),
            ((exp.Anonymous, Spelled), self._call),
            ((exp.In,), self._in),
            (_SUBQUERIES, self._asked),
            (exp.Window, self._window),
            (exp.Filter, self._filter),
            (exp.WithinGroup, lambda n: self.bind(n.this)),
            ((exp.Placeholder, exp.Parameter), self._parameter),
            (SESSION, self._session),
            (exp.Star, self._star),
            (exp.Lambda, self._lambda),
            (exp.DataType, self._type),
            ((exp.Literal, exp.Identifier, exp.Var), lambda n: n.copy()),
            ((exp.Alias, exp.Aliases), self._alias),
        )

    def _rebuilt(self, node: exp.Expression) -> exp.Expression:
        args = {key: self._part(value) for key, value in node.args.items()}
        fresh = type(node)(**args)
        fresh.meta.update(node.meta)
        return fresh

    def _part(self, value: Any) -> Any:
        if isinstance(value, exp.Expression):
            return self.bind(value)
        return [self._part(v) for v in value] if isinstance(value, list) else value

    # --- names ---

    def _column(self, node: exp.Column) -> exp.Expression:
        if isinstance(node.this, exp.Star):
            self._star(node.this)
        parts = tuple(part.name for part in node.parts)
        self._check_quotes(node)
        for length in range(len(parts), 0, -1):
            found = self._found(parts[:length], node)
            if found is not None:
                value = inside(found)
                for field_ in parts[length:]:
                    value = exp.Dot(this=value, expression=exp.Identifier(this=field_, quoted=True))
                return _moved(value, node)
        raise self._unresolved(node, parts)

    def _found(self, parts: tuple[str, ...], node: exp.Expression) -> exp.Expression | None:
        found = self.scope.find(parts)
        if len(found) > 1:
            raise self._ambiguous(node, parts, found)
        if found:
            return usable(self.source, found[0], place(node))
        alias = self.aliases(parts[0].lower()) if self.aliases and len(parts) == 1 else None
        if alias is not None:
            return alias
        return self._outside(parts, node)

    def _outside(self, parts: tuple[str, ...], node: exp.Expression) -> exp.Expression | None:
        for far, scope in enumerate(self.outer):
            found = scope.find(parts)
            if len(found) > 1:
                raise self._ambiguous(node, parts, found)
            if found and (far or not self.reach):
                fact = f'uses "{".".join(parts)}" of a query further out'
                way = "name columns of the query right around, outside of aggregates, DISTINCT, set"
                way += " operations and outer joins"
                # Spark itself knows no column from further than the query right around
                recompute = False if far else None
                raise self.source.refusal(
                    "SUBQUERY", place(node), fact, instead=way, recompute=recompute
                )
            if found:
                return usable(self.source, found[0], place(node))
        return None

    def _ambiguous(
        self, node: exp.Expression, parts: tuple[str, ...], found: list[VisibleColumn]
    ) -> ViewRefused:
        listed = ", ".join(f'"{".".join((*c.qualifier, c.name))}"' for c in found)
        fact = f'uses "{".".join(parts)}", which may be {listed}'
        alike = len({c.qualifier for c in found}) == 1
        way = "give the columns of the subquery different names with AS" if alike else None
        return self.source.refusal("AMBIGUOUS_COLUMN", place(node), fact, instead=way)

    def _unresolved(self, node: exp.Expression, parts: tuple[str, ...]) -> ViewRefused:
        shown = ".".join(parts)
        if len(parts) == 1 and shown.lower() in SESSION_WORDS:
            return self.source.refusal("SESSION_FUNCTION", place(node), f'uses "{shown}"')
        near = did_you_mean(shown, _spellings(self.scope, qualified=len(parts) > 1))
        fact = f'uses the unknown column "{shown}"'
        return self.source.refusal("UNKNOWN_COLUMN", place(node), fact, instead=near)

    def _check_quotes(self, node: exp.Column) -> None:
        for part in node.parts:
            if self.source.text[place(part) : place(part) + 1] in ("'", '"'):
                way = (
                    "Spark quotes names with backticks, and texts with double quotes: write "
                    f"`{part.name.strip(chr(34))}`"
                )
                fact = "quotes a name like a text"
                raise self.source.refusal("SYNTAX_ERROR", place(part), fact, instead=way)

    # --- calls ---

    def _call(self, node: exp.Expression) -> exp.Expression:
        quoted = isinstance(node.this, exp.Identifier)
        name = str(node.this.name if quoted else node.this).lower()
        if name in PLANNED:
            return self._aggregated(node, name)
        self._check_function(node, name)
        if name == "struct":
            return self._struct(node)
        return self._rebuilt(node)

    def _aggregated(self, node: exp.Expression, name: str) -> exp.Expression:
        counted = self.distinct and PLANNED[name] == "COUNT"
        if not counted and any(isinstance(a, exp.Distinct) for a in node.expressions):
            fact = f'uses "{name}" over DISTINCT'
            raise self.source.refusal("DISTINCT_AGGREGATE", place(node), fact)
        if self.aggregate is None:
            fact = f"has {PLANNED[name]} where no aggregate can be"
            raise self.source.refusal("AGGREGATE_MISPLACED", place(node), fact)
        return self.aggregate(node)

    def _check_function(self, node: exp.Expression, name: str) -> None:
        if isinstance(node.parent, exp.Dot) and node.arg_key == "expression":
            name = f"{node.parent.this.name}.{name}".lower()
            code: str | None = "UNKNOWN_FUNCTION"
        else:
            code = refusal_of(name, arguments=bool(node.expressions))
        if code == "UNKNOWN_FUNCTION":
            near = did_you_mean(name, SCALAR | PLANNED.keys())
            fact = f'calls the unknown function "{name}"'
            raise self.source.refusal(code, place(node), fact, instead=near)
        if code:
            recompute = False if name in INSTEAD else None
            fact, way = f'calls the function "{name}"', INSTEAD.get(name)
            raise self.source.refusal(code, place(node), fact, instead=way, recompute=recompute)

    def _struct(self, node: exp.Expression) -> exp.Expression:
        """A column's own name is its field's name: it stays so under our name for the column."""
        parts = []
        for argument in node.expressions:
            bound = self._alias_kept(argument)
            if isinstance(argument, exp.Column):
                named = exp.Identifier(this=argument.name, quoted=True)
                bound = exp.Alias(this=bound, alias=named)
            parts.append(bound)
        return exp.Anonymous(this=node.this, expressions=parts)

    def _alias_kept(self, node: exp.Expression) -> exp.Expression:
        if isinstance(node, exp.Alias):
            return exp.Alias(this=self.bind(node.this), alias=node.args["alias"].copy())
        return self.bind(node)

    def _lambda(self, node: exp.Lambda) -> exp.Expression:
        for variable in node.expressions:
            if _OURS.fullmatch(variable.name):
                fact = f'uses the name "{variable.name}" for a variable'
                way = (
                    "give the variable a name that is not a letter and a number, and does not start"
                    " with _"
                )
                code = "UNSUPPORTED_SYNTAX"
                raise self.source.refusal(code, place(variable), fact, instead=way)
        return self._rebuilt(node)

    # --- subqueries ---

    def _in(self, node: exp.In) -> exp.Expression:
        if node.args.get("query") is not None:
            return self._asked(node)
        return self._rebuilt(node)

    def _asked(self, node: exp.Expression) -> exp.Expression:
        if isinstance(node, exp.Exists) and not isinstance(unwrapped(node.this), exp.Query):
            return self._rebuilt(node)
        if self.subquery is None or not isinstance(node, (exp.Exists, exp.In)):
            inner = unwrapped(node.this if isinstance(node, exp.Exists) else node)
            at = place(inner)
            kind = isinstance(node, (exp.Exists, exp.In))
            fact = "has a subquery where none can be" if kind else "has a subquery in an expression"
            raise self.source.refusal("SUBQUERY", at, fact, instead="")
        return self.subquery(node)

    # --- what is refused ---

    def _window(self, node: exp.Window) -> NoReturn:
        call = node.this
        named = str(getattr(call, "name", "")).lower()
        own = isinstance(call, exp.Anonymous) and refusal_of(named, arguments=True) == "WINDOW"
        at = place(call if own else node)
        raise self.source.refusal("WINDOW", at, "uses a window function")

    def _filter(self, node: exp.Filter) -> NoReturn:
        raise self.source.refusal("AGGREGATE_FILTER", place(node), "filters an aggregate")

    def _parameter(self, node: exp.Expression) -> NoReturn:
        marker = self.source.text[place(node) : place(node) + 1]
        raise self.source.refusal("PARAMETER", place(node), f'has the marker "{marker}"')

    def _session(self, node: exp.Expression) -> NoReturn:
        word = re.match(r"\w*", self.source.text[place(node) :])
        shown = word[0] if word else node.key
        raise self.source.refusal("SESSION_FUNCTION", place(node), f'uses "{shown}"')

    def _star(self, node: exp.Expression) -> NoReturn:
        way = "list the columns one by one"
        fact = 'has a "*" that is not COUNT(*) or a whole list of columns'
        raise self.source.refusal("UNSUPPORTED_SYNTAX", place(node), fact, instead=way)

    def _alias(self, node: exp.Expression) -> NoReturn:
        raise self.source.refusal("SYNTAX_ERROR", place(node), "has an alias inside an expression")

    def _type(self, node: exp.DataType) -> exp.Expression:
        tokens = self.source.tokens
        at = next((i for i, t in enumerate(tokens) if t.start >= place(node)), len(tokens))
        unknown = unknown_type(self.source, at)
        if unknown is not None:
            fact = f'casts to the unknown type "{tokens[at].raw}"'
            raise self.source.refusal("UNKNOWN_TYPE", place(node), fact, instead=unknown or None)
        return node.copy()


def usable(source: SourceText, column: VisibleColumn, offset: int) -> exp.Expression:
    """What the column stands for; UNSUPPORTED_TYPE if its values cannot be kept."""
    if column.unsupported is not None:
        fact = f'uses column "{column.name}", which cannot be kept: {column.unsupported}'
        raise source.refusal("UNSUPPORTED_TYPE", offset, fact)
    return column.value


def unwrapped(node: exp.Expression) -> exp.Expression:
    """The query inside brackets that mean nothing."""
    while isinstance(node, (exp.Subquery, exp.Paren)) and not _says(node):
        node = node.this
    return node


def _says(node: exp.Expression) -> bool:
    return any(value for key, value in node.args.items() if key != "this")


def _moved(value: exp.Expression, node: exp.Expression) -> exp.Expression:
    """The value, at the place of the name."""
    for part in value.walk():
        part.meta["start"] = place(node)
    return value


def _spellings(scope: Scope, *, qualified: bool) -> list[str]:
    """How the columns in scope may be written; with their table's name where it is wanted."""
    return [".".join((*c.qualifier[-1:], c.name)) if qualified else c.name for c in scope.columns]
