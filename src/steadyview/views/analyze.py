"""From a view's text to the definition that is maintained, or to the reason why there is none.

Order of work: read the text's syntax, outline its structure, flatten it, sort its conditions:

    over one occurrence            -> that occurrence's filter
    `column = column` over two     -> an equality
    anything else (and constants)  -> a residual

The AND of all filters, equalities and residuals is the AND of all ON, USING and WHERE.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from steadyview.changes import RelationName, RelationSchema
from steadyview.views.definition import Definition, Equality, Occurrence, Output, Residual
from steadyview.views.expressions import check_syntax
from steadyview.views.flatten import Environment, Flat, Flattener, World
from steadyview.views.fragments import Fragment, refs, sql, unbracketed
from steadyview.views.outline import outline
from steadyview.views.parse import ViewText
from steadyview.views.source_text import SourceText

_RESERVED = re.compile(
    r"_(count|cn|seq|tx|g\d+|nonnull_\d+|sum_\d+|visible_(sum|avg)_\d+)", re.IGNORECASE
)
_CLOCK_TEXT = re.compile(r"['\"]\s*(now|today|tomorrow|yesterday)\b.*", re.IGNORECASE | re.DOTALL)
_CLOCK_TYPE = re.compile(r".*(date|time)|_g\d|_visible", re.IGNORECASE)


def analyze(
    view: ViewText,
    relations: Sequence[RelationSchema],
    unsupported: Mapping[RelationName, Mapping[str, str]] | None = None,
    other_views: Collection[str] = (),
) -> Definition:
    """The view's definition over the watched `relations`; ViewRefused if it cannot be maintained.

    `unsupported` names columns whose values cannot be kept, with their types at the source.
    """
    source = view.source()
    query = outline(source)
    check_syntax(source)
    flattener = Flattener(source, World(relations, unsupported or {}, other_views))
    flat = flattener.query(query, Environment({}))
    _check_names(source, flat)
    _check_clock(source, flattener, flat)
    return _definition(view, flattener, flat)


def _definition(view: ViewText, flattener: Flattener, flat: Flat) -> Definition:
    filters, equalities, residuals = _sorted_conditions(flattener.conditions)
    used = {ref for fragment in _fragments(flattener, flat) for ref in refs(fragment)}
    return Definition(
        name=view.name,
        text=view.select,
        level=view.level,
        occurrences=tuple(
            Occurrence(number, relation, alias, _columns_of(used, number), filters.get(number))
            for number, (relation, alias) in enumerate(flattener.occurrences)
        ),
        equalities=equalities,
        residuals=residuals,
        outputs=tuple(Output(c.name, sql(unbracketed(c.value))) for c in flat.columns),
        grouping=flat.grouping.finished() if flat.grouping else None,
        properties=dict(view.properties),
    )


def _columns_of(used: Iterable[tuple[int, int]], number: int) -> tuple[int, ...]:
    return tuple(sorted(column for occurrence, column in used if occurrence == number))


def _fragments(flattener: Flattener, flat: Flat) -> list[Fragment]:
    grouped = flat.grouping.used() if flat.grouping else ()
    return [*flattener.conditions, *grouped, *(c.value for c in flat.columns)]


def _sorted_conditions(
    conditions: Sequence[Fragment],
) -> tuple[dict[int, str], tuple[Equality, ...], tuple[Residual, ...]]:
    filters: dict[int, list[str]] = {}
    equalities: dict[Equality, None] = {}
    residuals: list[Residual] = []
    for condition in map(unbracketed, conditions):
        occurrences = frozenset(occurrence for occurrence, _ in refs(condition))
        equality = _equality(condition)
        if len(occurrences) == 1:
            filters.setdefault(min(occurrences), []).append(f"({sql(condition)})")
        elif equality:
            equalities[equality] = None
        else:
            residuals.append(Residual(sql(condition), occurrences))
    joined = {number: " AND ".join(parts) for number, parts in filters.items()}
    return joined, tuple(equalities), tuple(residuals)


def _equality(condition: Fragment) -> Equality | None:
    signs = [i for i, piece in enumerate(condition) if piece.text in {"=", "=="}]
    if len(signs) != 1:
        return None
    left, right = _column(condition[: signs[0]]), _column(condition[signs[0] + 1 :])
    if left is None or right is None:
        return None
    (a, a_column), (b, b_column) = sorted((left, right))
    return Equality(a, a_column, b, b_column)


def _column(side: Fragment) -> tuple[int, int] | None:
    side = unbracketed(side)
    return side[0].ref if len(side) == 1 else None


def _check_names(source: SourceText, flat: Flat) -> None:
    seen: set[str] = set()
    for column in flat.columns:
        name = column.name.lower()
        if name in seen:
            fact = f'has two columns called "{column.name}"'
            raise source.refuse_at("DUPLICATE_NAME", column.at, fact)
        if _RESERVED.fullmatch(name):
            raise source.refuse_at("RESERVED_NAME", column.at, f'has a column called "{name}"')
        seen.add(name)


def _check_clock(source: SourceText, flattener: Flattener, flat: Flat) -> None:
    """Refuse 'now', 'today' and the like wherever Spark may read them as a date or time."""
    for fragment in _fragments(flattener, flat):
        texts = [p for p in fragment if _CLOCK_TEXT.fullmatch(p.text)]
        if texts and _speaks_of_time(fragment, flattener):
            fact = f"uses {texts[0].text}, which depends on the clock"
            raise source.refusal("SESSION_FUNCTION", texts[0].offset, fact)


def _speaks_of_time(fragment: Fragment, flattener: Flattener) -> bool:
    types = [flattener.occurrences[o][0].columns[c].type for o, c in refs(fragment)]
    words = [piece.text for piece in fragment if not piece.ref]
    return any(_CLOCK_TYPE.match(text) for text in (*types, *words))
