"""A generated view's definition: as the front end reads its SQL, or made from its parts without it.

Both must be maintained exactly; where only one is, the fault lies between text and definition.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from steadyview.views.analyze import analyze
from steadyview.views.definition import (
    Argument,
    Definition,
    EqualColumns,
    Grouping,
    Occurrence,
    Output,
    Residual,
)
from steadyview.views.interpret import column_equality
from steadyview.views.parse import parse_view
from tests.world_views import ALIASES, Call, Condition, Place, ViewText
from tests.worlds import NAMES, World

_COLUMN = re.compile(rf"\b([{ALIASES}])\.([{''.join(NAMES)}])\b")


def fragment(sql: str) -> str:
    """The text with stored names.

    >>> fragment("b.x < a.y")
    't1.c0 < t0.c1'
    """
    return _COLUMN.sub(lambda m: f"t{ALIASES.index(m[1])}.c{NAMES.index(m[2])}", sql)


def analyzed(world: World) -> Definition:
    """What the front end makes of the view's SQL."""
    return analyze(parse_view("v", world.view.sql), world.schemas)


def assembled(world: World) -> Definition:
    """The definition put together from the generated parts."""
    view = world.view
    equalities = [e for c in view.conditions if (e := _equality(c))]
    residuals = [c for c in view.conditions if len(c.over) != 1 and not _equality(c)]
    return Definition(
        "v",
        view.sql,
        "complete",
        tuple(_occurrence(view, i, place) for i, place in enumerate(view.places)),
        tuple(equalities),
        tuple(Residual(fragment(c.sql), c.over) for c in residuals),
        tuple(Output(f"o{i}", sql) for i, sql in enumerate(_outputs(view))),
        _grouping(view) if view.calls else None,
    )


def _equality(condition: Condition) -> EqualColumns | None:
    columns = column_equality(fragment(condition.sql)) if len(condition.over) == 2 else None
    return None if columns is None else EqualColumns(*(n for side in sorted(columns) for n in side))


def _occurrence(view: ViewText, number: int, place: Place) -> Occurrence:
    alone = [c.sql for c in view.conditions if c.over == {number}]
    filters: Sequence[str] = [*([place.inner] if place.inner else []), *alone]
    text = " AND ".join(f"({fragment(sql)})" for sql in filters) or None
    columns = tuple(range(len(place.schema.columns)))
    return Occurrence(number, place.schema, place.alias, columns, text)


def _outputs(view: ViewText) -> list[str]:
    if not view.calls:
        return [fragment(sql) for sql in view.outputs]
    return [*(f"_g{g}" for g in range(len(view.keys))), *(_shown(view, c) for c in view.calls)]


def _shown(view: ViewText, call: Call) -> str:
    if call.argument is None:
        return "_count"
    number = list(view.arguments).index(call.argument)
    names = {"COUNT": "_nonnull", "SUM": "_visible_sum", "AVG": "_visible_avg"}
    return f"{names[call.function]}_{number}"


def _grouping(view: ViewText) -> Grouping:
    return Grouping(
        tuple(fragment(key) for key in view.keys),
        tuple(Argument(fragment(sql), summed) for sql, summed in view.arguments.items()),
    )
