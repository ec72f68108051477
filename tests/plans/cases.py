"""Worlds written by hand: a view, transactions, and what the sources showed to every batch.

A *showing* is one batch and the set P of transactions that its answers reflect, any set. The batch
is run as the simulator runs it: the product's asks, versions and statement, in SQLite.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from steadyview.algebra import Bag, Row
from steadyview.changes import Column, RelationName, RelationSchema
from steadyview.plans.moves import FOREVER
from steadyview.simulation.view_plan import Moved, State, ViewPlan, view_plan
from steadyview.simulation.window import LogRow, RowsWanted, Window
from tests.recomputation import differences, recomputed
from tests.world_views import ViewText
from tests.worlds import RowChange, World, WorldTransaction

Reflected = Callable[[LogRow, Sequence[LogRow], int, int], LogRow]
"""What is believed of a log row: itself, all rows of its relation, after, upto."""


def relation(name: str, columns: str) -> RelationSchema:
    """`relation("s1.r", "xy")`: integer columns x and y, both to be looked up by."""
    source, table = name.split(".")
    return RelationSchema(
        RelationName(source, (table,)), tuple(Column(c, "BIGINT", "", True) for c in columns)
    )


@dataclass(frozen=True)
class Reading:
    """The parts under test; a mutant replaces one of them."""

    believed: Reflected = lambda entry, log, after, upto: entry
    window: type[Window] = Window
    planned: Callable[[ViewPlan], ViewPlan] = lambda plan: plan


SOUND = Reading()


@dataclass(frozen=True)
class Showing:
    """The transactions k with after < k <= upto, and the cns that the answers reflect."""

    after: int
    upto: int
    reflected: frozenset[int]


@dataclass(frozen=True)
class Batch:
    """What one batch did: its lookups, round after round, and its effect."""

    rounds: tuple[tuple[RowsWanted, ...], ...]
    moved: Moved

    @property
    def lookups(self) -> list[RowsWanted]:
        return [wanted for each in self.rounds for wanted in each]


@dataclass(frozen=True)
class Case:
    """A world and what its sources showed to every batch."""

    world: World
    showings: Sequence[Showing]

    @cached_property
    def plan(self) -> ViewPlan:
        return view_plan(self.world.view.sql, self.world.schemas)

    def batches(self, reading: Reading = SOUND) -> list[Batch]:
        plan = reading.planned(self.plan)
        state: State = plan.first([self.world.initial[s.name] for s in self.world.schemas]).state
        done = []
        for showing in self.showings:
            done.append(self._batch(plan, showing, state, reading))
            state = done[-1].moved.state
        return done

    def changes(self, reading: Reading = SOUND) -> dict[int, Bag[Row]]:
        """The view's change at each cn that has one."""
        found = [batch.moved.changes for batch in self.batches(reading)]
        return {cn: change for changes in found for cn, change in changes.items() if len(change)}

    def exact(self, reading: Reading = SOUND) -> bool:
        """Whether the change at every cn is the recomputed one."""
        truth = differences(recomputed(self.world, self.world.view.sql))
        try:
            return self.changes(reading) == truth
        except AssertionError:
            return False

    def _batch(self, plan: ViewPlan, at: Showing, state: State, reading: Reading) -> Batch:
        window = reading.window(plan, self._log(at, reading), at.after, at.upto)
        rows = self._shown(at.reflected)
        rounds = []
        while asked := window.lookups():
            rounds.append(tuple(asked))
            for wanted in asked:
                window.answered(wanted, rows[wanted.relation].where(wanted.has))
        return Batch(tuple(rounds), window.moved(state))

    def _shown(self, reflected: Iterable[int]) -> list[Bag[Row]]:
        """The rows to begin with, and the changes of the reflected transactions."""
        rows = dict(self.world.initial)
        for cn in reflected:
            for change in self.world.transactions[cn - 1].changes:
                rows[change.relation] += Bag([(change.row, change.count)])
        return [rows[schema.name] for schema in self.world.schemas]

    def _log(self, at: Showing, reading: Reading) -> dict[int, list[LogRow]]:
        """Later transactions than the batch's are captured, but not admitted yet."""
        log: dict[int, list[LogRow]] = {}
        number = {schema.name: i for i, schema in enumerate(self.world.schemas)}
        for cn, transaction in enumerate(self.world.transactions, 1):
            for c in transaction.changes:
                time = cn if cn <= at.upto else FOREVER
                entry = LogRow(c.row, c.count, time, cn in at.reflected)
                log.setdefault(number[c.relation], []).append(entry)
        return {
            r: [reading.believed(entry, rows, at.after, at.upto) for entry in rows]
            for r, rows in log.items()
        }


def case(
    sql: str,
    schemas: Sequence[RelationSchema],
    initial: Mapping[RelationSchema, Sequence[Row]],
    transactions: Sequence[Sequence[tuple[RelationSchema, Row, int]]],
    showings: Sequence[tuple[int, int, set[int]]],
) -> Case:
    """Transaction i (cn i + 1) is a list of (relation, row, count); a showing is (a, b, P)."""
    rows = {schema.name: Bag.of(initial.get(schema, ())) for schema in schemas}
    history = tuple(_transaction(changes) for changes in transactions)
    world = World(tuple(schemas), ViewText(sql), rows, history)
    return Case(world, [Showing(a, b, frozenset(p)) for a, b, p in showings])


def shown_again(of: Case, showings: Sequence[tuple[int, int, set[int]]]) -> Case:
    """The same world in other batches."""
    return replace(of, showings=[Showing(a, b, frozenset(p)) for a, b, p in showings])


def _transaction(changes: Sequence[tuple[RelationSchema, Row, int]]) -> WorldTransaction:
    sources = {schema.name.source for schema, _, _ in changes}
    assert len(sources) == 1, "a transaction belongs to one source"
    return WorldTransaction(
        sources.pop(), tuple(RowChange(schema.name, row, count) for schema, row, count in changes)
    )
