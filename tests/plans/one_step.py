"""Random graphs of nodes that take windows in one step or are compressed; lives end early.

In every piece other nodes take part, as if sources were away; other ones are needed at every cn;
and a crash may leave nothing of a node's window, its state alone, or all of it unpublished. Nodes
that read others may be built late. Changes of nodes may be compressed, and the files follow later,
or in another life. What is said of gaps and ranges is the product's, in its own table.
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

import numpy as np

from steadyview.catalog.gaps import Gap, Gaps
from steadyview.catalog.schema import STATEMENTS
from steadyview.errors import ViewStopped
from steadyview.plans.versions import Step, in_steps, versions
from steadyview.runtime.gaps import Window, Windows, newest_state, steps_upto
from steadyview.warehouse.ranges import to_compress
from tests.plans.batches import Graph, _Inputs, recomputed
from tests.plans.histories import History, Row, history
from tests.plans.nodes import PlannedNode, graph


class Memory:
    """The catalog's tables of gaps, and of readers, alone."""

    def __init__(self) -> None:
        self._connection = sqlite3.connect(":memory:")
        for name in ("gaps", "subscriptions", "streams"):
            (table,) = (s for s in STATEMENTS if f"TABLE {name} " in s)
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

    def __init__(
        self,
        dice: random.Random,
        nodes: Sequence[PlannedNode],
        past: History,
        compressing: float = 0.0,
    ) -> None:
        """`compressing`: how probable it is that changes of a node are compressed before a step."""
        super().__init__(dice, nodes, past)
        self._compressing = compressing
        usual = (0.8,) if not compressing else (0.2, 0.9)
        self._present = {n.number: dice.choice(usual) for n in nodes}
        """How probable it is that a node takes part, once it is built."""
        self.compressed: list[tuple[int, int, int]] = []
        """Nodes and ranges of theirs."""
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
                self.step(upto, [n for n in self._nodes if self._is_there(n.number)])
        for _ in range(len(self._nodes) + 2):
            self.step(self._past.last, self._nodes, crash=False)

    def _is_there(self, number: int) -> bool:
        """What is compressed is to have others behind it: these are built, and then stay away."""
        return self._dice.random() < (self._present[number] if number in self.shown else 0.8)

    def step(self, upto: int, present: Sequence[PlannedNode], *, crash: bool = True) -> None:
        """First states, then a batch, in pieces where a crash has left half of one."""
        self._ask_for_some()
        self._compress_some()
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

    def _compress_some(self) -> None:
        """Ranges of some nodes' changes; a crash may leave some as they were, for a later life."""
        for number in sorted(self.shown):
            if self._dice.random() < self._compressing:
                shown = self.shown[number]
                until = self._dice.choice((shown, self._dice.randint(0, shown)))
                found = self._ranges(number, until)
                self.compressed += [(gap.view, gap.low, gap.high) for gap in found]
                self.gaps.compress(found)
            if self._dice.random() < 0.7:
                self._replace(number)

    def _ranges(self, number: int, until: int) -> list[Gap]:
        """Cut at all that reads the node, and perhaps somewhere else."""
        drawn = self._dice.sample(range(until + 1), self._dice.choice((0, 0, 0, min(until, 2))))
        cuts = {*drawn}
        halves = {i: cn for i, (cn, _) in self.half.items()}
        readers = [n.number for n in self._nodes if number in self._parents(n)]
        for kept in (self.shown, self.stored, halves):
            cuts |= {kept[i] for i in readers if i in kept}
        found = sorted(cn for cn, rows in self.kept[number].changes.items() if any(rows.values()))
        changed = np.array([cn for cn in found if cn > self.start[number]], dtype=np.int64)
        return to_compress(number, changed, self.gaps.of([number]), until, cuts)

    def below(self, number: int) -> set[int]:
        """The node, and all that it is made of."""
        node = next(n for n in self._nodes if n.number == number)
        return {number}.union(*(self.below(p) for p in self._parents(node)))

    def _replace(self, number: int) -> None:
        """The node's changes are those of its ranges, as its files are in the end."""
        changes = self.kept[number].changes
        for gap in (gap for gap in self.gaps.of([number]) if gap.pending):
            for cn in [cn for cn in changes if gap.low < cn < gap.high]:
                for row, count in changes.pop(cn).items():
                    changes[gap.high][row] += count
            self.gaps.compressed(number, gap.high)

    def _parents(self, node: PlannedNode) -> set[int]:
        return {r for r in node.reads.values() if r in self.kept}

    def _build(self, node: PlannedNode, upto: int) -> None:
        """The first state, where all that it reads has one."""
        if not all(p in self.shown for p in self._parents(node)):
            return
        at = min([upto, *(self.shown[p] for p in self._parents(node))])
        if not all(self._has_state(p, at) for p in self._parents(node)):
            return
        self._computed(node, at, at, beginning=True, steps=())
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
            steps = steps_upto(windows.steps(number), end)
            self._computed(node, after, end, beginning=False, steps=steps)
            self._as_half_written(number, end)
        if number == last and end > after and lost:
            if number not in self.half and self._dice.random() < 0.7:
                self.half[number] = end, deepcopy(kept.state)
            kept.state, kept.changes = before
            return False
        self.stored[number] = max(end, after)
        self.taken += [(number, *step) for step in steps_upto(windows.steps(number), end)]
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
        self, node: PlannedNode, after: int, upto: int, *, beginning: bool, steps: Sequence[Step]
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
            log = in_steps(log, steps)
            replies = inputs.replies.get(relation, [])
            made = versions(inputs.columns(relation), log, replies, after, upto)
            self._engine.put_table(f"v{relation}", made)
        self._keep(node, after, beginning=beginning)


def wrong(
    seed: int, nodes: int, depth: int, seen: dict[str, int], compressing: float = 0.0
) -> str | None:
    """What is wrong with the lives that the seed makes; None: nothing. `seen` counts."""
    dice = random.Random(seed)
    past = history(dice, transactions=24 if compressing else 12)
    made = graph(dice, len(past.changes), nodes, depth)
    lives = Lives(dice, made, past, compressing)
    try:
        lives.go()
    except Stopped:
        seen["stopped"] = seen.get("stopped", 0) + 1
        return None
    for number, shown in lives.shown.items():
        for cn in range(lives.start[number], shown + 1):
            if lives.gaps.around(number, cn) is not None:
                seen["gaps"] = seen.get("gaps", 0) + 1
                ranges = _inside(lives.compressed, lives.below(number), cn)
                seen["compressed"] = seen.get("compressed", 0) + ranges
                if number in lives.always:
                    assert ranges, f"seed {seed}: a gap of {number} at {cn}"
                steps = [*lives.taken, *lives.compressed]
                inside = _inside(steps, {number}, cn)
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


def _inside(steps: Sequence[tuple[int, int, int]], numbers: set[int], cn: int) -> bool:
    """Whether the cn lies inside a step of one of these nodes."""
    return any(n in numbers and low < cn < high for n, low, high in steps)
