"""Generated worlds through the whole product: real databases, Spark, one batch of 30 and more cns.

Every transaction is committed and captured by itself; then one batch maintains several views at
once. What SQLite makes of the same SQL text at every cn, from the world's rows alone, is the truth.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import steadyview
from steadyview.algebra import Bag, Row
from steadyview.runtime.warehouse import Warehouse
from tests.recomputation import recomputed
from tests.system.databases import write_project
from tests.system.maintained import bag, capturing, delta_rows, read
from tests.system.worlds_live import FAMILIES, LiveWorld, worlds_of_views
from tests.test_worlds import KINDS, kinds
from tests.worlds import World

TRANSACTIONS = (30, 36)
VIEWS = 4
CASES = [*(("sqlite", seed) for seed in (0, 1, 3)), ("mixed", 6), ("mixed", 7), ("postgresql", 8)]


@pytest.fixture
def case(
    request: pytest.FixtureRequest, tmp_path: Path, spark: SparkSession
) -> Iterator[tuple[Warehouse, dict[str, World]]]:
    """All transactions of a world, propagated in one batch."""
    family, seed = request.param
    worlds = worlds_of_views(seed, TRANSACTIONS, VIEWS)
    views = {f"v{i}": world for i, world in enumerate(worlds)}
    live = LiveWorld(worlds[0], FAMILIES[family], tmp_path)
    texts = {name: world.view.sql for name, world in views.items()}
    folder = write_project(tmp_path / "project", live.sources, texts)
    with steadyview.open(folder, spark=spark) as wh:
        wh.run_once()
        _commit_all(wh, live)
        wh.run_once()
        yield wh, views
    live.close()


def _commit_all(wh: Warehouse, live: LiveWorld) -> None:
    with capturing(wh) as admit:
        for number in range(len(live.world.transactions)):
            assert admit(live.commit(number)) == number + 1, "a transaction is one cn"


@pytest.mark.parametrize("case", CASES, indirect=True, ids=lambda c: f"{c[0]}-{c[1]}")
def test_every_cn_of_a_batch_is_the_recomputed_one(
    case: tuple[Warehouse, dict[str, World]], spark: SparkSession
) -> None:
    wh, views = case
    newest = len(views["v0"].transactions)
    (batch,) = [b for b in wh._catalog.batches.recent(10) if b.to_cn == newest]
    assert batch.transactions == newest
    for name, world in views.items():
        assert_every_cn(wh, name, world)
        assert_state(wh, name, world, 0)
        assert_state(wh, name, world, newest)
        assert_as_spark_itself(wh, name, world, spark)


def assert_every_cn(wh: Warehouse, name: str, world: World) -> None:
    """The first state and the view delta add up to what the world has at every cn."""
    changes: dict[int, Bag[Row]] = {}
    for row in delta_rows(wh, name):
        values = tuple(v for k, v in row.items() if k not in ("_count", "_cn"))
        changes[row["_cn"]] = changes.get(row["_cn"], Bag()) + Bag([(values, row["_count"])])
    state = read(wh, name, at=0)
    for cn in range(len(world.transactions) + 1):
        state = state + changes.get(cn, Bag())
        assert _rounded(state) == _rounded(expected(world, cn)), (name, cn, world.view.sql)


def assert_state(wh: Warehouse, name: str, world: World, cn: int) -> None:
    """A read at the cn shows what the world has there."""
    assert _rounded(read(wh, name, at=cn)) == _rounded(expected(world, cn)), (name, cn)


def expected(world: World, cn: int) -> Bag[Row]:
    """What the world has at the cn; an average as sum over count."""
    if world.view.state is None:
        return recomputed(world, world.view.sql)[cn]
    groups = recomputed(world, world.view.state)[cn]
    return Bag.of(_shown(world, group) for group, _ in groups)


def _shown(world: World, group: Row) -> Row:
    """The visible row of a group: keys, then one value per call."""
    width = len(world.view.keys)
    count, *pairs = group[width:]
    place = {argument: 2 * a for a, argument in enumerate(world.view.arguments)}
    values: list[Any] = []
    for call in world.view.calls:
        if call.argument is None:
            values.append(count)
            continue
        nonnull, total = pairs[place[call.argument]], pairs[place[call.argument] + 1]
        if call.function == "COUNT":
            values.append(nonnull)
        elif not nonnull:
            values.append(None)
        else:
            values.append(total / nonnull if call.function == "AVG" else total)
    return (*group[:width], *values)


def _rounded(rows: Bag[Row]) -> Bag[Row]:
    return rows.map(lambda row: tuple(_number(v) for v in row))


def _number(value: Any) -> Any:
    return round(float(value), 9) if isinstance(value, float | Decimal) else value


def assert_as_spark_itself(wh: Warehouse, name: str, world: World, spark: SparkSession) -> None:
    """Names, types and rows are those of the same SQL text run by Spark over the final rows."""
    other = spark.newSession()
    sql = world.view.sql
    final = recomputed_tables(world)
    for schema in world.schemas:
        table = str(schema.name).replace(".", "__")
        ddl = ", ".join(f"{c.name} {c.type}" for c in schema.columns)
        rows = [row for row, count in final[str(schema.name)] for _ in range(count)]
        other.createDataFrame(rows, ddl).createOrReplaceTempView(table)
        sql = sql.replace(f"{schema.name} ", f"{table} ")
    itself, kept = other.sql(sql), wh.view(name).read()
    assert [(f.name, f.dataType) for f in kept.schema] == [
        (f.name, f.dataType) for f in itself.schema
    ]
    assert bag(kept) == bag(itself)


def recomputed_tables(world: World) -> dict[str, Bag[Row]]:
    """Every relation's rows after the last transaction."""
    tables = {}
    for schema in world.schemas:
        alone = replace(world, view=replace(world.view, sql=f"SELECT * FROM {schema.name}"))
        tables[str(schema.name)] = recomputed(alone, alone.view.sql)[-1]
    return tables


def test_the_cases_hold_every_kind_of_view_and_change() -> None:
    worlds = [w for _, seed in CASES for w in worlds_of_views(seed, TRANSACTIONS, VIEWS)]
    assert {kind for world in worlds for kind in kinds(world)} >= KINDS
