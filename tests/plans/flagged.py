"""Statements with flags in every join that can have them, or in some, however few the rows."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from steadyview.plans.asking import Reached
from steadyview.plans.flags import Reach, flags
from steadyview.plans.hot_keys import flaggable
from steadyview.plans.operator import Operator, Rendering
from tests.plans.batches import Graph, recomputed
from tests.plans.histories import history
from tests.plans.nodes import PlannedNode, over
from tests.plans.sqlite_engine import SqliteDialect
from tests.plans.trees import Growing


def wrong_chain(seed: int) -> str | None:
    """What is wrong with a block of joins over relations of which little changes."""
    dice = random.Random(seed)
    past = history(dice, 6, 3)
    relations = len(past.changes)
    growing = Growing(dice, list(range(relations)), ("inner", "inner", "left"))
    node, sql = over(dice, "none", growing.tree(dice.choice((2, 2, 3))))
    made = [PlannedNode(relations, node, sql, dict(growing.reads))]
    cuts = sorted({dice.randint(0, past.last), past.last})
    kept = FlaggedGraph(dice, made, past)
    kept.run(cuts)
    for cn in range(cuts[0], past.last + 1):
        found, right = kept.kept[relations].at(cn), recomputed(made, past, relations, cn)
        if found != right:
            return f"seed {seed} at cn {cn}: {found} instead of {right}\n{sql}"
    return None


class FlaggedGraph(Graph):
    """Every join is taken for a hot one; at times, only some are."""

    def _rendering(
        self, block: Operator, names: Mapping[int, str], *, beginning: bool
    ) -> Rendering:
        if beginning:
            return super()._rendering(block, names, beginning=True)
        hot = flaggable(block)
        if self._dice.random() < 0.3:
            hot = [join for join in hot if self._dice.random() < 0.5]
        reached = [self._reach(i, r) for i, r in enumerate(self._reached)]
        return Rendering(SqliteDialect(), names, flags=flags(hot, block, reached))

    def _reach(self, number: int, reached: Reached[frozenset[Any]]) -> Reach:
        if reached.keys is None or reached.side.keys is None:
            return Reach(reached.side.scans, None)
        name = f"reach{number}"
        self._engine.put(name, ("k",), [(k,) for k in reached.keys])
        return Reach(reached.side.scans, tuple((place, name) for place in reached.side.keys))
