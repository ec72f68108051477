"""Versions of many rows, made by Spark, are those that Arrow makes of few."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from steadyview.engine.frames import Frames
from steadyview.engine.window_input import REFLECTED, Rows, WindowInput
from tests.conftest import SOAK
from tests.plans.histories import History, history
from tests.plans.sources import Sources, has, table

SEEDS = 300 if SOAK else 25


def made(frames: Frames, folder: Path, past: History, dice: random.Random) -> WindowInput:
    """Relation 0, whose answers all show one and the same set of transactions."""
    sources = Sources(dice, past, 0)
    sources.answer(0, None, None)
    (reply,) = sources.replies[0]
    log = sources.log(0).rows.append_column(REFLECTED, pa.array(reply.reflects))
    shown = [tuple(r.values()) for r in reply.rows.to_pylist()]

    def fetch(column: int | None, keys: pa.Array | None) -> Rows:
        wanted = None if keys is None else frozenset(keys.to_pylist())
        return Rows.of(table([row for row in shown if has(row, column, wanted)]))

    return WindowInput(frames, folder, {0: "BIGINT", 1: "BIGINT"}, Rows.of(log), fetch)


def at_every_cn(rows: list[dict[str, Any]], after: int, upto: int) -> list[Counter[Any]]:
    """The rows that hold, cn by cn; none less than once."""
    found = []
    for cn in (0, *range(after + 1, upto + 1)):
        holds = [r for r in rows if r["_from"] <= cn < r["_to"]]
        assert all(r["_n"] > 0 for r in holds)
        state: Counter[Any] = Counter()
        for r in holds:
            state[tuple(v for k, v in r.items() if k.startswith("c"))] += r["_n"]
        found.append(state)
    return found


@pytest.mark.parametrize("compensated", [True, False])
def test_spark_makes_the_versions_that_arrow_makes(
    session: SparkSession, tmp_path: Path, compensated: bool
) -> None:
    for seed in range(SEEDS if compensated else 5):
        dice = random.Random(seed)
        past, frames = history(dice), Frames(session)
        after = dice.randint(0, past.last - 1)
        upto = dice.randint(after + 1, past.last)
        read = made(frames, tmp_path / str(seed), past, dice)
        for _ in range(dice.randrange(3)):
            read.ask(dice.randrange(2), pa.array(dice.sample((0, 1, 2), 2), pa.int64()))
        if dice.random() < 0.3:
            read.ask(None, None)
        columns = dice.choice(((0,), (1,), (0, 1)))
        ways = [
            make(columns, after, upto, compensated=compensated)
            for make in (read._by_arrow, read._by_spark)
        ]
        arrow, by_spark = (frames.collected(f"SELECT * FROM {n}").to_pylist() for n in ways)
        assert at_every_cn(by_spark, after, upto) == at_every_cn(arrow, after, upto), seed
        frames.drop()
