"""A graph of nodes kept over a history, batch by batch, and judged at every cn."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from steadyview.plans.asking import Asking, Reached
from steadyview.plans.ends import Ends, ends
from steadyview.plans.links import links
from steadyview.plans.moves import BEGINNING
from steadyview.plans.operator import Operator, Rendering
from steadyview.plans.versions import Logged, Reply, versions
from tests.plans.histories import WIDTH, History, Row, history
from tests.plans.nodes import FOLDS, PlannedNode, graph
from tests.plans.sources import COLUMNS, Sources, Values, has, table
from tests.plans.sqlite_engine import Engine, SqliteDialect

Change = dict[int, Counter[Row]]


class Kept:
    """What is kept of a node: its state, its rows' changes by cn (that of the first state too)."""

    def __init__(self, width: int = WIDTH) -> None:
        self.width = width
        self.state: dict[Row, list[int]] = {}
        self.changes: Change = defaultdict(Counter)

    def at(self, cn: int) -> Counter[Row]:
        found: Counter[Row] = Counter()
        for k, change in self.changes.items():
            if k <= cn:
                for row, n in change.items():
                    found[row] += n
        assert min(found.values(), default=0) >= 0
        return +found


class Graph:
    """Keeps all nodes; `run` goes through the history in batches."""

    def __init__(self, dice: random.Random, nodes: Sequence[PlannedNode], past: History) -> None:
        self._dice = dice
        self._nodes = nodes
        self._past = past
        self._engine = Engine()
        self._reached: list[Reached[frozenset[Any]]] = []
        self.kept = {n.number: Kept(len(n.node.shown)) for n in nodes}

    def run(self, cuts: Sequence[int]) -> None:
        """First states at cuts[0], then a batch up to each further cut."""
        self._batch(cuts[0], cuts[0], beginning=True)
        for after, upto in zip(cuts, cuts[1:], strict=False):
            self._batch(after, upto, beginning=False)

    def _batch(self, after: int, upto: int, *, beginning: bool) -> None:
        for node in self._nodes:
            read = {node.reads[scan]: found for scan, found in ends(node.node.block).items()}
            inputs = _Inputs(self._dice, self._past, self.kept, after, upto, read)
            self._reached = []
            if beginning:
                for relation in sorted(set(node.reads.values())):
                    inputs.answer(relation, None, None)
            else:
                self._reached = self._ask(node, inputs, upto)
            for relation in set(node.reads.values()):
                columns = inputs.columns(relation)
                made = versions(
                    columns, inputs.log(relation), inputs.replies.get(relation, []), after, upto
                )
                self._engine.put_table(f"v{relation}", made)
            self._keep(node, after, beginning=beginning)

    def _ask(self, node: PlannedNode, inputs: _Inputs, upto: int) -> list[Reached[frozenset[Any]]]:
        logged = {s: rows for s, r in node.reads.items() if (rows := inputs.logged(r, upto))}
        asking: Asking[list[Row], frozenset[Any]] = Asking(links(node.node.block), Values(), logged)
        while asks := asking.asks():
            for ask, rows in [
                (a, inputs.answer(node.reads[a.scan], a.column, a.keys)) for a in asks
            ]:
                asking.answered(ask, rows)
        return asking.reached()

    def _rendering(
        self, block: Operator, names: Mapping[int, str], *, beginning: bool
    ) -> Rendering:
        return Rendering(SqliteDialect(), names)

    def _keep(self, node: PlannedNode, after: int, *, beginning: bool) -> None:
        kept, fold = self.kept[node.number], node.node.fold
        names = {scan: f"v{relation}" for scan, relation in node.reads.items()}

        def run(state: Mapping[Row, list[int]] | None) -> list[tuple[Any, ...]]:
            rendering = self._rendering(node.node.block, names, beginning=beginning)
            if fold is None:
                return self._engine.rows(node.node.statement(rendering, beginning=beginning))
            if state is not None:
                rows = [(*key, *sums) for key, sums in state.items()]
                self._engine.put("state", fold.state_names, rows)
            given = None if state is None else "state"
            return self._engine.rows(node.node.statement(rendering, given, beginning=beginning))

        if fold is None:
            for *row, cn, count in run(None):
                kept.changes[cn or after][tuple(row)] += count
            return
        rows = run(None if beginning else kept.state)
        if not beginning:
            width = len(fold.keys)
            touched = {row[:width] for row in rows}
            again = run({k: s for k, s in kept.state.items() if k in touched})
            assert sorted(rows, key=str) == sorted(again, key=str)
        self._apply(kept, rows, len(fold.keys), len(fold.all_sums), after, beginning=beginning)

    def _apply(
        self,
        kept: Kept,
        rows: list[tuple[Any, ...]],
        keys: int,
        sums: int,
        after: int,
        *,
        beginning: bool,
    ) -> None:
        for row in rows:
            key, cn, steps = row[:keys], row[keys], row[keys + 1 : keys + 1 + sums]
            assert (cn == BEGINNING) == beginning
            state = kept.state.setdefault(key, [0] * sums)
            kept.state[key] = [a + b for a, b in zip(state, steps, strict=True)]
            shown = row[keys + 1 + sums : -2]
            assert not row[-1]
            half = len(shown) // 2
            if not beginning:
                kept.changes[cn][shown[1:half]] -= shown[0]
            kept.changes[cn or after][shown[half + 1 :]] += shown[half]
        kept.state = {k: s for k, s in kept.state.items() if not keys or any(s)}


class _Inputs(Sources):
    """Relations answer from any moment; a node answers from any cn, or from the batch's start.

    Of nodes among `ends` the ends are answered, as the product has them.
    """

    def __init__(
        self,
        dice: random.Random,
        past: History,
        kept: Mapping[int, Kept],
        after: int,
        upto: int,
        ends: Mapping[int, Ends] | None = None,
    ) -> None:
        super().__init__(dice, past, after)
        self._ends = ends or {}
        self._kept = kept
        self._upto = upto

    def columns(self, relation: int) -> tuple[str, ...]:
        if relation not in self._kept:
            return COLUMNS
        return tuple(f"c{i}" for i in range(self._kept[relation].width))

    def log(self, relation: int) -> Logged:
        if relation not in self._kept:
            return super().log(relation)
        rows = [
            (r, n, cn) for cn, c in self._kept[relation].changes.items() for r, n in c.items() if n
        ]
        width = self._kept[relation].width
        return Logged(
            table(
                [r for r, _, _ in rows], [n for _, n, _ in rows], [cn for _, _, cn in rows], width
            )
        )

    def logged(self, relation: int, upto: int) -> list[Row]:
        if relation not in self._kept:
            return super().logged(relation, upto)
        changes = self._kept[relation].changes
        return [
            r for cn, c in changes.items() if self._after < cn <= upto for r, n in c.items() if n
        ]

    def answer(self, relation: int, column: int | None, keys: frozenset[Any] | None) -> list[Row]:
        if relation not in self._kept:
            return super().answer(relation, column, keys)
        first = min(self._kept[relation].changes, default=self._after)
        at = self._dice.choice(
            (self._after, self._dice.randint(min(first, self._after), self._upto))
        )
        wanted = [r for r in self._kept[relation].at(at).elements() if has(r, column, keys)]
        log = self.log(relation).rows
        cns = log.column("_cn").to_numpy()
        name = None if column is None else f"c{column}"
        values = None if keys is None else pa.array(sorted(keys), pa.int64())
        reply = Reply(table(wanted, width=self._kept[relation].width), cns <= at, name, values)
        if relation in self._ends:
            reply = self._at_ends(self._ends[relation], reply, log, at)
        self.replies.setdefault(relation, []).append(reply)
        every = [r for c in self._kept[relation].changes.values() for r in c]
        shown = list(zip(*(c.to_pylist() for c in reply.rows.columns), strict=True))
        return shown + [r for r in every if has(r, column, keys)]

    def _at_ends(self, ends: Ends, reply: Reply, log: pa.Table, at: int) -> Reply:
        """The reply's ends at the batch's start."""
        window, cns = (self._after, self._upto), log.column("_cn").to_numpy()
        around = (cns > min(at, window[0])) & (cns <= max(at, window[1]))
        near = replace(reply, reflects=reply.reflects[around])
        rows = ends.at(window, near, Logged(log.filter(pa.array(around))))
        return replace(reply, rows=rows, reflects=cns <= window[0])


def recomputed(nodes: Sequence[PlannedNode], past: History, number: int, cn: int) -> Counter[Row]:
    """The node's rows at cn, from the relations' rows at cn."""
    engine = Engine()
    for relation in past.changes:
        engine.put(f"r{relation}", COLUMNS, list(past.at(relation, cn).elements()))
    for node in nodes:
        rows = engine.rows(node.sql)
        if node.number == number:
            return Counter(rows)
        engine.put(f"r{node.number}", COLUMNS, rows)
    raise AssertionError(number)


def wrong(
    seed: int,
    nodes: int,
    depth: int,
    folds: Sequence[str] = FOLDS,
    keeping: type[Graph] = Graph,
) -> str | None:
    """What is wrong with the graph and history that the seed makes; None if nothing is."""
    dice = random.Random(seed)
    past = history(dice)
    made = graph(dice, len(past.changes), dice.randint(1, nodes), depth, folds)
    cuts = sorted({dice.randint(0, past.last) for _ in range(3)} | {past.last})
    kept = keeping(dice, made, past)
    kept.run(cuts)
    for node in made:
        for cn in range(cuts[0], past.last + 1):
            found, right = kept.kept[node.number].at(cn), recomputed(made, past, node.number, cn)
            if found != right:
                place = f"seed {seed}, node {node.number} at cn {cn}"
                return f"{place}: {found} instead of {right}\n{node.sql}"
    return None
