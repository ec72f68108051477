"""The SELECT list (and GROUP BY) of one query, over the scope its FROM gives.

Spark's rules: a name means a column of FROM first; in SELECT, else an alias to its left; in GROUP
BY, else an alias of the list. A number in GROUP BY is a place in the list.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from steadyview.errors import ViewRefused
from steadyview.nearest import did_you_mean, nearest_or_all
from steadyview.views.expressions import Call, Expression, Name, read
from steadyview.views.fragments import Fragment
from steadyview.views.functions import SESSION_WORDS
from steadyview.views.grouping import GroupingDraft
from steadyview.views.outline import Query
from steadyview.views.render import Aggregate, Lookup, render
from steadyview.views.scope import Scope, Visible
from steadyview.views.source_text import SourceText, Span

Aliases: TypeAlias = Callable[[str], Fragment | None]
"""What an alias (lower case) stands for, None if there is no such alias."""


@dataclass(frozen=True)
class NamedColumn:
    """One column of a query's result, and the token that brought it."""

    name: str
    value: Fragment
    at: int


def no_aliases(name: str) -> Fragment | None:
    """Where only columns count."""
    return None


def lookup_in(source: SourceText, scope: Scope, aliases: Aliases = no_aliases) -> Lookup:
    """Names meaning columns of `scope`, else `aliases`."""

    def lookup(name: Name) -> Fragment:
        found = scope.find(name.parts)
        if len(found) == 1:
            return usable(source, found[0], name.span.start)
        alias = aliases(name.parts[0].lower()) if len(name.parts) == 1 and not found else None
        if alias:
            return alias
        raise _unresolved(source, name, scope, found)

    return lookup


def usable(source: SourceText, column: Visible, at: int) -> Fragment:
    """What the column stands for; UNSUPPORTED_TYPE if its values cannot be kept."""
    if column.unsupported is not None:
        fact = f'uses column "{column.name}", which cannot be kept: {column.unsupported}'
        raise source.refuse_at("UNSUPPORTED_TYPE", at, fact)
    return column.value


def _unresolved(source: SourceText, name: Name, scope: Scope, found: list[Visible]) -> ViewRefused:
    at, shown = name.span.start, ".".join(name.parts)
    if found:
        listed = ", ".join(f'"{".".join((*c.qualifier, c.name))}"' for c in found)
        fact = f'uses "{shown}", which may be {listed}'
        alike = len({c.qualifier for c in found}) == 1
        way = "give the columns of the subquery different names with AS" if alike else None
        return source.refuse_at("AMBIGUOUS_COLUMN", at, fact, instead=way)
    if source.word(at).lower() in SESSION_WORDS:
        return source.refuse_at("SESSION_FUNCTION", at, f'uses "{shown}"')
    near = did_you_mean(shown, _spellings(scope, qualified=len(name.parts) > 1))
    fact = f'uses the unknown column "{shown}"'
    return source.refuse_at("UNKNOWN_COLUMN", at, fact, instead=near)


def _spellings(scope: Scope, *, qualified: bool) -> list[str]:
    """How the columns in scope may be written; with their table's name where it is wanted."""
    return [".".join((*c.qualifier[-1:], c.name)) if qualified else c.name for c in scope.columns]


class SelectList:
    """The list's elements, read once."""

    def __init__(self, source: SourceText, query: Query, scope: Scope) -> None:
        self._source = source
        self._query = query
        self._scope = scope
        self._items = [read(source, span, item=True) for span in query.items]

    @property
    def is_grouped(self) -> bool:
        """Whether the query aggregates: GROUP BY, or an aggregate without."""
        return self._query.group is not None or any(item.calls for item in self._items)

    def plain(self) -> tuple[NamedColumn, ...]:
        """The columns of a query without groups."""
        columns: list[NamedColumn] = []
        aliases: dict[str, Fragment] = {}
        for item in self._items:
            columns += self._columns(item, aliases, None)
        return tuple(columns)

    def grouped(self) -> tuple[tuple[NamedColumn, ...], GroupingDraft]:
        """The columns over group keys and aggregates, and these."""
        draft = GroupingDraft(self._keys())
        columns: list[NamedColumn] = []
        aliases: dict[str, Fragment] = {}
        for item in self._items:
            columns += self._columns(item, aliases, draft)
        return tuple(columns), draft

    def _columns(
        self, item: Expression, aliases: dict[str, Fragment], draft: GroupingDraft | None
    ) -> list[NamedColumn]:
        at = item.span.start
        if item.star is not None:
            return [
                NamedColumn(c.name, self._over(usable(self._source, c, at), draft, at), at)
                for c in self._star(item)
            ]
        lookup = lookup_in(self._source, self._scope, aliases.get)
        aggregate = self._aggregate(draft) if draft else None
        value = self._over(render(self._source, item, lookup, aggregate), draft, at)
        if item.alias:
            aliases.setdefault(item.alias.lower(), value)
        return [NamedColumn(item.alias or self._own_name(item), value, at)]

    def _star(self, item: Expression) -> list[Visible]:
        found = self._scope.star(item.star or ())
        if not found:
            shown = self._source.slice(item.span)
            fact = f'uses "{shown}", which no table in FROM is called'
            tables = {f"{c.qualifier[-1]}.*" for c in self._scope.columns if c.qualifier}
            way = nearest_or_all(shown, tables)
            raise self._source.refuse_at("UNKNOWN_COLUMN", item.span.start, fact, instead=way)
        return found

    def _over(self, value: Fragment, draft: GroupingDraft | None, at: int) -> Fragment:
        if draft is None:
            return value
        value = draft.over_keys(value)
        for piece in value:
            if piece.ref:
                offset = piece.offset or self._source.offset(at)
                fact = "selects an expression that is neither grouped nor aggregated"
                raise self._source.refusal("NOT_GROUPED", offset, fact)
        return value

    def _aggregate(self, draft: GroupingDraft) -> Aggregate:
        def aggregate(call: Call) -> str:
            argument = self._argument(call)
            if call.aggregate == "AVG" and argument and call.argument:
                draft.averaged(call.span, call.argument, argument)
            return draft.state(call.aggregate, argument)

        return aggregate

    def _argument(self, call: Call) -> Fragment | None:
        if call.argument is None:
            return None
        expression = read(self._source, call.argument)
        return render(self._source, expression, lookup_in(self._source, self._scope))

    def _keys(self) -> list[Fragment]:
        if self._query.group_all:
            chosen = [item for item in self._items if not item.calls]
            return [value for item in chosen for value in self._raw_values(item)]
        return [self._key(span) for span in self._query.group or ()]

    def _key(self, span: Span) -> Fragment:
        token = self._source.tokens[span.start]
        if span.stop - span.start == 1 and token.raw.isdigit():
            return self._ordinal(int(token.raw), span.start)
        lookup = lookup_in(self._source, self._scope, self._alias_before(len(self._items)))
        return render(self._source, read(self._source, span), lookup)

    def _ordinal(self, number: int, at: int) -> Fragment:
        if not 1 <= number <= len(self._items) or any(i.star is not None for i in self._items):
            raise self._source.refuse_at("GROUP_ORDINAL", at, f"groups by column {number}")
        return self._raw_values(self._items[number - 1])[0]

    def _raw_values(self, item: Expression) -> list[Fragment]:
        """The item's values over stored columns; refused where it has an aggregate."""
        if item.star is not None:
            return [usable(self._source, c, item.span.start) for c in self._star(item)]
        aliases = self._alias_before(self._items.index(item))
        return [render(self._source, item, lookup_in(self._source, self._scope, aliases))]

    def _alias_before(self, number: int) -> Aliases:
        """The aliases of the elements to the left of element `number`, over stored columns."""

        def alias(name: str) -> Fragment | None:
            for item in self._items[:number]:
                if item.alias and item.alias.lower() == name:
                    return self._raw_values(item)[0]
            return None

        return alias

    def _own_name(self, item: Expression) -> str:
        """Spark's name for a column without alias, as far as it follows from the text."""
        if len(item.names) == 1 and item.names[0].span == item.span:
            return item.names[0].parts[-1]
        tokens = self._source.tokens[item.span.start : item.span.stop]
        if len(tokens) == 1:
            return tokens[0].value or tokens[0].raw
        text = "".join(f" {t.raw}" if t.spaced else t.raw for t in tokens).strip()
        sole = item.calls[0] if item.calls and item.calls[0].span == item.span else None
        if sole is None:
            return text
        return f"{text.partition('(')[0].strip().lower()}({self._argument_name(sole)})"

    def _argument_name(self, call: Call) -> str:
        if call.argument is None:
            return "1"
        tokens = self._source.tokens[call.argument.start : call.argument.stop]
        if all(t.name or t.word == "." for t in tokens):
            return tokens[-1].name
        return self._source.slice(call.argument)
