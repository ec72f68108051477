"""Any view answers its own text, whatever is in it: LIMIT, windows, outer joins, set operations.

The texts are equal token by token, but for blanks, comments and the case of words. ORDER BY of the
query is done again, for a view is a bag of rows. Of a text that has several right answers (LIMIT
without an order) the view is one; a text whose answer depends on the clock, on dice or on who asks
has no answer that could be kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sqlglot import exp

from steadyview.views.binding import SESSION
from steadyview.views.clock import clock_texts
from steadyview.views.dialect import Spelled, written
from steadyview.views.functions import SESSION_WORDS, refusal_of
from steadyview.views.reading import read_query
from steadyview.views.routing.body import quoted, tail
from steadyview.views.routing.covering import ALIAS, view_column
from steadyview.views.routing.offers import OfferedView
from steadyview.views.routing.question import RoutingQuestion
from steadyview.views.routing.reasons import CannotAnswer
from steadyview.views.source_text import Token

_VARYING = ("NON_DETERMINISTIC", "SESSION_FUNCTION", "OUTWARD")


def has_same_text(question: RoutingQuestion, view: OfferedView) -> bool:
    """Whether the view's text is the query's, with or without ORDER BY and LIMIT at its end."""
    theirs = _words(view.source.tokens)
    return theirs in (_words(question.source.tokens), _rows_words(question))


def same_text(question: RoutingQuestion, view: OfferedView) -> str:
    """The view's rows, ordered and cut as the query's are."""
    if question.rows_end is None:
        raise CannotAnswer("shape", question.why)
    if word := next(_varying(read_query(question.source)), None):
        raise CannotAnswer("text", f"the answer depends on more than rows: {word}")
    whole = _words(view.source.tokens) == _words(question.source.tokens)
    pairs = zip(view.columns, question.names, strict=True)
    listed = ", ".join(f"{written(view_column(c))} AS {quoted(n)}" for (c, _), n in pairs)
    parts = [f"SELECT {listed} FROM {quoted(view.name)} AS {ALIAS}"]
    return " ".join([*parts, *tail(question, None, cut=not whole)])


def _rows_words(question: RoutingQuestion) -> list[str] | None:
    if question.rows_end is None:
        return None
    return _words(t for t in question.source.tokens if t.start < (question.rows_end or 0))


def _words(tokens: Iterable[Token]) -> list[str]:
    return [token.word or token.raw for token in tokens]


def _varying(tree: exp.Expression) -> Iterator[str]:
    """What makes another answer of the same rows."""
    yield from (str(text.this) for text in clock_texts(tree))
    for node in tree.walk():
        name = str(getattr(node, "name", "")).lower()
        if isinstance(node, (*SESSION, exp.TableSample)):
            yield node.key
        elif isinstance(node, exp.Column) and name in SESSION_WORDS:
            yield name
        elif isinstance(node, (exp.Anonymous, Spelled)):
            called = str(node.this.name if isinstance(node.this, exp.Identifier) else node.this)
            if refusal_of(called.lower(), arguments=bool(node.expressions)) in _VARYING:
                yield called
