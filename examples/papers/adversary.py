"""Schedules made to hurt: before an answer is given, updates that interfere with it are delivered.

One query after another, the oldest first; `interfering` says which relations are updated before an
answer is given. C-Strobe meets a deletion in every other relation each time, Nested SWEEP an update
of the relation that was asked.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from examples.papers.stream import COMES_AND_GOES, Sources, algorithm_of, chain, update_of
from steadyview.maintenance.algorithms import kind_of
from steadyview.maintenance.events import Install
from steadyview.simulation.sources import Freeze

Interfering = Callable[["Attack", str], Sequence[int]]
"""From the source asked to the relations whose row is inserted or deleted before its answer."""


def calm(_attack: Attack, _source: str) -> Sequence[int]:
    """Nothing interferes."""
    return ()


class Attack:
    """One algorithm over a chain of n relations, under attack."""

    def __init__(self, algorithm: str, n: int) -> None:
        self.sources = Sources(chain(n))
        self.algorithm: Any = algorithm_of(kind_of(algorithm), self.sources)
        self.updates = 0
        self.lookups = 0
        self.queries: set[int] = set()
        self.installs: list[int] = []
        """How many updates had been received at each install."""
        self._open: deque[Any] = deque()

    def update(self, relation: int) -> None:
        """Execute and deliver one update."""
        self.updates += 1
        change = self.sources.toggled(relation)
        message = update_of(self.sources.site, self.updates, relation, change)
        self._act(self.algorithm.received(message))

    def answer(self, interfering: Interfering = calm) -> None:
        """Answer the oldest query, after what interferes with it."""
        ask = self._open.popleft()
        for relation in interfering(self, ask.source):
            self.update(relation)
        self._act(self.algorithm.answered(ask.query, self.sources.answer(ask)))

    @property
    def waiting(self) -> bool:
        """Whether a query is open."""
        return bool(self._open)

    def there(self, relation: int) -> bool:
        """Whether the row that comes and goes is there."""
        return bool(self.sources.rows[relation].count(COMES_AND_GOES))

    def _act(self, actions: Sequence[Any]) -> None:
        for action in actions:
            if isinstance(action, Install):
                self.installs.append(self.updates)
                continue
            self.lookups += not isinstance(action, Freeze)
            self.queries.add(action.query)
            self._open.append(action)


@dataclass(frozen=True)
class Compensation:
    """What one insertion cost C-Strobe: queries that compensate, and all lookups."""

    queries: int
    lookups: int


def c_strobe_attacked(n: int) -> Compensation:
    """One insertion; every other relation loses a row before every answer."""

    def deletions(attack: Attack, _asked: str) -> list[int]:
        others = range(1, n)
        return [r for other in others for r in ([other] if attack.there(other) else [other] * 2)]

    attack = Attack("c-strobe", n)
    attack.update(0)
    while not attack.installs:
        attack.answer(deletions)
    # the install lets the next insertion begin: its query and lookup are not this one's
    return Compensation(len(attack.queries) - 2, attack.lookups - 1)


@dataclass(frozen=True)
class Alternation:
    """Nested SWEEP while two sources keep interfering, and after they stopped."""

    updates: int
    installs_meanwhile: int
    installs: int
    depth: int
    lookups: int


def alternating(algorithm: str, n: int, updates: int) -> Alternation:
    """Whichever of the first two relations is asked is updated before it answers."""

    def the_asked(attack: Attack, asked: str) -> list[int]:
        relation = int(asked[1:]) - 1
        return [relation] if relation < 2 and attack.updates < updates else []

    attack = Attack(algorithm, n)
    attack.update(0)
    meanwhile = 0
    while attack.waiting:
        attack.answer(the_asked)
        if attack.updates < updates:
            meanwhile = len(attack.installs)
    depth = attack.algorithm.depth
    return Alternation(updates, meanwhile, len(attack.installs), depth, attack.lookups)
