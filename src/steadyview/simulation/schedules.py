"""What happens next: thrown by dice that lean one way or another, or read from a script.

Of all events that are possible a `Dice` schedule takes one at random, by weight. An adversary holds
back the evaluation of a query until its source has executed k transactions that conflict with it,
or the delivery of an answer until k updates that conflict with it have overtaken it (`conflicts`).
What is held comes when nothing else is possible.

A `Script` does what it says, leaves out what is impossible, and then finishes by a fixed rule:
deliver before evaluate before execute, the first source first. The calmest of all schedules, so
that a short script is all the adversity there is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Protocol

from steadyview.simulation.blueprints import Site
from steadyview.simulation.conflicts import hits_answer, hits_query
from steadyview.simulation.sources import (
    CRASH,
    DELIVER,
    EVALUATE,
    EXECUTE,
    TICK,
    Choice,
    Reply,
    Report,
    Source,
)

TICK_CHOICE, CRASH_CHOICE = Choice(TICK), Choice(CRASH)


@dataclass
class Situation:
    """What a schedule may look at. `delivered` are updates; `crashes` are still allowed."""

    site: Site
    sources: Sequence[Source]
    delivered: list[Report]
    crashes: int = 0
    is_periodic: bool = False


class Schedule(Protocol):
    """Decides."""

    def chosen(self, now: Situation) -> Choice | None:
        """One of the events that are possible; None if there is none."""


@dataclass(frozen=True)
class Manners:
    """How dice lean: weights of the kinds of events, and what an adversary waits for, at most."""

    execute: float = 1.0
    evaluate: float = 1.0
    deliver: float = 1.0
    tick: float = 0.1
    crash: float = 0.0
    late_queries: int = 0
    """Conflicting transactions that a source executes before it evaluates a query."""
    late_answers: int = 0
    """Conflicting updates that overtake an answer."""


MANNERS = (
    Manners(),
    Manners(execute=3, evaluate=0.3),
    Manners(execute=3, deliver=0.3),
    Manners(execute=0.5, evaluate=3, deliver=0.5),
    Manners(execute=0.2, evaluate=2, deliver=2),
    Manners(execute=0.3, late_queries=4),
    Manners(execute=0.3, late_queries=2),
    Manners(execute=0.3, late_answers=4),
    Manners(execute=0.3, late_answers=2),
    Manners(execute=0.3, late_queries=4, late_answers=4),
    Manners(crash=0.15),
    Manners(crash=0.1, execute=0.3, late_queries=2),
)
"""Even; queries late; messages late; eager; calm; five adversaries; two with crashes.

An adversary is in no hurry to let sources execute: what they still have to do may then hit a query.
"""
BATCH_MANNERS = (
    *MANNERS,
    Manners(execute=0.15, evaluate=2, deliver=2),
    Manners(execute=0.15, evaluate=2, deliver=2, crash=0.1),
    Manners(execute=0.1, evaluate=2, deliver=2, crash=0.2),
)
"""For who works in batches: calm enough for several, also with crashes between them."""


class Dice:
    """A seeded schedule. How many conflicts it waits for is drawn once, from 1 to the most."""

    def __init__(self, random: Random, manners: Manners) -> None:
        self._random = random
        self._manners = manners
        self._adversary = bool(manners.late_queries or manners.late_answers)
        self._late_queries = self._drawn(manners.late_queries)
        self._late_answers = self._drawn(manners.late_answers)
        self._overtakers: dict[tuple[int, bool], tuple[int, int]] = {}
        """By query, and whether it is answered: how many updates were looked at, and conflict."""

    def chosen(self, now: Situation) -> Choice | None:
        """By weight; what is held only if there is nothing else."""
        held = self._held_now(now) if self._adversary else frozenset()
        total = self._total(now, held)
        if held and not total:
            held = frozenset()
            total = self._total(now, held)
        if not total:
            return None
        tick = self._manners.tick if now.is_periodic else 0.0
        crash = self._manners.crash if now.crashes else 0.0
        point = self._random.random() * (total + tick + crash)
        if point < total:
            return self._at(now, held, point)
        return TICK_CHOICE if point < total + tick else CRASH_CHOICE

    def _total(self, now: Situation, held: frozenset[Choice]) -> float:
        """The weight of everything that may happen at a source."""
        manners = self._manners
        execute, evaluate, deliver = manners.execute, manners.evaluate, manners.deliver
        total = 0.0
        for source in now.sources:
            if source.todo:
                total += execute
            if source.inbox and source.evaluate_choice not in held:
                total += evaluate
            if source.outbox and source.deliver_choice not in held:
                total += deliver
        return total

    def _at(self, now: Situation, held: frozenset[Choice], point: float) -> Choice:
        """The event that a point falls on, the weights of all laid side by side."""
        manners = self._manners
        for source in now.sources:
            for waiting, weight, choice in (
                (source.todo, manners.execute, source.execute_choice),
                (source.inbox, manners.evaluate, source.evaluate_choice),
                (source.outbox, manners.deliver, source.deliver_choice),
            ):
                if waiting and choice not in held:
                    last = choice
                    point -= weight
                    if point < 0:
                        return choice
        return last

    def _drawn(self, most: int) -> int:
        return 1 + int(self._random.random() * most) if most else 0

    def _held_now(self, now: Situation) -> frozenset[Choice]:
        return frozenset(choice for source in now.sources for choice in self._held(now, source))

    def _held(self, now: Situation, source: Source) -> list[Choice]:
        held = []
        if source.inbox and source.todo and self._late_queries:
            asked = source.inbox[0]
            since = source.schedule[asked.executed : source.executed]
            conflicts = partial(hits_query, now.site, asked.query)
            if self._overtaken((asked.label, False), since, conflicts) < self._late_queries:
                held.append(source.evaluate_choice)
        if source.outbox and self._late_answers and isinstance(source.outbox[0], Reply):
            reply = source.outbox[0]
            since = now.delivered[reply.delivered :]
            conflicts = partial(hits_answer, now.site, reply.answer)
            if self._overtaken((reply.label, True), since, conflicts) < self._late_answers:
                held.append(source.deliver_choice)
        return held

    def _overtaken(
        self, by: tuple[int, bool], since: Sequence[Report], conflicts: Callable[[Report], bool]
    ) -> int:
        """How many of the updates since conflict; each is looked at once."""
        seen, count = self._overtakers.get(by, (0, 0))
        count += sum(map(conflicts, since[seen:]))
        self._overtakers[by] = len(since), count
        return count


class Script:
    """Choices written down."""

    def __init__(self, choices: Sequence[Choice]) -> None:
        self._left = list(reversed(choices))

    def chosen(self, now: Situation) -> Choice | None:
        """The next that is possible; at the end, the fixed rule."""
        while self._left:
            choice = self._left.pop()
            if _is_possible(choice, now):
                return choice
        return _calmest(now)


def _is_possible(choice: Choice, now: Situation) -> bool:
    if choice.what == CRASH:
        return now.crashes > 0
    if choice.what == TICK:
        return now.is_periodic
    for source in now.sources:
        if source.name == choice.source:
            waiting = {EXECUTE: source.todo, EVALUATE: source.inbox, DELIVER: source.outbox}
            return bool(waiting[choice.what])
    return False


def _calmest(now: Situation) -> Choice | None:
    for source in now.sources:
        if source.outbox:
            return source.deliver_choice
    for source in now.sources:
        if source.inbox:
            return source.evaluate_choice
    for source in now.sources:
        if source.todo:
            return source.execute_choice
    return None
