"""Generated worlds: sources with relations, one view in SQL, rows to begin with, transactions.

The SQL is Spark's and SQLite's at once (tables are `source.table`), so the same text can be given
to the product and to an independent recomputation. Transaction i of a world gets cn i + 1.

Values are few (small integers, two strings, NULL), so that joins hit, keys change into one another
and duplicates are common. Hypothesis shrinks every choice towards the first option.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from hypothesis import strategies as st

from steadyview.algebra import Bag, Row
from steadyview.changes import Column, RelationName, RelationSchema
from tests.world_views import Choices, ViewText, view_text

INTEGERS: Sequence[Any] = (1, 2, 1, 2, 3, None)
STRINGS: Sequence[Any] = ("a", "b", None)
NAMES = ("x", "y", "z")
MOST_ROWS = 6


@dataclass(frozen=True)
class RowChange:
    """`count` times this row more (or less) in the relation."""

    relation: RelationName
    row: Row
    count: int


@dataclass(frozen=True)
class WorldTransaction:
    """One committed transaction of one source."""

    source: str
    changes: tuple[RowChange, ...]


@dataclass(frozen=True)
class World:
    """Everything that happens; `initial` holds the rows of every relation before transaction 1."""

    schemas: tuple[RelationSchema, ...]
    view: ViewText
    initial: Mapping[RelationName, Bag[Row]]
    transactions: tuple[WorldTransaction, ...]


class Drawn(Choices):
    """Choices made, recorded and shrunk by Hypothesis."""

    def __init__(self, draw: Any) -> None:
        self._draw = draw

    def number(self, low: int, high: int) -> int:
        return int(self._draw(_integers(low, high)))


class Seeded(Choices):
    """Choices that a number decides; ten times faster, and nothing shrinks them."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def number(self, low: int, high: int) -> int:
        return self._random.randint(low, high)


@cache
def _integers(low: int, high: int) -> st.SearchStrategy[int]:
    return st.integers(low, high)


@st.composite
def worlds(draw: Any, *, transactions: tuple[int, int] = (3, 14)) -> World:
    """Worlds with 2 to 5 relations over 1 to 3 sources and that many transactions."""
    return chosen_world(Drawn(draw), transactions)


def seeded_world(seed: int, transactions: tuple[int, int] = (3, 14)) -> World:
    """The same worlds, one for each number."""
    return chosen_world(Seeded(seed), transactions)


def chosen_world(choices: Choices, transactions: tuple[int, int] = (3, 14)) -> World:
    """A world by the given choices."""
    schemas = _schemas(choices)
    view = view_text(choices, schemas)
    initial = {schema.name: _rows(choices, schema) for schema in schemas}
    # Most changes go to relations that the view speaks of; the others must not disturb it.
    busy = [schema for schema in schemas if f"{schema.name} " in view.sql]
    length = choices.number(*transactions)
    history = _history(choices, [*busy * 3, *schemas], initial, length)
    return World(schemas, view, initial, history)


def _schemas(choices: Choices) -> tuple[RelationSchema, ...]:
    sources = choices.number(1, 3)
    return tuple(_schema(choices, number, sources) for number in range(choices.number(2, 5)))


def _schema(choices: Choices, number: int, sources: int) -> RelationSchema:
    source = f"s{choices.number(0, sources - 1)}"
    # The first column is always an integer, so that any two relations can be joined.
    types = ["BIGINT", *(choices.pick(["BIGINT", "BIGINT", "STRING"]) for _ in range(2))]
    width = choices.number(1, 3)
    columns = zip(NAMES[:width], types, strict=False)
    return RelationSchema(
        RelationName(source, (f"r{number}",)),
        tuple(Column(name, kind, "", not choices.chance(10)) for name, kind in columns),
    )


def _rows(choices: Choices, schema: RelationSchema) -> Bag[Row]:
    return Bag.of(_row(choices, schema) for _ in range(choices.pick([3, 2, 4, 5, 1, 0])))


def _row(choices: Choices, schema: RelationSchema) -> Row:
    return tuple(choices.pick(_domain(column)) for column in schema.columns)


def _domain(column: Column) -> Sequence[Any]:
    return INTEGERS if column.type == "BIGINT" else STRINGS


def _history(
    choices: Choices,
    schemas: Sequence[RelationSchema],
    initial: Mapping[RelationName, Bag[Row]],
    length: int,
) -> tuple[WorldTransaction, ...]:
    state = dict(initial)
    return tuple(_transaction(choices, schemas, state) for _ in range(length))


def _transaction(
    choices: Choices, schemas: Sequence[RelationSchema], state: dict[RelationName, Bag[Row]]
) -> WorldTransaction:
    """One transaction over one or several relations of a source; `state` moves along with it."""
    source = choices.pick(schemas).name.source
    local = [schema for schema in schemas if schema.name.source == source]
    changes: list[RowChange] = []
    for _ in range(choices.number(1, 4)):
        schema = choices.pick(local)
        for row, count in _statement(choices, schema, state[schema.name]):
            changes.append(RowChange(schema.name, row, count))
            state[schema.name] += Bag([(row, count)])
    return WorldTransaction(source, tuple(changes))


def _statement(
    choices: Choices, schema: RelationSchema, rows: Bag[Row]
) -> Sequence[tuple[Row, int]]:
    """What one INSERT, DELETE or UPDATE of one row does to a relation with these rows."""
    present = [row for row, _ in rows]
    if not present:
        return [(_row(choices, schema), 1)]
    crowded = sum(count for _, count in rows) >= MOST_ROWS
    kinds = ["delete", "update"] if crowded else ["insert", "delete", "update", "duplicate"]
    kind, row = choices.pick(kinds), choices.pick(present)
    if kind == "insert":
        return [(_row(choices, schema), 1)]
    if kind == "duplicate":
        return [(row, 1)]
    if kind == "delete":
        return [(row, -1)]
    return [(row, -1), (_changed(choices, schema, row), 1)]


def _changed(choices: Choices, schema: RelationSchema, row: Row) -> Row:
    """The row with one column set anew; every column is some view's join key."""
    column = choices.number(0, len(row) - 1)
    value = choices.pick(_domain(schema.columns[column]))
    return (*row[:column], value, *row[column + 1 :])
