"""The history of an aggregate view without Spark is the one that Spark gives, or none."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import steadyview
from steadyview.catalog.views import Base, ViewRow
from steadyview.engine.session import beside
from steadyview.runtime.warehouse import Warehouse
from steadyview.warehouse import small_history
from steadyview.warehouse.history import asked_changes
from steadyview.warehouse.small_history import Changed, small_changes
from steadyview.warehouse.view_store import Shape, ViewStore, _arrow
from tests.system.databases import SqliteFile, write_project

VIEWS = {
    "everything": """SELECT town, day, COUNT(*) AS n, COUNT(price) AS priced, SUM(price) AS total,
                            AVG(price) AS mean, SUM(pieces) AS pieces, AVG(pieces) AS each
                     FROM s.sales GROUP BY town, day""",
    "means": "SELECT AVG(price) AS mean, AVG(pieces) AS each FROM s.sales GROUP BY town, day",
    "counts": "SELECT town, COUNT(price) AS priced FROM s.sales GROUP BY town, day",
    "overall": "SELECT SUM(price) AS total, AVG(pieces) AS each FROM s.sales",
    "ratio": "SELECT town, SUM(price) / SUM(pieces) AS r FROM s.sales GROUP BY town",
    "by_weight": "SELECT weight, COUNT(*) AS n FROM s.sales GROUP BY weight",
}
TOWNS, DAYS = ["Rome", "rome", "", None], ["2024-02-29", None]
PRICES = [None, Decimal("1.00"), Decimal("2.00"), Decimal("-0.33"), Decimal("99999999.99")]
PIECES = [None, 1, 2, -3, 2**53 + 1]
LAST = 40


@pytest.fixture(scope="module")
def wh(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Iterator[Warehouse]:
    root = tmp_path_factory.mktemp("small_history")
    database = SqliteFile(root / "s.db")
    database.create(
        "sales", "town TEXT, day DATE, price DECIMAL(10,2), pieces INTEGER, weight DOUBLE"
    )
    with steadyview.open(write_project(root / "p", {"s": database}, VIEWS), spark=spark) as wh:
        wh.run_once()
        yield wh
    database.close()


@dataclass
class Sales:
    """Rows that come and go, and what their summary per group is."""

    keys: int
    arguments: list[str]
    summed: list[bool]
    rows: list[tuple[Any, ...]] = field(default_factory=list)

    def summary(self) -> dict[tuple[Any, ...], tuple[Any, ...]]:
        """Group to (count, then non-NULL values and their sum per argument)."""
        found: dict[tuple[Any, ...], list[Any]] = {}
        for town, day, price, pieces, copies in self.rows:
            state = found.setdefault((town, day)[: self.keys], [0, *[0] * 2 * len(self.arguments)])
            state[0] += copies
            for a, name in enumerate(self.arguments):
                value = price if name == "price" else pieces
                if value is not None:
                    state[1 + 2 * a] += copies
                    state[2 + 2 * a] += copies * Decimal(value)
        return {group: tuple(state) for group, state in found.items()}

    def change(self, dice: random.Random, copies: int) -> None:
        for _ in range(dice.randint(1, 3)):
            gone = bool(self.rows) and dice.random() < 0.45
            if gone:
                self.rows.pop(dice.randrange(len(self.rows)))
            if not gone or dice.random() < 0.3:
                drawn = [dice.choice(values) for values in (TOWNS, DAYS, PRICES, PIECES)]
                self.rows.append((*drawn, dice.choice([1, copies])))


def _records(sales: Sales, states: dict[Any, Any], cn: int | None = None) -> list[dict[str, Any]]:
    records = []
    for group, state in states.items():
        record = {f"_g{i}": value for i, value in enumerate(group)} | {"_count": state[0]}
        for a, summed in enumerate(sales.summed):
            record[f"_nonnull_{a}"] = state[1 + 2 * a]
            if summed:
                record[f"_sum_{a}"] = Decimal(state[2 + 2 * a])
        records.append(record | ({} if cn is None else {"_cn": cn}))
    return records


def _minus(after: dict[Any, Any], before: dict[Any, Any]) -> dict[Any, Any]:
    groups = list(dict.fromkeys([*after, *before]))
    empty = (0,) * len(next(iter({**after, **before}.values()), ()))
    found = {
        g: tuple(a - b for a, b in zip(after.get(g, empty), before.get(g, empty), strict=True))
        for g in groups
    }
    return {group: change for group, change in found.items() if any(change)}


def _table(records: list[dict[str, Any]], columns: list[tuple[str, str]]) -> pa.Table:
    from datetime import date

    schema = _arrow(columns)
    days = {day: day and date.fromisoformat(day) for day in DAYS}
    fixed = [
        {k: days.get(v, v) if schema.field(k).type == pa.date32() else v for k, v in r.items()}
        for r in records
    ]
    return pa.Table.from_pylist(fixed, schema)


def _sales(shape: Shape) -> Sales:
    assert shape.definition is not None
    assert shape.definition.grouping is not None
    grouping = shape.definition.grouping
    types = [str(state) for state in shape.types.states]
    # an argument that is only counted is the price here
    names = ["pieces" if type_ == "DECIMAL(38,0)" else "price" for type_ in types]
    return Sales(len(shape.types.keys), names, [a.summed for a in grouping.arguments])


def made(
    wh: Warehouse, spark: SparkSession, view: str, root: Path, seed: int, copies: int = 1
) -> tuple[ViewStore, ViewRow, Base]:
    """A view's tables with a history drawn from a seed; the base may be newer than its start."""
    dice = random.Random(seed)
    shape = wh._plan(view).shape
    begun, base_cn = dice.choice([(0, 0), (5, 0), (5, 12), (0, 40), (7, 7)])
    row = replace(wh._catalog.views.get(view), cn=LAST, oldest_cn=begun)
    store = ViewStore(root, row, shape)
    store.create()
    sales, delta = _sales(shape), []
    states = sales.summary()
    base: list[dict[str, Any]] = _records(sales, states)
    for cn in range(1, LAST + 1):
        sales.change(dice, copies)
        before, states = states, sales.summary()
        delta += _records(sales, _minus(states, before), cn)
        if cn == base_cn:
            base = _records(sales, states)
        if cn % 13 == 0 or cn == LAST:
            store.append_rows(_table(delta, shape.delta), cn, lambda _: None)
            delta = []
    buckets = pa.array(["1-0"] * len(base), pa.string())
    rows = _table(base, shape.base).append_column("_bucket", buckets)
    written = store.write_base(spark.createDataFrame(rows), base_cn, [])
    return store, replace(row, delta_version=store.delta.version()), written


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("view", ["everything", "means", "counts", "overall"])
def test_it_is_what_spark_says(wh, spark, tmp_path, view, seed):
    session = beside(spark_of(wh))
    store, row, base = made(wh, session, view, tmp_path, seed)
    found = small_changes(store, row, base)
    assert found
    assert found == asked_changes(session, store, row, base, 1_000)


@pytest.mark.parametrize("view", ["everything", "means", "overall"])
def test_averages_of_very_many_rows_are_as_spark_says_or_left_to_it(wh, spark, tmp_path, view):
    session, sure = beside(spark_of(wh)), 0
    for seed in range(6):
        store, row, base = made(wh, session, view, tmp_path / str(seed), seed, copies=10**7)
        found = small_changes(store, row, base)
        if found is not None:
            sure += 1
            assert found == asked_changes(session, store, row, base, 1_000)
    if view == "overall":
        # sums and averages of whole numbers are always sure
        assert sure == 6


def spark_of(wh: Warehouse) -> SparkSession:
    return wh._parts.spark


def test_expressions_over_aggregates_and_keys_of_floats_are_left_to_spark(wh, spark, tmp_path):
    for view in ("ratio", "by_weight"):
        shape = wh._plan(view).shape
        row = replace(wh._catalog.views.get(view), cn=1, oldest_cn=0, delta_version=0)
        store = ViewStore(tmp_path, row, shape)
        store.create()
        assert small_changes(store, row, Base(0, 0)) is None


def test_a_state_that_no_rows_give_and_a_long_history_are_left_to_spark(
    wh, spark, tmp_path, monkeypatch
):
    store, row, base = made(wh, beside(spark_of(wh)), "counts", tmp_path, 1)
    assert small_changes(store, row, base)
    monkeypatch.setattr(small_history, "MOST", 10)
    assert small_changes(store, row, base) is None
    monkeypatch.undo()
    wrong = [{"_g0": "Oslo", "_g1": None, "_count": -1, "_nonnull_0": 0, "_cn": LAST + 1}]
    store.append_rows(_table(wrong, store.shape.delta), LAST + 1, lambda _: None)
    later = replace(row, cn=LAST + 1, delta_version=store.delta.version())
    assert small_changes(store, later, base) is None


def test_a_history_that_is_surely_known_starts_no_spark(wh, spark, tmp_path):
    from steadyview.warehouse.history import changes

    store, row, base = made(wh, beside(spark_of(wh)), "everything", tmp_path, 3)

    def none() -> SparkSession:
        raise AssertionError("Spark was asked")

    newest = changes(none, store, row, [base], 3)
    assert [type(change) for change in newest] == [Changed] * 3
