"""A state that Arrow sums up is the one that Spark sums up."""

from __future__ import annotations

import random
from collections import Counter
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from steadyview.catalog.views import ViewRow
from steadyview.changes import arrow_type
from steadyview.engine.frames import Frames
from steadyview.warehouse.apply import few_states, state_at
from steadyview.warehouse.view_store import NodeChange, Shape, ViewStore

KEYS = (("k0", "STRING"), ("k1", "DECIMAL(10,2)"))
SUMS = (("x0", "BIGINT"), ("x1", "DECIMAL(38,2)"))
LAST = 6


def kept(root: Path, keys: tuple[tuple[str, str], ...]) -> ViewStore:
    row = ViewRow(
        *(7, "v", "", "complete", "incremental", "", "", "active", None, None, None),
        *(0, 0, 0, 0, 0, 0),
    )
    store = ViewStore(root, row, Shape((("n", "BIGINT"),), keys, SUMS))
    store.create()
    return store


def steps(dice: random.Random, keys: tuple[tuple[str, str], ...], cn: int | None) -> pa.Table:
    """Rows of a state, or its steps at a cn; many cancel."""
    many = dice.randrange(6)
    values = {
        "k0": [dice.choice(("a", "", None)) for _ in range(many)],
        "k1": [dice.choice((Decimal("1.50"), Decimal("0.00"), None)) for _ in range(many)],
        "x0": [dice.choice((-1, 0, 1)) for _ in range(many)],
        "x1": [Decimal(dice.choice((-1, 0, 1))) * Decimal("0.25") for _ in range(many)],
    }
    listed = [(n, arrow_type(t)) for n, t in (*keys, *SUMS)]
    columns = {n: pa.array(values[n], t) for n, t in listed}
    if cn is not None:
        columns["_cn"] = pa.array([cn] * many, pa.int64())
    return pa.table(columns)


def bag(rows: pa.Table) -> Counter[tuple[object, ...]]:
    return Counter(tuple(row.values()) for row in rows.to_pylist())


@pytest.mark.parametrize("keys", [KEYS, ()], ids=["groups", "no groups"])
def test_arrow_and_spark_sum_up_the_same_state_at_every_cn(
    spark: SparkSession, tmp_path: Path, keys: tuple[tuple[str, str], ...]
) -> None:
    for seed in range(6):
        dice = random.Random(seed)
        store = kept(tmp_path / str(seed), keys)
        store.write_state(steps(dice, keys, None), 1)
        nothing = pa.table({"c0": [], "_count": [], "_cn": []}, store.delta.schema())
        for cn in range(2, LAST + 1):
            store.append(NodeChange(nothing, steps(dice, keys, cn)), cn)
        for cn in range(1, LAST + 1):
            frames = Frames(spark)
            found = few_states(store, cn)
            assert found is not None
            assert bag(found) == bag(state_at(frames, store, cn).toArrow()), (seed, cn)
            frames.drop()


def test_sums_that_might_pass_the_limits_of_their_types_are_left_to_spark(tmp_path: Path) -> None:
    for name, most in (("x0", 2**62), ("x1", Decimal("9" * 36 + ".00"))):
        store = kept(tmp_path / name, ())
        few = {"x0": [1, 1], "x1": [Decimal(1), Decimal(1)], name: [most, most]}
        types = {n: arrow_type(t) for n, t in SUMS}
        store.write_state(pa.table({n: pa.array(v, types[n]) for n, v in few.items()}), 1)
        assert few_states(store, 1) is None, name
