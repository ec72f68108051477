"""A query over a view, before it is written down."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from steadyview.views.dialect import written
from steadyview.views.routing.covering import ALIAS
from steadyview.views.routing.question import Ordering, RoutingQuestion
from steadyview.views.routing.reasons import CannotAnswer
from steadyview.views.trees import conjunction, unbracketed

Over = Callable[[exp.Expression], exp.Expression]
"""An expression over tables as one over the view; CannotAnswer if it cannot be had."""


def every(over: Over, values: Iterable[exp.Expression]) -> tuple[exp.Expression, ...]:
    """All of them."""
    return tuple(over(value) for value in values)


@dataclass(frozen=True)
class Body:
    """SELECT, WHERE, GROUP BY and HAVING over a view; `over` is for what it is ordered by."""

    outputs: tuple[exp.Expression, ...]
    over: Over
    where: tuple[exp.Expression, ...] = ()
    keys: tuple[exp.Expression, ...] = ()
    having: tuple[exp.Expression, ...] = ()
    grouped: bool = False

    def sql(self, view: str, question: RoutingQuestion) -> str:
        """As Spark SQL, its columns called as the query's are."""
        pairs = zip(self.outputs, question.names, strict=True)
        listed = ", ".join(f"{_text(value)} AS {quoted(name)}" for value, name in pairs)
        parts = [f"SELECT {listed} FROM {quoted(view)} AS {ALIAS}"]
        parts += _clause("WHERE", self.where)
        if self.grouped and self.keys:
            _check_keys(self.keys)
            parts.append(f"GROUP BY {', '.join(map(_text, self.keys))}")
        parts += _clause("HAVING", self.having)
        return " ".join([*parts, *tail(question, self.over)])


def tail(question: RoutingQuestion, over: Over | None, *, cut: bool = True) -> list[str]:
    """ORDER BY and, with `cut`, LIMIT; `over` None: it can be ordered by its columns alone."""
    found = [_ordered(ordering, over) for ordering in question.orderings]
    parts = [f"ORDER BY {', '.join(found)}"] if found else []
    return [*parts, question.limits] if question.limits and cut else parts


def quoted(name: str) -> str:
    """A name in Spark's quotes.

    >>> quoted("a`b")
    '`a``b`'
    """
    return "`" + name.replace("`", "``") + "`"


def _ordered(ordering: Ordering, over: Over | None) -> str:
    if ordering.output is not None:
        return f"{ordering.output + 1}{ordering.suffix}"
    if over is None or ordering.beside is None:
        raise CannotAnswer("order", "the query is ordered by something that it does not show")
    return f"{_text(over(ordering.beside))}{ordering.suffix}"


def _check_keys(keys: Sequence[exp.Expression]) -> None:
    """A number in GROUP BY would be the place of a column."""
    if any(key.find(exp.Column) is None for key in keys):
        raise CannotAnswer("columns", "the query is grouped by a constant")


def _text(value: exp.Expression) -> str:
    return written(unbracketed(value))


def _clause(word: str, conditions: Sequence[exp.Expression]) -> list[str]:
    whole = conjunction(conditions)
    return [] if whole is None else [f"{word} {written(whole)}"]
