"""A view as the maintenance sees it: SELECT-PROJECT-JOIN over occurrences, perhaps grouped.

    V  =  project or aggregate ( filter ( R_0 x R_1 x ... x R_{n-1} ) )

Every SQL fragment here is Spark SQL over *stored* names only: column i of occurrence o is written
`t{o}.c{i}`; in outputs of an aggregate view, group key g is `_g{g}`, and the state columns are
`_count` and, per aggregated argument a, `_nonnull_{a}` and `_sum_{a}`.

Outputs never speak of `_sum_{a}`, whose type is wider than what a person sees: SUM(a) is the column
`_visible_sum_{a}` and AVG(a) `_visible_avg_{a}`, of the types Spark gives to these aggregates.
Whoever evaluates outputs provides them from the state columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from steadyview.changes import RelationSchema


@dataclass(frozen=True)
class Occurrence:
    """One occurrence of a relation in FROM. Its number is its place in the sweep's order.

    `columns`: the column numbers the view uses, ascending. `filter`: the conjuncts over this
    occurrence alone, or None. `alias`: the name a person knows it by (for explain).
    """

    number: int
    relation: RelationSchema
    alias: str
    columns: tuple[int, ...]
    filter: str | None = None

    @property
    def name(self) -> str:
        """How fragments call this occurrence."""
        return f"t{self.number}"


@dataclass(frozen=True)
class EqualColumns:
    """`t{left}.c{left_column} = t{right}.c{right_column}`, left < right, both plain columns."""

    left: int
    left_column: int
    right: int
    right_column: int


@dataclass(frozen=True)
class Residual:
    """Any further condition over two or more occurrences (or over none: a constant)."""

    sql: str
    occurrences: frozenset[int]


@dataclass(frozen=True)
class Output:
    """One visible column. In an aggregate view `sql` speaks of group keys and state columns."""

    name: str
    sql: str


@dataclass(frozen=True)
class Argument:
    """An aggregated expression over occurrences. `summed`: SUM or AVG of it is needed."""

    sql: str
    summed: bool


@dataclass(frozen=True)
class AverageCall:
    """An AVG in the user's text: where it stands, where its argument does, and a number.

    Offsets in the view's SELECT, from and up to. In a grouping the number is the argument's.
    """

    call: tuple[int, int]
    argument: tuple[int, int]
    number: int


@dataclass(frozen=True)
class Grouping:
    """GROUP BY keys (none for a global aggregate) and the aggregated arguments, numbered.

    `averages`: where the text asks for them, for whoever computes them in another way.
    """

    keys: tuple[str, ...]
    arguments: tuple[Argument, ...]
    averages: tuple[AverageCall, ...] = field(default=(), compare=False)


@dataclass(frozen=True)
class Definition:
    """A view that can be maintained incrementally.

    `text` is the SELECT as the user wrote it. `grouping` is None for SELECT-PROJECT-JOIN views.
    """

    name: str
    text: str
    level: str
    occurrences: tuple[Occurrence, ...]
    equalities: tuple[EqualColumns, ...]
    residuals: tuple[Residual, ...]
    outputs: tuple[Output, ...]
    grouping: Grouping | None = None
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Types:
    """What Spark says about a view: types of outputs, of group keys and of aggregated arguments.

    `sums` and `averages` are the types of SUM(x) and AVG(x) per argument (None where not summed),
    `states` the exact type each running sum is kept in.
    """

    outputs: tuple[tuple[str, str], ...]
    keys: tuple[str, ...] = ()
    sums: tuple[str | None, ...] = ()
    averages: tuple[str | None, ...] = ()
    states: tuple[str | None, ...] = ()
