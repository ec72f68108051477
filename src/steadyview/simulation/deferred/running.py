"""One run: transactions, apply processes and chores, suspended between any two requests.

At each moment dice choose: a transaction begins, an apply process begins, a chore begins, or a
process goes on by one request. A process that waits is passed over; where all wait, transactions
wait for each other, and one is rolled back. When all transactions have ended and everything has
settled, each view is rolled to one last time beyond all commit times.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from steadyview.checking.deferred import DeferredHistory
from steadyview.maintenance.ipda.algorithm_2 import Algorithm2
from steadyview.maintenance.ipda.contract import DeferredAlgorithm
from steadyview.maintenance.ipda.records import Groups
from steadyview.maintenance.ipda.requests import EndTransaction, Steps
from steadyview.simulation.deferred.commit_numbers import CommitNumbers
from steadyview.simulation.deferred.database import (
    WAITS,
    Client,
    DeferredDatabase,
    Execute,
    LockAccount,
    Pause,
)
from steadyview.simulation.deferred.ways import Way
from steadyview.simulation.deferred.worlds import VIEWS, Accounts, Job, accounts

_TOGETHER = 3
"""How many transactions run at once, at most."""
_BEGINS, _APPLIES, _CHORES, _GOES_ON = 1.0, 0.4, 0.3, 3.0
_SAME_TARGET, _NEWEST_TARGET = 0.5, 0.5
_SET_BACK, _SET_BACK_BY = 0.04, 15
_BEYOND = 300
"""Later than all that any clock has said."""


class Process:
    """Requests one by one; the next is known before it is done."""

    def __init__(self, client: Client, steps: Steps) -> None:
        self.client = client
        self._steps = steps
        self._sent: Any = None
        self.request: Any = None
        self.is_done = False
        self._next(None)

    def goes_on(self, database: DeferredDatabase) -> bool:
        """Do the request, unless it waits."""
        answer = database.asked(self.request, self.client)
        if answer is WAITS:
            return False
        self._next(answer)
        return True

    def _next(self, answer: Any) -> None:
        try:
            self.request = self._steps.send(answer)
        except StopIteration:
            self.is_done, self.request = True, None


def transaction(
    job: Job, client: Client, algorithm: DeferredAlgorithm, database: DeferredDatabase
) -> Steps:
    """A transaction as a process: each statement locks, executes, propagates; then the commit."""
    for statement in job.statements:
        yield LockAccount(statement.account.id)
        client.node = statement.account.node
        records = yield Execute(statement)
        yield from algorithm.propagate(records)
    client.node, client.is_committing = job.node, True
    if job.aborts:
        yield from _all_but_the_end(algorithm.commit(client.xid))
        yield Pause()
        database.rolled_back(client)
    else:
        yield from algorithm.commit(client.xid)


def _all_but_the_end(commit: Steps) -> Steps:
    """Everything that a commit does before it is one."""
    request = next(commit)
    while not isinstance(request, EndTransaction):
        answer = yield request
        request = commit.send(answer)


@dataclass(frozen=True)
class DeferredTrace:
    """What a checker is shown, the jobs, and the view's groups after each step."""

    world: Accounts
    history: DeferredHistory
    states: Sequence[Groups | None]


def deferred(way: Way, seed: int) -> DeferredTrace:
    """The run that the seed decides."""
    random = Random(seed)
    world = accounts(random, way.sources)
    run = DeferredRun(way, world, random)
    run.finish()
    history = DeferredHistory(run.database.transactions(), run.database.steps, way.order)
    return DeferredTrace(world, history, run.database.states)


class DeferredRun:
    """One world, one way, one schedule."""

    def __init__(self, way: Way, world: Accounts, random: Random) -> None:
        self.database = DeferredDatabase(world.views, (0, world.skew if way.two_clocks else 0))
        self._way = way
        self._algorithm = way.make(self.database, random)
        self._random = random
        self._todo = list(reversed(world.jobs))
        self._running: list[Process] = []
        self._applying: dict[str, tuple[Process, int]] = {}
        self._chores: list[Process] = []

    def finish(self) -> None:
        """To the end."""
        while self._todo or self._running:
            self._passes()
            self._happens()
        self._settle()
        self.database.now += _BEYOND
        last = self._now - 1
        assert last >= max(self.database.commit_times.values(), default=0)
        for view in VIEWS:
            self._apply(view, last)
        self._settle()

    @property
    def _now(self) -> int:
        """Times before this one may be targets."""
        algorithm = self._algorithm
        return algorithm.now if isinstance(algorithm, CommitNumbers) else self.database.now

    def _passes(self) -> None:
        self.database.now += self._random.choice((0, 1, 1, 2))
        if self._way.set_back and self._random.random() < _SET_BACK:
            self.database.skews[0] -= self._random.randint(1, _SET_BACK_BY)

    def _happens(self) -> None:
        begins = _BEGINS if self._todo and len(self._running) < _TOGETHER else 0.0
        point = self._random.random() * (begins + _APPLIES + _CHORES + _GOES_ON)
        if point < begins:
            self._begin()
        elif point < begins + _APPLIES:
            self._refresh()
        elif point < begins + _APPLIES + _CHORES:
            self._chore()
        else:
            self._go_on()

    @property
    def _processes(self) -> list[Process]:
        applying = [process for process, _ in self._applying.values()]
        return [*self._running, *applying, *self._chores]

    def _begin(self) -> None:
        job = self._todo.pop()
        client = Client(job.id, source=job.source, begin=self.database.now)
        self._running.append(
            Process(client, transaction(job, client, self._algorithm, self.database))
        )

    def _refresh(self) -> None:
        idle = [view for view in VIEWS if view not in self._applying]
        if not idle:
            return
        view = self._random.choice(idle)
        targets = list(self._targets(view))
        if targets:
            self._apply(view, self._random.choice(targets))

    def _targets(self, view: str) -> Iterator[int]:
        """One that another view has or will have, the newest, or any."""
        first, last = self.database.refreshed[view] + 1, self._now - 1
        others = {*self.database.refreshed.values(), *(t for _, t in self._applying.values())}
        shared = sorted(t for t in others if first <= t <= last)
        if shared and self._random.random() < _SAME_TARGET:
            yield from shared
        elif first <= last:
            newest = self._random.random() < _NEWEST_TARGET
            yield last if newest else self._random.randint(first, last)

    def _apply(self, view: str, target: int) -> None:
        steps = self._algorithm.apply(view, self.database.refreshed[view], target)
        self._applying[view] = Process(Client(), steps), target
        self._sweep()

    def _chore(self) -> None:
        """A round of one of the way's own, where it has any."""
        offered = self._offered()
        if offered:
            self._chores.append(Process(Client(), self._random.choice(offered)))
            self._sweep()

    def _offered(self) -> list[Steps]:
        if isinstance(self._algorithm, CommitNumbers):
            return self._algorithm.chores()
        if isinstance(self._algorithm, Algorithm2):
            return [self._algorithm.purge(list(self.database.refreshed.values()))]
        return []

    def _go_on(self) -> None:
        processes = self._processes
        self._random.shuffle(processes)
        moved = next((p for p in processes if p.goes_on(self.database)), None)
        if moved is not None:
            if moved.is_done:
                self._sweep()
        elif self._running:
            victim = self._random.choice(self._running)
            self.database.rolled_back(victim.client)
            self._running.remove(victim)

    @property
    def _is_idle(self) -> bool:
        """Whether no chore has anything to do."""
        return not isinstance(self._algorithm, CommitNumbers) or self._algorithm.is_idle

    def _sweep(self) -> None:
        """Leave out what is done."""
        self._running = [p for p in self._running if not p.is_done]
        self._chores = [p for p in self._chores if not p.is_done]
        self._applying = {v: a for v, a in self._applying.items() if not a[0].is_done}

    def _settle(self) -> None:
        """Let everything end, with new chores as long as there is something to do for them."""
        while self._processes or not self._is_idle:
            if not self._is_idle:
                self._chore()
            if self._processes:
                self._go_on()
            self._passes()


