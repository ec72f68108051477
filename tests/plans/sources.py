"""Sources that answer from any moment: what each answer reflects is drawn anew."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from steadyview.plans.versions import Logged, Reply
from steadyview.simulation.window import KeySets as Values
from tests.plans.histories import WIDTH, History, Row

__all__ = ["COLUMNS", "Sources", "Values", "has", "table"]

COLUMNS = tuple(f"c{i}" for i in range(WIDTH))


class Sources:
    """Answers questions about a history, each answer from another moment."""

    def __init__(self, dice: random.Random, past: History, after: int) -> None:
        self.past = past
        self.replies: dict[int, list[Reply]] = {}
        self._dice = dice
        self._after = after

    def log(self, relation: int) -> Logged:
        changes = [c for c in self.past.changes[relation] if c.cn > 0]
        return Logged(
            table([c.row for c in changes], [c.count for c in changes], [c.cn for c in changes])
        )

    def logged(self, relation: int, upto: int) -> list[Row]:
        return [c.row for c in self.past.changes[relation] if self._after < c.cn <= upto]

    def answer(self, relation: int, column: int | None, keys: frozenset[Any] | None) -> list[Row]:
        reflected = {cn: self._dice.random() < 0.5 for cn in range(1, self.past.last + 1)}
        shown = self.past.shown(relation, reflected)
        while min(shown.values(), default=0) < 0:  # a source never shows such a state
            missing = [cn for cn, seen in reflected.items() if not seen]
            reflected[self._dice.choice(missing)] = True
            shown = self.past.shown(relation, reflected)
        rows = list(shown.elements())
        rows = [r for r in rows if has(r, column, keys)]
        cns = self.log(relation).rows.column("_cn").to_pylist()
        shows = np.array([reflected[cn] for cn in cns], dtype=bool)
        name = None if column is None else f"c{column}"
        values = None if keys is None else pa.array(sorted(keys), pa.int64())
        self.replies.setdefault(relation, []).append(Reply(table(rows), shows, name, values))
        return rows + [c.row for c in self.past.changes[relation] if has(c.row, column, keys)]


def has(row: Row, column: int | None, keys: frozenset[Any] | None) -> bool:
    return column is None or keys is None or row[column] in keys


def table(
    rows: Sequence[Row],
    counts: Sequence[int] | None = None,
    cns: Sequence[int] | None = None,
    width: int = WIDTH,
) -> pa.Table:
    columns = {f"c{i}": pa.array([r[i] for r in rows], pa.int64()) for i in range(width)}
    if counts is not None and cns is not None:
        columns["_count"] = pa.array(counts, pa.int64())
        columns["_cn"] = pa.array(cns, pa.int64())
    return pa.table(columns)
