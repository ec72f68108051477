"""Whether an algorithm fits a view, and where the view shows its relations' keys.

The Strobe family and ECA-key delete view rows by key, so the view must show, for every position, a
key of its relation; ECA and ECA-key know one source. Everything else fits every view.

A view shows a key column also where an equality of the view makes another shown column equal to it:
`o.id` is shown by `l.order_id` in a view that joins on `o.id = l.order_id`.
"""

from __future__ import annotations

import re
from typing import TypeAlias

from steadyview.errors import ConfigError, ViewRefused
from steadyview.maintenance.algorithms import LOCAL, Kind, kind_of
from steadyview.views.definition import Definition
from steadyview.views.parse import LEVELS, ViewText
from steadyview.views.reasons import BY_CODE

KeysShown: TypeAlias = tuple[tuple[tuple[int, int], ...], ...]
"""Per position, (column, output) pairs: the outputs that show the key of its relation."""
_PLAIN = re.compile(r"t(\d+)\.c(\d+)")
_INEXACT = ("FLOAT", "DOUBLE")
"""Equal values of these may differ in their bits, and key-delete compares rows."""


def promised(kind: Kind) -> str:
    """The level that a live run promises: sources commit transactions of several changes."""
    return kind.promises.get(LOCAL, "none")


def fitted(
    text: ViewText, definition: Definition | None, name: str, *, forced: bool = False
) -> Kind:
    """The algorithm of that name, fit for the view; ViewRefused with the reason if it is not.

    `forced`: asked for from outside, so the level in the view's file does not count.
    """
    try:
        kind = kind_of(name)
    except ConfigError as error:
        raise _refused(text, "UNKNOWN_ALGORITHM", error.message, error.hint) from None
    if definition is None or (kind.make is not None and definition.grouping is not None):
        fact = f'"{name}" keeps select-project-join views over sources, and this is none'
        raise _refused(text, "ALGORITHM_AGGREGATES", fact)
    sources = {o.relation.name.source for o in definition.occurrences}
    if kind.one_source and len(sources) > 1:
        listed = ", ".join(sorted(sources))
        raise _refused(text, "ALGORITHM_SOURCES", f'"{name}" knows one source, not {listed}')
    if kind.keys:
        _check_keys(text, definition, name)
    asked = text.properties.get("steadyview.level")
    if asked is not None and not forced and not _enough(promised(kind), asked):
        fact = f'"{name}" promises "{promised(kind)}", the view asks for "{asked}"'
        raise _refused(text, "ALGORITHM_LEVEL", fact)
    return kind


def keys_shown(definition: Definition) -> KeysShown | None:
    """Where the view shows a key of every position; None if it does not."""
    if definition.grouping is not None:
        return None
    shown = _shown(definition)
    keys = []
    for occurrence in definition.occurrences:
        relation = occurrence.relation
        columns = [(occurrence.number, relation.number(name)) for name in relation.key]
        if not columns or any(c not in shown for c in columns):
            return None
        keys.append(tuple((column[1], shown[column]) for column in columns))
    return tuple(keys)


def _check_keys(text: ViewText, definition: Definition, name: str) -> None:
    shown = _shown(definition)
    for occurrence in definition.occurrences:
        relation = occurrence.relation
        if not relation.key:
            kind = " that is neither nullable nor deferrable" if relation.primary else ""
            fact = f'"{name}" needs keys, and "{relation.name}" has no primary key{kind}'
            raise _refused(text, "ALGORITHM_KEYS", fact)
        for column in relation.key:
            if (occurrence.number, relation.number(column)) not in shown:
                fact = f'"{name}" needs "{occurrence.alias}.{column}" among the view\'s columns'
                raise _refused(text, "ALGORITHM_KEYS", fact)


def _shown(definition: Definition) -> dict[tuple[int, int], int]:
    """Columns (position, number) to the output that shows their value."""
    shown: dict[tuple[int, int], int] = {}
    for number, output in enumerate(definition.outputs):
        plain = _PLAIN.fullmatch(output.sql)
        if plain:
            shown.setdefault((int(plain[1]), int(plain[2])), number)
    pairs = [
        ((e.left, e.left_column), (e.right, e.right_column))
        for e in definition.equalities
        if _alike(definition, (e.left, e.left_column), (e.right, e.right_column))
    ]
    # as often as there are pairs: a chain of equalities passes a shown value on, one by one
    for _ in pairs:
        for one, other in pairs:
            for known, new in ((one, other), (other, one)):
                if known in shown:
                    shown.setdefault(new, shown[known])
    return shown


def _alike(definition: Definition, one: tuple[int, int], other: tuple[int, int]) -> bool:
    types = {definition.occurrences[p].relation.columns[c].type for p, c in (one, other)}
    return len(types) == 1 and types.isdisjoint(_INEXACT)


def _enough(promise: str, asked: str) -> bool:
    return promise in LEVELS and LEVELS.index(promise) >= LEVELS.index(asked)


def _refused(text: ViewText, code: str, fact: str, hint: str | None = None) -> ViewRefused:
    line, column = text.algorithm_at
    place = f"line {line}, column {column}" if line else None
    return ViewRefused(
        code,
        f'view "{text.name}": {fact}',
        line=line,
        column=column,
        detail=place,
        hint=hint or BY_CODE[code].hint,
    )
