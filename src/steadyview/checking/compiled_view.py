"""A view as a program over rows in memory: occurrence after occurrence, then what a reader sees.

    V  =  visible ( rows_0  |x|  rows_1  |x|  ... )

A joined row is one flat tuple, the kept columns of the places side by side; plain columns are
positions in it, found once. Equalities of plain columns are hash joins. Everything else goes
through `views.interpret`, which refuses what it does not know.

Assumes: each column holds values of one kind, and columns that are compared are of one kind (see
`kinds`); NULL is equal to nothing.
Compiled once per view text and columns: a simulator judges thousands of histories of one view.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TypeAlias

from steadyview.algebra import Row, Value
from steadyview.changes import Column, RelationName, RelationSchema
from steadyview.checking.flat_rows import Layout, key_of, row_of
from steadyview.checking.possible import Possible, possible_of
from steadyview.checking.visible import Shown, Visible, visible_of
from steadyview.errors import DefiniteError, ViewRefused
from steadyview.views.analyze import analyze
from steadyview.views.definition import Definition, Occurrence
from steadyview.views.interpret import column_equality, interpret
from steadyview.views.join_tree import join_tree
from steadyview.views.parse import parse_view

Counted: TypeAlias = tuple[Row, int]
Index: TypeAlias = Mapping[Value, Sequence[Counted]]
"""Rows of one place by the value (or values) that they are joined on."""
Columns: TypeAlias = tuple[tuple[str, tuple[str, ...]], ...]
"""The relations' names, each with the names of its columns."""
_HINT = "a history is judged in memory: of expressions, it understands those listed in docs/cli.md"


@dataclass(frozen=True)
class JoinedOccurrence:
    """One occurrence, in join order.

    `keep`: a relation's row as it takes part, None if the filter drops it; itself None where all
    rows take part as they are. `own` and `partner`: on which values a row of this place and a row
    joined so far meet; None: with every one.
    `holds`: the further conditions that can be told once this place is joined. `shown`: which of
    the kept columns a reader sees, each as (position here, position in the view).
    """

    relation: str
    keep: Callable[[Row], Row | None] | None
    own: Callable[[Row], Value] | None
    partner: Callable[[Row], Value] | None
    holds: Callable[[Row], bool] | None
    shown: tuple[tuple[int, int], ...]

    def kept(self, rows: Iterable[Counted]) -> dict[Row, int]:
        """The rows, or a change of them, as they take part."""
        if self.keep is None:
            return dict(rows)
        kept: dict[Row, int] = {}
        for row, count in rows:
            part = self.keep(row)
            if part is not None:
                kept[part] = kept.get(part, 0) + count
        return {row: count for row, count in kept.items() if count}

    def index(self, rows: Mapping[Row, int]) -> Index:
        """The rows by what they are joined on; NULL meets nothing."""
        if self.own is None:
            return {None: list(rows.items())}
        index: dict[Value, list[Counted]] = {}
        for row, count in rows.items():
            index.setdefault(self.own(row), []).append((row, count))
        return {key: found for key, found in index.items() if not _has_null(key)}

    def join(self, left: Sequence[Counted], index: Index) -> list[Counted]:
        """Every joined row with its count."""
        if self.partner is None:
            rows = index[None]
            joined = [(flat + row, n * m) for flat, n in left for row, m in rows]
        else:
            partner, find = self.partner, index.get
            joined = [
                (flat + row, n * m) for flat, n in left for row, m in find(partner(flat), ())
            ]
        holds = self.holds
        return joined if holds is None else [pair for pair in joined if holds(pair[0])]


@dataclass(frozen=True)
class CompiledView:
    """The places in join order, and what is made of the joined rows."""

    definition: Definition
    places: tuple[JoinedOccurrence, ...]
    visible: Visible
    shown: tuple[Shown, ...]
    possible: Possible

    @cached_property
    def calculates(self) -> bool:
        """Whether a visible column is anything else than a stored one."""
        return any(column.tell for column in self.shown)

    def joined(self, rows: Iterable[Mapping[Row, int]]) -> list[Counted]:
        """The join of these rows, for each place those that take part."""
        joined: list[Counted] = [((), 1)]
        for place, own in zip(self.places, rows, strict=True):
            joined = place.join(joined, place.index(own)) if joined else []
        return joined

    def column(self, occurrence: int, column: int) -> tuple[str, str]:
        """The names of a stored column and of its relation, the relation's first."""
        schema = self.definition.occurrences[occurrence].relation
        return str(schema.name), schema.columns[column].name


@lru_cache(maxsize=1024)
def compiled(view: str, relations: Columns) -> CompiledView:
    """The view over these relations; ViewRefused or DefiniteError if it cannot be evaluated."""
    try:
        return _compiled(view, relations)
    except ViewRefused:
        raise
    except DefiniteError as error:
        raise DefiniteError(error.message, detail=error.detail, hint=_HINT) from None


def _compiled(view: str, relations: Columns) -> CompiledView:
    definition = analyze(parse_view("history", view), [_schema(*names) for names in relations])
    tree = join_tree(definition)
    steps = tree.steps(0)
    order = [0, *(step.edge.v for step in steps)]
    layout = Layout(definition, order)
    conditions = [tree.start_conditions(0), *(s.conditions for s in steps)]
    visible, shown = visible_of(definition, layout)
    places = [
        _place(layout, definition.occurrences[number], sqls, shown)
        for number, sqls in zip(order, conditions, strict=True)
    ]
    possible = possible_of(definition, layout, visible, shown)
    return CompiledView(definition, tuple(places), visible, shown, possible)


def _schema(name: str, columns: Sequence[str]) -> RelationSchema:
    source, *path = name.split(".")
    return RelationSchema(RelationName(source, tuple(path)), tuple(Column(c, "") for c in columns))


def _place(
    layout: Layout, occurrence: Occurrence, conditions: Sequence[str], shown: Sequence[Shown]
) -> JoinedOccurrence:
    kept = layout.kept[occurrence.number]
    equalities, others = _sides(conditions, occurrence.number)
    partners = [layout.position(*there) for there, _ in equalities]
    owns = [kept.index(column) for _, column in equalities]
    return JoinedOccurrence(
        str(occurrence.relation.name),
        _keep(kept, occurrence),
        key_of(owns) if owns else None,
        key_of(partners) if partners else None,
        layout.condition(others) if others else None,
        tuple(
            (kept.index(column.column[1]), place)
            for place, column in enumerate(shown)
            if column.column and column.column[0] == occurrence.number
        ),
    )


def _sides(
    conditions: Sequence[str], number: int
) -> tuple[list[tuple[tuple[int, int], int]], list[str]]:
    """Plain equalities as (column bound before, own column), and all other conditions."""
    equalities, others = [], []
    for sql in conditions:
        sides = column_equality(sql)
        if sides is None or sides[0][0] == sides[1][0]:
            others.append(sql)
        else:
            there, here = sides if sides[1][0] == number else (sides[1], sides[0])
            equalities.append((there, here[1]))
    return equalities, others


def _keep(columns: Sequence[int], occurrence: Occurrence) -> Callable[[Row], Row | None] | None:
    kept = row_of(columns)
    if occurrence.filter is None:
        return kept if len(columns) < len(occurrence.relation.columns) else None
    holds = interpret(occurrence.filter)
    nothing: list[Row] = [()] * occurrence.number

    def keep(row: Row) -> Row | None:
        return kept(row) if holds([*nothing, row], {}) is True else None

    return keep


def _has_null(key: Value) -> bool:
    return key is None or (type(key) is tuple and None in key)
