"""One run: sources, channels and the warehouse, one event after another as a seed decides.

Every source executes its parts of the global schedule in order and in its own time; each execution
sends an update, each evaluation of a query an answer. Both go through one channel per source,
first in, first out, with any delay; queries to a source are FIFO too.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeAlias

from steadyview.algebra import Bag, Row
from steadyview.maintenance.bag_view_algebra import Handle
from steadyview.maintenance.events import Action, Algorithm, Ask, Change, Install, Read, Update
from steadyview.simulation.blueprints import Site
from steadyview.simulation.worlds import RowChange, World

Make: TypeAlias = Callable[[Site, Bag[Row]], Algorithm[Handle]]
"""Makes an algorithm for a view with these rows."""


@dataclass(frozen=True)
class Manners:
    """How the schedule leans: the weight of each kind of event among those that are possible."""

    execute: float = 1.0
    evaluate: float = 1.0
    deliver: float = 1.0
    crash: float = 0.0


MANNERS = (
    Manners(),
    Manners(execute=3, evaluate=0.3),
    Manners(execute=3, deliver=0.3),
    Manners(execute=0.5, evaluate=3, deliver=0.5),
    Manners(execute=0.2, evaluate=2, deliver=2),
)
"""Even; queries late (an answer waits until updates overtook it); messages late; eager; calm."""


@dataclass
class Trace:
    """What happened: the view's states, how many lookups were sent, and every event in words."""

    states: list[Bag[Row]]
    lookups: int = 0
    updates: int = 0
    events: list[tuple[str, str, Any]] = field(default_factory=list)
    """(where, what, data): only kept if asked for."""


class _Source:
    """A database: its relations now, what it will execute, and the two channels."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.todo: deque[tuple[str, tuple[RowChange, ...], int]] = deque()
        self.rows: dict[int, Bag[Row]] = {}
        self.inbox: deque[Ask[Handle] | Read] = deque()
        self.outbox: deque[tuple[str, Any]] = deque()


class Run:
    """A world, a maker of algorithms, and a seeded schedule."""

    def __init__(
        self, world: World, make: Make, random: Random, manners: Manners, *, verbose: bool = False
    ) -> None:
        self._world, self._make, self._random, self._manners = world, make, random, manners
        self._site = world.site
        self._verbose = verbose
        self._sources = _sources(world)
        self._view = self._initial_view()
        self.trace = Trace([self._view])
        self._algorithm = make(self._site, self._view)
        self._delivered: list[Update[Handle]] = []
        self._installed_upto = 0

    def finish(self) -> Trace:
        """Run until nothing is left to happen."""
        while True:
            if not self._step():
                actions = self._algorithm.ticked()
                if not actions:
                    return self.trace
                self._act(actions)

    def _step(self) -> bool:
        """One event among those that are possible; False if there is none."""
        manners, choices = self._manners, []
        total = 0.0
        for source in self._sources:
            if source.todo:
                total += manners.execute
                choices.append((total, self._execute, source))
            if source.inbox:
                total += manners.evaluate
                choices.append((total, self._evaluate, source))
            if source.outbox:
                total += manners.deliver
                choices.append((total, self._deliver, source))
        if not choices:
            return False
        chosen = self._random.random() * total
        for upto, event, source in choices:
            if chosen < upto:
                event(source)
                break
        return True

    def _execute(self, source: _Source) -> None:
        name, changes, parts = source.todo.popleft()
        for change in changes:
            source.rows[change.relation] += Bag([(change.row, change.count)])
        if self._verbose:
            self.trace.events.append((source.name, "executes", (name, changes)))
        source.outbox.append(("update", (name, changes, parts)))

    def _evaluate(self, source: _Source) -> None:
        query = source.inbox.popleft()
        answer = tuple(self._answers(source, query))
        if self._verbose:
            self.trace.events.append((source.name, "evaluates", (query, answer)))
        source.outbox.append(("answer", (query.query, answer)))

    def _answers(self, source: _Source, query: Ask[Handle] | Read) -> Sequence[Handle]:
        uses = self._world.blueprint.uses
        if isinstance(query, Read):
            return [source.rows[uses[position]] for position in query.positions]
        algebra = self._site.algebra
        found = []
        for part in query.parts:
            known = part.known
            for position, rows in part.steps:
                base = source.rows[uses[position]] if rows is None else rows
                known = algebra.join(known, position, base)
            found.append(known)
        return found

    def _deliver(self, source: _Source) -> None:
        kind, message = source.outbox.popleft()
        if self._verbose:
            self.trace.events.append((source.name, f"delivers {kind}", message))
        if kind == "answer":
            self._act(self._algorithm.answered(*message))
            return
        name, changes, parts = message
        relations = self._site.relations
        made: list[Change[Handle]] = [
            Change(relations[c.relation], Bag([(c.row, 1)]), c.count > 0) for c in changes
        ]
        self.trace.updates += 1
        update: Update[Handle] = Update(
            self.trace.updates, source.name, name, tuple(made), parts
        )
        self._act(self._algorithm.received(update))

    def _act(self, actions: Sequence[Action[Handle]]) -> None:
        for action in actions:
            if isinstance(action, Install):
                assert isinstance(action.change, Bag)
                self._view += action.change
                self.trace.states.append(self._view)
                if self._verbose:
                    self.trace.events.append(("warehouse", "installs", self._view))
            else:
                self.trace.lookups += 1
                if self._verbose:
                    self.trace.events.append(("warehouse", "asks", action))
                next(s for s in self._sources if s.name == action.source).inbox.append(action)

    def _initial_view(self) -> Bag[Row]:
        algebra, positions = self._site.algebra, self._site.positions
        rows = [self._world.rows[relation] for relation in self._world.blueprint.uses]
        joined = algebra.seed(0, rows[0])
        for position in positions.outward(0):
            joined = algebra.join(joined, position, rows[position])
        return algebra.project(joined)


def _sources(world: World) -> list[_Source]:
    names = world.blueprint.source_names
    found = {name: _Source(name) for name in dict.fromkeys(names)}
    for relation, rows in enumerate(world.rows):
        found[names[relation]].rows[relation] = rows
    for transaction in world.transactions:
        parts: dict[str, list[RowChange]] = {}
        for change in transaction.changes:
            parts.setdefault(names[change.relation], []).append(change)
        for name, changes in parts.items():
            found[name].todo.append((transaction.id, tuple(changes), len(parts)))
    return list(found.values())
