"""Nodes over one join, kept by one statement: right at every cn, whatever else shares it.

Some of them read others that only project the join.
"""

from __future__ import annotations

import os
import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from steadyview.changes import RelationName
from steadyview.plans.inlined import inlined
from steadyview.plans.moves import CN
from steadyview.plans.node import Node
from steadyview.plans.operator import walk
from steadyview.plans.plan import FromNode, FromRelation, PlanNode
from steadyview.plans.renaming import renamed
from steadyview.plans.scan import Scan, column
from steadyview.plans.shared_join import MEMBER, SharedJoin, shared_joins, with_used
from steadyview.plans.versions import versions
from tests.plans.batches import Graph, _Inputs, recomputed
from tests.plans.flagged import FlaggedGraph
from tests.plans.histories import Row, history
from tests.plans.nodes import PlannedNode, over
from tests.plans.trees import Growing, Tree

HISTORIES = int(os.environ.get("STEADYVIEW_HISTORIES", "120")) // 2
FOLDS = ("none", "aggregate", "global", "distinct")
TYPES = ("BIGINT", "DECIMAL(38,0)")
"""SQLite does not look at them: they only say which columns may share a slot."""


def plan(node: PlannedNode, dice: random.Random) -> PlanNode:
    inputs = tuple(FromRelation(RelationName("s", (f"r{r}",)), ()) for r in node.reads.values())
    columns = tuple((name, dice.choice(TYPES)) for name in node.node.shown)
    return PlanNode(node.node, inputs, columns)


def pruned(node: Node) -> Node:
    """The node with only those columns read that it names."""
    named = repr(node)
    scans = [o for o in walk(node.block) if isinstance(o, Scan)]
    used = {s.number: tuple(i for i in s.used if column(s.number, i) in named) for s in scans}
    return replace(node, block=with_used(node.block, used))


class SharedGraph(Graph):
    """A batch of all nodes is one statement; the first states are made one by one."""

    def __init__(self, dice: random.Random, nodes: list[PlannedNode], past: Any) -> None:
        super().__init__(dice, nodes, past)
        self.shared = SharedJoin(tuple(plan(n, dice) for n in nodes))

    def _batch(self, after: int, upto: int, *, beginning: bool) -> None:
        if beginning:
            super()._batch(after, upto, beginning=True)
            return
        inputs = _Inputs(self._dice, self._past, {}, after, upto)
        for node in self._nodes:
            self._reached = self._ask(node, inputs, upto)
        reads = self._nodes[0].reads
        for relation in set(reads.values()):
            log, replies = inputs.log(relation), inputs.replies.get(relation, [])
            made = versions(inputs.columns(relation), log, replies, after, upto)
            self._engine.put_table(f"v{relation}", made)
        self._together({scan: f"v{relation}" for scan, relation in reads.items()}, after)

    def _together(self, names: Mapping[int, str], after: int) -> None:
        shared = self.shared
        columns = [name for name, _ in shared.state_columns]
        self._engine.put("state", columns, [self._wide(i, row) for i, row in self._states()])
        rendering = self._rendering(shared.block, names, beginning=False)
        sql = shared.statement(rendering, "state")
        given = self._engine.columns(sql)
        found = [dict(zip(given, row, strict=True)) for row in self._engine.rows(sql)]
        for i, (node, member) in enumerate(zip(self._nodes, shared.members, strict=True)):
            own = shared.columns_of(i)
            rows = [tuple(r[slot] for slot in own) for r in found if r[MEMBER] == i]
            kept, fold = self.kept[node.number], member.fold
            if fold is not None:
                keys, sums = len(fold.keys), len(fold.all_sums)
                self._apply(kept, rows, keys, sums, after, beginning=False)
                continue
            assert list(own.values())[-2:] == [CN, "_count"]
            for *row, cn, count in rows:
                kept.changes[cn][tuple(row)] += count

    def _states(self) -> list[tuple[int, dict[str, Any]]]:
        found = []
        for i, node in enumerate(self._nodes):
            slots = [*self.shared.keys.of(i), *self.shared.sums.of(i)]
            for key, sums in self.kept[node.number].state.items():
                found.append((i, dict(zip(slots, (*key, *sums), strict=True))))
        return found

    def _wide(self, member: int, values: Mapping[str, Any]) -> Row:
        own = {MEMBER: member, **values}
        return tuple(own.get(name) for name, _ in self.shared.state_columns)


class FlaggedSharedGraph(FlaggedGraph, SharedGraph):
    """The same, with flags."""


def reader(dice: random.Random, read: PlannedNode, number: int) -> PlannedNode:
    """A node over the rows of another, as one over the join below both."""
    rows = f"SELECT c0 AS {column(0, 0)}, c1 AS {column(0, 1)} FROM ({read.sql})"
    node, sql = over(dice, dice.choice(FOLDS), Tree(Scan(0, (0, 1)), rows))
    over_it = PlanNode(node, (FromNode("v", "", ()),), tuple((n, "BIGINT") for n in node.shown))
    found = inlined(over_it, plan(read, dice))
    assert found is not None
    return PlannedNode(number, found.node, sql, read.reads)


def wrong(seed: int, keeping: type[SharedGraph] = SharedGraph) -> str | None:
    dice = random.Random(seed)
    past = history(dice)
    relations = len(past.changes)
    growing = Growing(dice, list(range(relations)))
    tree = growing.tree(dice.randint(0, 3))
    made = []
    for i in range(dice.randint(2, 5)):
        node, sql = over(dice, dice.choice(FOLDS), tree)
        made.append(PlannedNode(relations + i, pruned(node), sql, dict(growing.reads)))
    for read in [n for n in made if n.node.fold is None]:
        made.append(reader(dice, read, relations + len(made)))
    assert [*shared_joins([plan(n, dice) for n in made])] == [[*range(len(made))]]
    cuts = sorted({dice.randint(0, past.last) for _ in range(3)} | {past.last})
    kept = keeping(dice, made, past)
    kept.run(cuts)
    for node in made:
        for cn in range(cuts[0], past.last + 1):
            found, right = kept.kept[node.number].at(cn), recomputed([node], past, node.number, cn)
            if found != right:
                return f"seed {seed}, {node.sql} at cn {cn}: {found} instead of {right}"
    return None


def test_nodes_over_one_join_are_right_at_every_cn() -> None:
    for seed in range(HISTORIES):
        assert wrong(seed) is None


def test_flags_in_the_shared_join_leave_out_nothing_that_counts() -> None:
    for seed in range(HISTORIES):
        assert wrong(seed, FlaggedSharedGraph) is None


@pytest.mark.parametrize(
    ("sql", "right"),
    [
        ("s0", "x0"),
        ("s0 + s00 + _s0", "x0 + s00 + _s0"),
        ("'s0' || `s0` || a.s0", "'s0' || `s0` || a.s0"),
        (r"'it\'s s0' || s0", r"'it\'s s0' || x0"),
    ],
)
def test_only_names_are_renamed(sql: str, right: str) -> None:
    assert renamed(sql, {"s0": "x0"}) == right
