"""Random graphs of nodes, some of which take their windows in one step, over lives that end early.

In every piece other nodes take part, as if sources were away; other ones are needed at every cn;
and a crash may leave nothing of a node's window, its state alone, or all of it unpublished. Nodes
that read others may be built late. What is said of gaps is the product's, in its own table.
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

from steadyview.catalog.gaps import Gaps
from steadyview.catalog.schema import STATEMENTS
from steadyview.errors import ViewStopped
from steadyview.plans.versions import in_one_step, versions
from steadyview.runtime.gaps import Window, Windows, newest_state
from tests.plans.batches import Graph, _Inputs, recomputed
from tests.plans.histories import History, Row, history
from tests.plans.nodes import PlannedNode, graph


class Memory:
    """The catalog's table of gaps alone."""

    def __init__(self) -> None:
        self._connection = sqlite3.connect(":memory:")
        (table,) = (s for s in STATEMENTS if "TABLE gaps" in s)
        self._connection.execute(table)

    def read(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self._connection.execute(sql, values).fetchall()

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        yield self._connection


class Stopped(Exception):
    """A crash and a parent that went on have left a node that cannot be ended."""


class Lives(Graph):
    """Keeps a graph's nodes, piece by piece."""

    def __init__(self, dice: random.Random, nodes: Sequence[PlannedNode], past: History) -> None:
        super().__init__(dice, nodes, past)
        self.gaps = Gaps(Memory())  # type: ignore[arg-type]
        self.start: dict[int, int] = {}
        self.shown: dict[int, int] = {}
        """Where each node stands published; where its rows reach, below."""
        self.stored: dict[int, int] = {}
        self.half: dict[int, tuple[int, dict[Row, list[int]]]] = {}
        self.every: set[int] = set()
        self.taken: list[tuple[int, int, int]] = []
        """Nodes and their windows that were taken in one step, for good."""
        self.always: set[int] = {n.number for n in nodes}
        """The nodes that were needed at every cn all the time, with all that they read."""

    def go(self) -> None:
        """Through the whole history; everybody takes part at its end."""
        for upto in range(1, self._past.last + 1):
            if self._dice.random() < 0.5:
                self.step(upto, [n for n in self._nodes if self._dice.random() < 0.8])
        for _ in range(len(self._nodes) + 2):
            self.step(self._past.last, self._nodes, crash=False)

    def step(self, upto: int, present: Sequence[PlannedNode], *, crash: bool = True) -> None:
        """First states, then a batch, in pieces where a crash has left half of one."""
        self._ask_for_some()
        for node in present:
            if node.number not in self.shown and self._dice.random() < 0.7:
                self._build(node, upto)
        works = [n for n in present if n.number in self.shown]
        self.stored = {i: max(cn, self.stored[i]) for i, cn in self.shown.items()}
        crashing = crash and self._dice.random() < 0.3
        for end in self._cuts(works, upto):
            if self._piece(end, works, crash=crashing and self._dice.random() < 0.5):
                return

    def _cuts(self, works: Sequence[PlannedNode], upto: int) -> list[int]:
        """Where pieces end: anywhere, and where crashes have cut one short."""
        first = min((self.stored[n.number] for n in works), default=upto)
        begun = {self.half[n.number][0] for n in works if n.number in self.half}
        drawn = {self._dice.randint(first, upto) for _ in range(self._dice.choice((0, 0, 1, 2)))}
        return sorted({cn for cn in begun | drawn if first < cn < upto} | {upto})

    def _ask_for_some(self) -> None:
        """Some nodes are needed at every cn, and so is what they read."""
        asking = {n.number for n in self._nodes if self._dice.random() < 0.3}
        for node in reversed(self._nodes):
            if node.number in asking:
                asking |= self._parents(node)
        self.every = asking
        self.always &= asking

    def _parents(self, node: PlannedNode) -> set[int]:
        return {r for r in node.reads.values() if r in self.kept}

    def _build(self, node: PlannedNode, upto: int) -> None:
        """The first state, where all that it reads has one."""
        if not all(p in self.shown for p in self._parents(node)):
            return
        at = min([upto, *(self.shown[p] for p in self._parents(node))])
        if not all(self._has_state(p, at) for p in self._parents(node)):
            return
        self._computed(node, at, at, beginning=True, one_step=False)
        self.start[node.number] = self.shown[node.number] = self.stored[node.number] = at

    def _has_state(self, number: int, cn: int) -> bool:
        inside = self.start[number] <= cn and self.gaps.around(number, cn) is None
        return inside or self.shown[number] == cn

    def _piece(self, upto: int, works: Sequence[PlannedNode], *, crash: bool) -> bool:
        """Whether the life ended in it."""
        behind = [n for n in works if self.stored[n.number] <= upto]
        inside = {n.number for n in works}

        def stands(i: int) -> int:
            return self.stored[i] if i in inside else self.shown[i]

        windows = Windows(self.gaps, [self._window(n, upto) for n in behind], upto, stands)
        last = self._dice.choice(behind).number if crash and behind else None
        for node in behind:
            stand = {p: stands(p) for p in self._parents(node)}
            if not self._taken(node, windows, stand, lost=self._dice.random() < 0.8, last=last):
                return True
            if node.number == last:
                return True
        for node in behind:
            self.shown[node.number] = max(self.shown[node.number], self.stored[node.number])
        return False

    def _taken(
        self,
        node: PlannedNode,
        windows: Windows,
        stand: dict[int, int],
        *,
        lost: bool,
        last: int | None,
    ) -> bool:
        """A node's window; False: a crash has left nothing of it, or its state alone."""
        number, after = node.number, self.stored[node.number]
        try:
            end = windows.end(number, stand)
        except ViewStopped as stopped:
            raise Stopped from stopped
        kept = self.kept[number]
        before = deepcopy((kept.state, kept.changes))
        if end > after:
            one_step = windows.one_step(number)
            self._computed(node, after, end, beginning=False, one_step=one_step)
            self._as_half_written(number, end)
        if number == last and end > after and lost:
            if number not in self.half and self._dice.random() < 0.7:
                self.half[number] = end, deepcopy(kept.state)
            kept.state, kept.changes = before
            return False
        self.stored[number] = max(end, after)
        if windows.one_step(number):
            self.taken.append((number, after, end))
        if number in self.half and self.half[number][0] <= end:
            del self.half[number]
        return True

    def _as_half_written(self, number: int, end: int) -> None:
        """What is computed again is what a crash has left of it."""
        if number in self.half:
            assert self.half[number] == (end, self.kept[number].state)

    def _window(self, node: PlannedNode, upto: int) -> Window:
        number, after = node.number, self.stored[node.number]
        relations = {r for r in node.reads.values() if r not in self.kept}
        touched = any(after < c.cn <= upto for r in relations for c in self._past.changes[r])
        begun = self.half[number][0] if number in self.half else None
        parents = sorted(self._parents(node))
        return Window(number, parents, after, number in self.every, touched, begun)

    def _computed(
        self, node: PlannedNode, after: int, upto: int, *, beginning: bool, one_step: bool
    ) -> None:
        inputs = _Inputs(self._dice, self._past, self.kept, after, upto)
        self._reached = []
        if beginning:
            for relation in sorted(set(node.reads.values())):
                inputs.answer(relation, None, None)
        else:
            self._reached = self._ask(node, inputs, upto)
        for relation in set(node.reads.values()):
            log = inputs.log(relation)
            if one_step:
                log = in_one_step(log, after, upto)
            replies = inputs.replies.get(relation, [])
            made = versions(inputs.columns(relation), log, replies, after, upto)
            self._engine.put_table(f"v{relation}", made)
        self._keep(node, after, beginning=beginning)


def wrong(seed: int, nodes: int, depth: int, seen: dict[str, int]) -> str | None:
    """What is wrong with the lives that the seed makes; None: nothing. `seen` counts."""
    dice = random.Random(seed)
    past = history(dice, transactions=12)
    made = graph(dice, len(past.changes), nodes, depth)
    lives = Lives(dice, made, past)
    try:
        lives.go()
    except Stopped:
        seen["stopped"] = seen.get("stopped", 0) + 1
        return None
    for number, shown in lives.shown.items():
        for cn in range(lives.start[number], shown + 1):
            if lives.gaps.around(number, cn) is not None:
                seen["gaps"] = seen.get("gaps", 0) + 1
                assert number not in lives.always, f"seed {seed}: a gap of {number} at {cn}"
                inside = any(n == number and low < cn < high for n, low, high in lives.taken)
                assert inside, f"seed {seed}: no window of {number} was taken in one step over {cn}"
                continue
            seen["states"] = seen.get("states", 0) + 1
            found, right = lives.kept[number].at(cn), recomputed(made, past, number, cn)
            if found != right:
                sql = next(n.sql for n in made if n.number == number)
                return f"seed {seed}, node {number} at cn {cn}: {found}, not {right}\n{sql}"
        if shown != past.last:
            return f"seed {seed}: node {number} stays at {shown} of {past.last}"
        assert newest_state(lives.gaps, {number: shown}, shown) == shown
    return None
