"""Random worlds around gates: sources with clocks that are off, captured late or not at all.

A world drives `Gates` as captures do: what a source committed is taken in its order, admitted when
no gate keeps it back, and its clock is heard now and then. What comes of it is recorded for an
oracle that knows the commit times and nothing of gates.
"""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass, field

from steadyview.timing.gates import Gates

LIMIT = 40
SPAN = 400


@dataclass(frozen=True)
class Dated:
    """A transaction: the source's n-th, with the commit time that the source gave it."""

    source: str
    number: int
    dated: int
    committed: int
    """By our clock."""


@dataclass
class World:
    """What happened: the order of admission, and which time was bound to which length of it."""

    dice: random.Random
    offsets: dict[str, int]
    commits: dict[str, list[Dated]]
    silent: dict[str, int]
    """From when on, by our clock, a source is not reached, for good until all is drained."""
    wanted: dict[int, frozenset[str]]
    gates: Gates = field(default_factory=lambda: Gates(LIMIT))
    now: int = 0
    order: list[Dated] = field(default_factory=list)
    admitted_at: dict[Dated, int] = field(default_factory=dict)
    taken_at: dict[Dated, int] = field(default_factory=dict)
    bound: dict[int, tuple[int, dict[str, str]]] = field(default_factory=dict)
    bound_at: dict[int, int] = field(default_factory=dict)
    heard: dict[tuple[int, str], int] = field(default_factory=dict)
    opened: dict[int, int] = field(default_factory=dict)
    _taken: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))
    _held: defaultdict[str, list[Dated]] = field(default_factory=lambda: defaultdict(list))

    def run(self) -> None:
        """To the end of time, and until everything is admitted."""
        names = sorted(self.offsets)
        while self.now < SPAN or any(self._left(name) for name in names) or self.gates.all():
            self._open()
            step = self.dice.random()
            if step < 0.4:
                self.now += self.dice.choice((0, 1, 1, 2, 9))
            else:
                self._capture(self.dice.choice(names), draw=step < 0.8)
            self._close()

    def _left(self, name: str) -> bool:
        return bool(self._held[name]) or self._taken[name] < len(self.commits[name])

    def _open(self) -> None:
        """Gates are opened a while before their times, or later if nobody looked before."""
        for time, sources in self.wanted.items():
            if time not in self.opened and self.now >= time - 60 and self.dice.random() < 0.3:
                self.opened[time] = self.now
                self.gates.open(time, sources, self.now)

    def _close(self) -> None:
        while (gate := self.gates.due(self.now)) is not None:
            self.bound[gate.time] = (len(self.order), dict(gate.told))
            self.bound_at[gate.time] = self.now
            self.gates.drop(gate.time)

    def _capture(self, name: str, *, draw: bool) -> None:
        """One round of the source's capture: something is taken, admitted or not, and heard."""
        reached = self.now < self.silent.get(name, self.now + 1) or self.now >= 2 * SPAN
        if reached and draw and not self._held[name]:
            done = self._taken[name]
            ready = [c for c in self.commits[name][done:] if c.committed <= self.now]
            for commit in ready[: self.dice.randrange(1, 4)]:
                self._taken[name] += 1
                self._held[name].append(commit)
                self.taken_at[commit] = self.now
                self.gates.took(name, commit.dated)
                if not self._let_go(name):
                    break
        elif self._held[name]:
            self._let_go(name)
        held = self._held[name]
        if held:
            self._hear(name, held[0].dated - 1)
        elif reached and not any(
            c.committed <= self.now for c in self.commits[name][self._taken[name] :]
        ):
            # a marker, or a look at the file: nothing is under way
            self._hear(name, self.now + self.offsets[name])

    def _hear(self, name: str, upto: int) -> None:
        self.gates.heard(name, upto)
        for time, sources in self.wanted.items():
            if time in self.opened and time not in self.bound and name in sources and upto >= time:
                self.heard.setdefault((time, name), self.now)

    def _let_go(self, name: str) -> bool:
        """Admit what is held of the source as far as gates allow; whether all went."""
        held = self._held[name]
        while held and self.gates.admits(name, held[0].dated, self.now):
            commit = held.pop(0)
            self.order.append(commit)
            self.admitted_at[commit] = self.now
        return not held


def drawn(seed: int) -> World:
    """A world of up to three sources and up to four times."""
    dice = random.Random(seed)
    names = ["a", "b", "c"][: dice.randrange(1, 4)]
    off = dice.choice((0, 0, 5, LIMIT // 2, 3 * LIMIT))
    offsets = {name: dice.randrange(-off, off + 1) for name in names}
    commits = {}
    for name in names:
        times = sorted(dice.randrange(1, SPAN) for _ in range(dice.randrange(0, 12)))
        commits[name] = [
            Dated(name, i, time + offsets[name], time) for i, time in enumerate(times)
        ]
    silent = {name: dice.randrange(SPAN) for name in names if dice.random() < 0.2}
    wanted = {}
    for _ in range(dice.randrange(1, 5)):
        some = frozenset(dice.sample(names, dice.randrange(1, len(names) + 1)))
        near = [c.dated for cs in commits.values() for c in cs] or [SPAN // 2]
        wanted[dice.choice(near) + dice.choice((-1, 0, 0, 1))] = some
    return World(dice, offsets, commits, silent, {t: s for t, s in wanted.items() if t > 0})
