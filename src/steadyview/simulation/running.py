"""One run: sources, channels and the warehouse, one event after another as a schedule decides.

Every source executes its parts of the global schedule in order and in its own time; each execution
sends an update, each evaluation of a query an answer. Both go through one channel per source,
first in, first out, with any delay; queries to a source are first in, first out too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from steadyview.algebra import Bag, Row
from steadyview.maintenance.algorithms import Kind
from steadyview.maintenance.bag_view_algebra import Handle
from steadyview.maintenance.events import Change, Install, Update
from steadyview.simulation.batches import Swept
from steadyview.simulation.schedules import TICK_CHOICE, Schedule, Situation
from steadyview.simulation.sources import (
    CRASH,
    DELIVER,
    EVALUATE,
    EXECUTE,
    Asked,
    Choice,
    Freeze,
    Reply,
    Report,
    Source,
    sources_of,
)
from steadyview.simulation.warehouse import Warehouse
from steadyview.simulation.worlds import World


@dataclass(frozen=True)
class Event:
    """Something that happened, for a person: at a source, or at the warehouse (no source)."""

    what: str
    source: str
    data: Any


@dataclass
class Trace:
    """What happened.

    `states`: the view's, the initial one first; a crash takes those away that were not durable.
    `lookups`: query messages, freezes not counted.
    `choices`: the schedule, made explicit. `events`: in full, if asked for.
    """

    states: list[Bag[Row]]
    lookups: int = 0
    updates: int = 0
    crashes: int = 0
    choices: list[Choice] = field(default_factory=list)
    swept: list[Swept] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)


class Restart(NamedTuple):
    """A crash: the number of the state that was durable, and the updates delivered again."""

    state: int
    again: Sequence[Update[Handle]]


class Run:
    """A world, a kind of algorithm, and a schedule; at most so many `crashes`."""

    def __init__(
        self,
        world: World,
        kind: Kind,
        schedule: Schedule,
        *,
        crashes: int = 0,
        verbose: bool = False,
    ) -> None:
        self._site, self._schedule, self._verbose = world.site, schedule, verbose
        self._warehouse = Warehouse(kind, world)
        self._sources = {source.name: source for source in sources_of(world)}
        sources = list(self._sources.values())
        periodic = self._warehouse.is_periodic
        self._now = Situation(world.site, sources, [], crashes, periodic)
        self.trace = Trace(self._warehouse.states)
        self._labels = 0

    def finish(self) -> Trace:
        """Run until nothing is left to happen."""
        choices, chosen, now = self.trace.choices, self._schedule.chosen, self._now
        while True:
            while (choice := chosen(now)) is not None:
                choices.append(choice)
                self._happens(choice)
            if not self._ticks():
                break
            choices.append(TICK_CHOICE)
        self._warehouse.close()
        self.trace.swept = self._warehouse.swept
        return self.trace

    def _happens(self, choice: Choice) -> None:
        what = choice.what
        if what == EXECUTE:
            self._executes(self._sources[choice.source])
        elif what == EVALUATE:
            self._evaluates(self._sources[choice.source])
        elif what == DELIVER:
            self._delivers(self._sources[choice.source])
        elif what == CRASH:
            self._crashes()
        else:
            self._ticks()

    def _executes(self, source: Source) -> None:
        report = source.execute()
        if self._verbose:
            self._tell("executes", source.name, report)

    def _evaluates(self, source: Source) -> None:
        query, reply = source.evaluate(len(self._now.delivered))
        if self._verbose:
            self._tell("evaluates", source.name, (query, reply))

    def _delivers(self, source: Source) -> None:
        message = source.outbox.popleft()
        if self._verbose:
            self._tell("delivers", source.name, message)
        if isinstance(message, Reply):
            self._acts(self._warehouse.answered(message.query, message.answer))
            return
        self._now.delivered.append(message)
        self.trace.updates += 1
        self._acts(self._warehouse.received(self._update(source, message)))

    def _update(self, source: Source, report: Report) -> Update[Handle]:
        relations = self._site.relations
        changes: list[Change[Handle]] = [
            Change(relations[relation], Bag([(row, 1)]), sign > 0)
            for relation, row, sign in report.changes
        ]
        name, parts = report.transaction, report.parts
        return Update(self.trace.updates, source.name, name, tuple(changes), parts)

    def _ticks(self) -> bool:
        actions = self._warehouse.ticked()
        if actions and self._verbose:
            self._tell("ticks", "", None)
        self._acts(actions)
        return bool(actions)

    def _crashes(self) -> None:
        self._now.crashes -= 1
        self.trace.crashes += 1
        for source in self._now.sources:
            source.forget()
        again = self._warehouse.restart()
        if self._verbose:
            self._tell("crashes", "", Restart(len(self.trace.states) - 1, again))
        for update in again:
            self._acts(self._warehouse.again(update))

    def _acts(self, actions: Sequence[Any]) -> None:
        for action in actions:
            if isinstance(action, Install):
                self._warehouse.install(action)
                if self._verbose:
                    self._tell("installs", "", self._warehouse.view)
                continue
            self._labels += 1
            self._warehouse.asked()
            if not isinstance(action, Freeze):
                self.trace.lookups += 1
            source = self._sources[action.source]
            source.inbox.append(Asked(self._labels, action, source.executed))
            if self._verbose:
                self._tell("asks", source.name, source.inbox[-1])

    def _tell(self, what: str, source: str, data: Any) -> None:
        self.trace.events.append(Event(what, source, data))
