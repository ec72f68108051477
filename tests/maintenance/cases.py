"""Worlds written by hand, with a definition that no SQL front end had a hand in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from steadyview.algebra import Bag, Row
from steadyview.changes import Column, RelationName, RelationSchema
from steadyview.maintenance.bag_algebra import Batch
from steadyview.views.definition import Definition, EqualColumns, Occurrence, Output, Residual
from tests.maintenance.sweeping import SOUND, Showing, Sweeper, swept_changes, true_changes
from tests.world_views import ViewText
from tests.worlds import RowChange, World, WorldTransaction


def relation(name: str, columns: str) -> RelationSchema:
    """`relation("s1.r", "xy")`: integer columns x and y, both to be looked up by."""
    source, table = name.split(".")
    return RelationSchema(
        RelationName(source, (table,)), tuple(Column(c, "BIGINT", "", True) for c in columns)
    )


@dataclass(frozen=True)
class View:
    """The same view twice: SQL for the recomputation, fragments for the sweep."""

    sql: str
    occurrences: Sequence[RelationSchema]
    equalities: Sequence[EqualColumns]
    outputs: Sequence[str]
    filters: Mapping[int, str]
    residuals: Sequence[Residual]

    def definition(self) -> Definition:
        return Definition(
            "v",
            self.sql,
            "complete",
            tuple(
                Occurrence(i, r, f"o{i}", tuple(range(len(r.columns))), self.filters.get(i))
                for i, r in enumerate(self.occurrences)
            ),
            tuple(self.equalities),
            tuple(self.residuals),
            tuple(Output(f"o{i}", sql) for i, sql in enumerate(self.outputs)),
        )


def view(
    sql: str,
    occurrences: Sequence[RelationSchema],
    equalities: Sequence[tuple[int, int, int, int]],
    outputs: Sequence[str],
    *,
    filters: Mapping[int, str] | None = None,
    residuals: Sequence[tuple[str, set[int]]] = (),
) -> View:
    return View(
        sql,
        occurrences,
        [EqualColumns(*e) for e in equalities],
        outputs,
        filters or {},
        [Residual(text, frozenset(over)) for text, over in residuals],
    )


@dataclass(frozen=True)
class Case:
    """A view, a world, and what its sources showed to every batch."""

    view: View
    world: World
    showings: Sequence[Showing]

    def changes(self, sweeper: Sweeper = SOUND) -> Mapping[int, Bag[Row]]:
        return swept_changes(self.view.definition(), self.world, self.showings, sweeper)

    def exact(self, sweeper: Sweeper = SOUND) -> bool:
        """Whether every swept dV(k) is the recomputed one, however the rest of the luck falls."""
        truth = true_changes(self.world)
        return all(self._with_luck(luck).changes(sweeper) == truth for luck in range(4))

    def _with_luck(self, luck: int) -> Case:
        showings = [Showing(s.batch, s.reflected, luck) for s in self.showings]
        return Case(self.view, self.world, showings)


def case(
    of: View,
    initial: Mapping[RelationSchema, Sequence[Row]],
    transactions: Sequence[Sequence[tuple[RelationSchema, Row, int]]],
    showings: Sequence[tuple[int, int, set[int]]],
) -> Case:
    """Transaction i (cn i + 1) is a list of (relation, row, count); a showing is (a, b, P)."""
    schemas = tuple(dict.fromkeys(of.occurrences))
    rows = {schema.name: Bag.of(initial.get(schema, ())) for schema in schemas}
    history = tuple(_transaction(changes) for changes in transactions)
    world = World(schemas, ViewText(of.sql), rows, history)
    return Case(of, world, [Showing(Batch(a, b), frozenset(p)) for a, b, p in showings])


def _transaction(changes: Sequence[tuple[RelationSchema, Row, int]]) -> WorldTransaction:
    sources = {schema.name.source for schema, _, _ in changes}
    assert len(sources) == 1, "a transaction belongs to one source"
    return WorldTransaction(
        sources.pop(), tuple(RowChange(schema.name, row, count) for schema, row, count in changes)
    )
