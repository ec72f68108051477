"""Keys and rows that much is joined at: one batch's statement with flags in the join key, without.

    python -m benchmarks.hot_keys [--smoke]

A hot key has m unchanged rows on both sides of a many-to-many join and two changes on each: without
flags the statement makes m x m pairs, all but 4m of them for nothing. A hot row is updated 1,500
times while 1,500 rows come that join it; there flags have nothing to leave out.

Rows are at hand, as lookups have answered; asks, versions, counts, flags and statement are the
product's. Ways alternate within a run; the medians of each are shown, and which the product takes.
All ways must give the same rows.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from steadyview.engine.block_inputs import BlockInputs
from steadyview.engine.frames import Frames
from steadyview.engine.session import open_session
from steadyview.engine.window_input import REFLECTED, ArrowKeys, Rows, WindowInput
from steadyview.plans.asking import Asking, Reached
from steadyview.plans.dialect import Spark
from steadyview.plans.flags import flags
from steadyview.plans.fold import Fold, Key, Sum
from steadyview.plans.hot_keys import flaggable
from steadyview.plans.inner_join import Equality, InnerJoin
from steadyview.plans.links import links
from steadyview.plans.node import Node
from steadyview.plans.operator import Operator, Rendering
from steadyview.plans.scan import Scan
from steadyview.plans.split_join import SplitJoin


@dataclass(frozen=True)
class Relation:
    """Its rows as a source shows them before the batch, and its changes: row, count, cn."""

    rows: Sequence[tuple[int, ...]]
    changes: Sequence[tuple[tuple[int, ...], int, int]]

    def read(self, frames: Frames, folder: Path) -> WindowInput:
        """As an input whose answers show nothing of the batch."""
        width = len(self.rows[0])
        shown = _table(self.rows, width)
        log = _table([row for row, _, _ in self.changes], width)
        log = log.append_column("_count", pa.array([n for _, n, _ in self.changes], pa.int64()))
        log = log.append_column("_cn", pa.array([cn for _, _, cn in self.changes], pa.int64()))
        log = log.append_column(REFLECTED, pa.array([False] * log.num_rows))

        def fetch(column: int | None, keys: pa.Array | None) -> Rows:
            if column is None or keys is None:
                return Rows.of(shown)
            return Rows.of(shown.filter(pc.is_in(shown[f"c{column}"], keys)))

        types = dict.fromkeys(range(width), "BIGINT")
        return WindowInput(frames, folder, types, Rows.of(log), fetch)


def _table(rows: Sequence[tuple[int, ...]], width: int) -> pa.Table:
    columns = np.array(rows, np.int64).reshape(len(rows), width)
    return pa.table({f"c{i}": pa.array(columns[:, i]) for i in range(width)})


@dataclass(frozen=True)
class Case:
    """A block over relations, one a scan."""

    name: str
    block: Operator
    relations: tuple[Relation, ...]
    key: str = "t0_c0"
    summed: str = "t1_c1"

    @property
    def node(self) -> Node:
        """Rows and a sum per key."""
        fold = Fold(
            (Key("g", self.key),),
            (Sum("s", f"COALESCE({self.summed}, 0)"),),
            (("c0", "g"), ("c1", "_rows"), ("c2", "s")),
            "CASE WHEN _rows > 0 THEN 1 ELSE 0 END",
        )
        return Node(self.block, fold)

    @property
    def upto(self) -> int:
        """The last cn."""
        return max(cn for r in self.relations for _, _, cn in r.changes)


FIRST, SECOND, THIRD = (Scan(n, (0, 1)) for n in range(3))
SAME = (Equality("t0_c0", "t1_c0"),)


def hot_key(m: int, join: Operator, name: str) -> Case:
    """One key with m rows on both sides; on each, one comes and one goes."""
    sides = tuple(
        Relation([(7, i) for i in range(m)], [((7, m + side), 1, 1), ((7, side), -1, 2 + side)])
        for side in (0, 1)
    )
    return Case(f"{name}, {m:,} x {m:,}", join, sides)


def three_relations(m: int) -> Case:
    """A hot key between the first two; a few rows of the second lead on to a third that changes."""
    two = hot_key(m, FIRST, "").relations
    third = Relation([(i, i) for i in range(10)], [((5, 99), 1, 1), ((6, 6), -1, 3)])
    join = InnerJoin(InnerJoin(FIRST, SECOND, SAME), THIRD, (Equality("t1_c1", "t2_c0"),))
    return Case(f"three relations, {m:,} x {m:,}", join, (*two, third))


def hot_row(times: int, *, kept: bool) -> Case:
    """One row is updated again and again while rows come that join it."""
    value = (lambda i: i) if kept else (lambda _: 0)
    updates = [((7, value(i + d), i + d), d or -1, i + 1) for i in range(times) for d in (0, 1)]
    row = Relation([(7, value(0), 0), (8, 0, 0)], updates)
    joining = Relation([(7, -1)], [((7, i), 1, i + 1) for i in range(times)])
    what = "a column of the view" if kept else "no column of the view"
    return Case(
        f"hot row, {times:,} updates of {what}", InnerJoin(FIRST, SECOND, SAME), (row, joining)
    )


class Bench:
    """One case, ready to run in either way."""

    def __init__(self, spark: SparkSession, folder: Path, case: Case) -> None:
        self._case = case
        frames = self._frames = Frames(spark)
        inputs = {i: r.read(frames, folder) for i, r in enumerate(case.relations)}
        self._read = BlockInputs(frames, folder, inputs, self._asked(inputs))
        self._inputs = {i: inputs[i].versions((0, 1), 0, case.upto) for i in inputs}
        started = time.perf_counter()
        self.taken = bool(self._read.flags(case.block, 0, case.upto).hot)
        self.counting = time.perf_counter() - started

    def _asked(self, inputs: dict[int, WindowInput]) -> list[Reached[pa.Array]]:
        logged = {i: [inputs[i].log] for i in inputs}
        asking: Asking[list[Rows], pa.Array] = Asking(links(self._case.block), ArrowKeys(), logged)
        while asks := asking.asks():
            for ask in asks:
                inputs[ask.scan].ask(ask.column, ask.keys)
            for ask in asks:
                asking.answered(ask, inputs[ask.scan].seen(ask.column, ask.keys))
        return asking.reached()

    def plain(self) -> tuple[float, pa.Table]:
        """Seconds, and what came out, without flags."""
        return self._run(lambda: Rendering(Spark(), self._inputs))

    def flagged(self) -> tuple[float, pa.Table]:
        """The same with flags in every join that can have them."""
        block = self._case.block

        def rendering() -> Rendering:
            reached = [self._read.reach(r) for r in self._read.reached]
            made = flags(flaggable(block), block, reached)
            return Rendering(Spark(), self._inputs, flags=made)

        return self._run(rendering)

    def _run(self, rendering: Callable[[], Rendering]) -> tuple[float, pa.Table]:
        started = time.perf_counter()
        found = self._frames.collected(self._case.node.statement(rendering()))
        took = time.perf_counter() - started
        return took, found.sort_by([("g", "ascending"), ("_cn", "ascending")])


def measured(bench: Bench, rounds: int) -> tuple[float, float]:
    """Median seconds without and with flags, after one round to warm up; they must agree."""
    ways: dict[str, Callable[[], tuple[float, pa.Table]]] = {
        "plain": bench.plain,
        "flagged": bench.flagged,
    }
    taken: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(rounds + 1):
        found = {}
        for way, run in ways.items():
            seconds, found[way] = run()
            taken[way].append(seconds)
        assert found["plain"].equals(found["flagged"]), "the ways differ"
    plain, flagged = (statistics.median(seconds[1:]) for seconds in taken.values())
    return plain, flagged


def cases(sizes: Sequence[int], updates: int) -> list[Case]:
    """Hot keys of these sizes under three kinds of block, and hot rows."""
    inner, left = InnerJoin(FIRST, SECOND, SAME), SplitJoin("left", FIRST, SECOND, SAME)
    return [
        *(hot_key(m, inner, "hot key") for m in sizes),
        *(hot_key(m, left, "hot key under LEFT JOIN") for m in sizes),
        *(three_relations(m) for m in sizes),
        hot_row(updates, kept=False),
        hot_row(updates, kept=True),
    ]


def main() -> None:
    """Measure and print, one row a case."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hot_keys")
    parser.add_argument("--smoke", action="store_true", help="small sizes, one round: does it run")
    asked = parser.parse_args()
    sizes, updates, rounds = ((50, 100), 50, 1) if asked.smoke else ((100, 1_000, 3_000), 1_500, 5)
    with tempfile.TemporaryDirectory() as place:
        spark = open_session("hot keys", {}, Path(place), archive=False, lasting=True)
        print("| case | without flags, ms | with flags, ms | counting, ms | the product takes |")
        print("|---|---|---|---|---|")
        for number, case in enumerate(cases(sizes, updates)):
            bench = Bench(spark, Path(place) / str(number), case)
            plain, flagged = (1000 * seconds for seconds in measured(bench, rounds))
            taken = "flags" if bench.taken else "none"
            counting = 1000 * bench.counting
            print(
                f"| {case.name} | {plain:.0f} | {flagged:.0f} | {counting:.1f} | {taken} |",
                flush=True,
            )
        spark.stop()


if __name__ == "__main__":
    main()
