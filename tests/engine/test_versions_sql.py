"""Versions of many rows, made by Spark, are those that Arrow makes of few."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from steadyview.engine import window_input
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


def test_a_narrowed_input_has_all_that_the_node_asked_for_and_nothing_that_others_did(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(window_input, "LOCAL_ROWS", -1)
    narrower = 0
    for seed in range(SEEDS * 8):
        dice = random.Random(seed)
        past, frames = history(dice), Frames(session)
        after = dice.randint(0, past.last - 1)
        upto = dice.randint(after + 1, past.last)
        read = made(frames, tmp_path, past, dice)
        asked: list[tuple[int | None, pa.Array | None]] = []
        for own in (True, False, True, False):
            column = dice.randrange(2)
            keys = pa.array(dice.sample((0, 1, 2), 1), pa.int64())
            read.ask(column, keys)
            if own and dice.random() < 0.7:
                asked.append((column, keys))
        if dice.random() < 0.3:
            read.ask(None, None)
        narrow = read.narrowed(asked)
        narrower += narrow.answered_rows() < read.answered_rows()
        wanted = [(c, frozenset(k.to_pylist())) for c, k in asked if k is not None]
        states = []
        for each in (read, narrow):
            rows = each.table((0, 1), after, upto).to_pylist()
            mine = [r for r in rows if any(has((r["c0"], r["c1"]), c, k) for c, k in wanted)]
            states.append(at_every_cn(mine, after, upto))
        assert states[0] == states[1], seed
        others = {a.column for a in narrow._answers} - {c for c, _ in asked}
        assert not others, seed
    assert narrower > SEEDS
