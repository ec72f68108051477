"""An expression of the text as a fragment: its tokens, with names and aggregates replaced."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias

from steadyview.views.expressions import Call, Expression, Name
from steadyview.views.fragments import Fragment, Piece, put
from steadyview.views.source_text import SourceText

Lookup: TypeAlias = Callable[[Name], Fragment]
"""What a column's name stands for; refuses names that mean nothing, or several things."""
Aggregate: TypeAlias = Callable[[Call], str]
"""The name under which an aggregate's value is found."""

_OURS = re.compile(r"t\d+|_.*", re.IGNORECASE | re.DOTALL)


def render(
    source: SourceText,
    expression: Expression,
    lookup: Lookup,
    aggregate: Aggregate | None = None,
) -> Fragment:
    """The expression over what `lookup` gives; AGGREGATE_MISPLACED where aggregates cannot be."""
    names = {name.span.start: name for name in expression.names}
    calls = {call.span.start: call for call in expression.calls}
    pieces: list[Piece] = []
    at = expression.span.start
    while at < expression.span.stop:
        token = source.tokens[at]
        if at in calls:
            call = calls[at]
            if aggregate is None:
                fact = f"has {call.aggregate} where no aggregate can be"
                raise source.refuse_at("AGGREGATE_MISPLACED", at, fact)
            pieces.append(Piece(aggregate(call), token.spaced, token.start))
            at = call.span.stop
        elif at in names:
            name = names[at]
            pieces += put(lookup(name), spaced=token.spaced, offset=token.start)
            at = name.span.stop
        else:
            _refuse_our_names(source, at)
            pieces.append(Piece(token.raw, token.spaced, token.start))
            at += 1
    return tuple(pieces)


def _refuse_our_names(source: SourceText, at: int) -> None:
    """A variable of a lambda must not capture the names that fragments give to columns."""
    name = source.tokens[at].name
    if name and _OURS.fullmatch(name):
        fact = f'uses the name "{name}" for a variable'
        way = "give the variable a name that is not t and a number, and does not start with _"
        raise source.refuse_at("UNSUPPORTED_SYNTAX", at, fact, instead=way)
