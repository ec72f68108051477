"""The view algebra on Spark and on in-memory bags: the same operations, the same rows.

Random programs over the operations of the protocol, on rows with NULLs, duplicates, decimals and
signed counts; every intermediate result is compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from steadyview.algebra import Bag, Row
from steadyview.changes import Column, RelationName, RelationSchema, arrow_type
from steadyview.engine.analysis import type_name
from steadyview.engine.frames import Frames
from steadyview.maintenance.bag_view_algebra import BagViewAlgebra, Compiled, JoinedRows
from steadyview.maintenance.fitting import keys_shown
from steadyview.papers.spark_view_algebra import SparkViewAlgebra
from steadyview.papers.view_handles import Handle, Storage, stored_rows
from steadyview.views.analyze import analyze
from steadyview.views.definition import Definition
from steadyview.views.join_tree import JoinTree, join_tree
from steadyview.views.parse import parse_view

COLUMNS = (
    Column("k", "BIGINT", keyable=True),
    Column("a", "INT", keyable=True),
    Column("d", "DECIMAL(10,2)"),
    Column("s", "STRING"),
)
VALUES: tuple[tuple[Any, ...], ...] = (
    (1, 2),
    (1, 1, 2, None),
    (Decimal("1.50"), Decimal("2.00"), None),
    ("x", "t0.c0", None),
)
RELATIONS = [
    RelationSchema(RelationName(source, (table,)), COLUMNS, ("k",))
    for source, table in (("x", "r"), ("y", "s"), ("y", "t"))
]
CHAIN = """SELECT r.k AS k0, s.k AS k1, t.k AS k2, r.d + t.d AS d, r.s AS w, s.s <> 't0.c0' AS x
FROM x.r JOIN y.s ON r.a = s.a JOIN y.t ON s.k = t.a AND r.d <= t.d
WHERE (r.s <> 'x' OR s.d IS NULL OR t.s = 'x') AND s.a > 0"""
SELF = """SELECT p.k AS k0, q.k AS k1, p.d, q.s FROM x.r AS p JOIN x.r AS q ON p.a = q.k
WHERE q.a > 0 OR p.s = 'x'"""
@dataclass
class Both:
    """A view with both algebras, and the handles that were made so far, side by side."""

    definition: Definition
    bags: BagViewAlgebra
    spark: SparkViewAlgebra
    storage: Storage
    rows: dict[RelationName, list[tuple[Any, Handle]]] = field(default_factory=dict)
    joined: list[tuple[Any, Handle]] = field(default_factory=list)
    view: list[tuple[Any, Handle]] = field(default_factory=list)

    def same(self, on_bags: Any, on_spark: Handle) -> tuple[Any, Handle]:
        assert self.spark.is_empty(on_spark) == self.bags.is_empty(on_bags)
        bag = on_bags.rows if isinstance(on_bags, JoinedRows) else on_bags
        assert self.read(on_spark) == bag
        return on_bags, on_spark

    def read(self, handle: Handle) -> Bag[Any]:
        """The rows as the bags have them."""
        rows = stored_rows(self.spark.materialized(handle)).to_pylist()
        if not handle.form.bound:
            return Bag((tuple(r[n] for n in handle.form.names), r["_count"]) for r in rows)
        size = len(self.definition.occurrences)
        return Bag(
            (tuple(_row(r.get(f"t{p}")) for p in range(size)), r["_count"]) for r in rows
        )


def _row(struct: dict[str, Any] | None) -> Row | None:
    return None if struct is None else tuple(struct.values())


@pytest.fixture
def frames(session: SparkSession) -> Iterator[Frames]:
    made = Frames(session)
    yield made
    made.drop()


def both(sql: str, frames: Frames, folder: Path) -> Both:
    definition = analyze(parse_view("v", sql), RELATIONS)
    tree: JoinTree = join_tree(definition)
    keys = keys_shown(definition) or ()
    storage = Storage(frames, folder)
    types = output_types(frames.spark, definition)
    return Both(
        definition,
        BagViewAlgebra(Compiled(definition, tree, keys)),
        SparkViewAlgebra(definition, tree, types, storage, keys),
        storage,
    )


def output_types(spark: SparkSession, definition: Definition) -> list[str]:
    """The types of the view's columns, as Spark has them."""
    empty = []
    for o in definition.occurrences:
        columns = [f"CAST(NULL AS {c.type}) AS c{i}" for i, c in enumerate(o.relation.columns)]
        empty.append(f"(SELECT {', '.join(columns)}) {o.name}")
    outputs = ", ".join(f"{o.sql} AS x{i}" for i, o in enumerate(definition.outputs))
    schema = spark.sql(f"SELECT {outputs} FROM {' CROSS JOIN '.join(empty)}").schema
    return [type_name(f.dataType) for f in schema.fields]


class Program:
    """Draws operations; every result is compared and may be used by later ones."""

    def __init__(self, two: Both, luck: Random) -> None:
        self._two, self._luck = two, luck
        self._names = list(two.spark.columns)
        for name in self._names:
            two.rows[name] = [self._leaf(name, signed) for signed in (False, True, True)]

    def _leaf(self, name: RelationName, signed: bool) -> tuple[Bag[Row], Handle]:
        luck, columns = self._luck, self._two.spark.columns[name]
        counts = (1, 1, 2, -1, -2) if signed else (1, 1, 2)
        rows = [
            (tuple(luck.choice(values) for values in VALUES), luck.choice(counts))
            for _ in range(luck.choice((0, 3, 6)))
        ]
        table = pa.table(
            {
                **{f"c{i}": pa.array([r[i] for r, _ in rows], _type(i)) for i in columns},
                "_count": pa.array([n for _, n in rows], pa.int64()),
            }
        )
        bag = Bag((tuple(r[i] if i in columns else None for i in range(4)), n) for r, n in rows)
        return bag, self._two.spark.rows(name, table, None if signed else 1)

    def run(self, steps: int) -> None:
        for _ in range(steps):
            self.seeded()
            self.joined()
            self._luck.choice([self.one_handle, self.two_handles, self.rows_alone])()

    def seeded(self) -> None:
        position = self._luck.randrange(len(self._two.definition.occurrences))
        on_bags, on_spark = self._luck.choice(self._two.rows[self._relation(position)])
        self._keep(
            self._two.joined,
            self._two.bags.seed(position, on_bags),
            self._two.spark.seed(position, on_spark),
        )

    def joined(self) -> None:
        """Extend some joined rows to the end, project, and delete from both."""
        one, other = self._luck.choice(self._two.joined)
        for position in range(len(self._two.definition.occurrences)):
            if position in one.bound:
                continue
            rows = self._luck.choice(self._two.rows[self._relation(position)])
            one = self._two.bags.join(one, position, rows[0])
            other = self._two.spark.join(other, position, rows[1])
        self._keep(self._two.joined, one, other)
        self._keep(self._two.view, self._two.bags.project(one), self._two.spark.project(other))
        self._deleted(one, other)

    def _deleted(self, one: Any, other: Handle) -> None:
        position = self._luck.randrange(len(self._two.definition.occurrences))
        rows = self._luck.choice(self._two.rows[self._relation(position)])
        self._two.same(
            self._two.bags.row_delete(one, position, rows[0]),
            self._two.spark.row_delete(other, position, rows[1]),
        )
        view = self._luck.choice(self._two.view)
        self._keep(
            self._two.view,
            self._two.bags.key_delete(view[0], position, rows[0]),
            self._two.spark.key_delete(view[1], position, rows[1]),
        )

    def one_handle(self) -> None:
        pool = self._luck.choice([self._two.joined, self._two.view])
        one, other = self._luck.choice(pool)
        name = self._luck.choice(["negate", "plus", "minus", "distinct"])
        made = getattr(self._two.bags, name)(one), getattr(self._two.spark, name)(other)
        self._keep(pool, *made)

    def two_handles(self) -> None:
        pool = self._luck.choice([self._two.joined, self._two.view])
        one, other = self._luck.choice(pool)
        alike = [p for p in pool if getattr(p[0], "bound", None) == getattr(one, "bound", None)]
        more = self._luck.choice(alike)
        self._keep(
            pool, self._two.bags.add([one, more[0]]), self._two.spark.add([other, more[1]])
        )

    def rows_alone(self) -> None:
        pool = self._two.rows[self._luck.choice(self._names)]
        one, other = self._luck.choice(pool), self._luck.choice(pool)
        made = self._two.bags.without(one[0], other[0]), self._two.spark.without(one[1], other[1])
        self._keep(pool, *made)

    def _keep(self, pool: list[tuple[Any, Handle]], on_bags: Any, on_spark: Handle) -> None:
        if self._luck.random() < 0.5:
            self._two.same(on_bags, on_spark)
        pool.append((on_bags, on_spark))

    def _relation(self, position: int) -> RelationName:
        return self._two.definition.occurrences[position].relation.name


def _type(column: int) -> pa.DataType:
    return arrow_type(COLUMNS[column].type)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("sql", [CHAIN, SELF], ids=["chain", "self-join"])
def test_differential_random_operations_give_the_same_rows(
    sql: str, seed: int, frames: Frames, tmp_path: Path
) -> None:
    two = both(sql, frames, tmp_path)
    Program(two, Random(seed)).run(4)
    for pool in (*two.rows.values(), two.joined, two.view):
        for on_bags, on_spark in pool[-2:]:
            two.same(on_bags, on_spark)


def test_differential_branches_that_were_joined_apart_are_merged(
    frames: Frames, tmp_path: Path
) -> None:
    """SWEEP in parallel: rows of the middle position, its counts in the left branch only."""
    two = both(CHAIN, frames, tmp_path)
    Program(two, Random(7))
    r, s, t = (next(p for p in two.rows[o.relation.name] if len(p[0])) for o in _occurrences(two))
    left = [a.join(a.seed(1, x), 0, y) for a, x, y in _sides(two, s, r)]
    right = [a.join(a.seed(1, a.distinct(x)), 2, y) for a, x, y in _sides(two, s, t)]
    merged = [a.merge(x, y, 1) for a, x, y in _sides(two, left, right)]
    assert len(two.same(*merged)[0].rows)
    whole = [a.join(x, 2, y) for a, x, y in _sides(two, left, t)]
    assert two.same(*whole)[0].rows == merged[0].rows


def _occurrences(two: Both) -> tuple[Any, ...]:
    return two.definition.occurrences


def _sides(two: Both, one: Any, other: Any) -> list[tuple[Any, Any, Any]]:
    return [(two.bags, one[0], other[0]), (two.spark, one[1], other[1])]


def _table(
    two: Both, name: RelationName, columns: dict[str, list[Any]], counts: list[int]
) -> pa.Table:
    used = {f"c{i}": pa.array(columns[f"c{i}"], _type(i)) for i in two.spark.columns[name]}
    return pa.table({**used, "_count": pa.array(counts, pa.int64())})


def test_values_to_look_up_are_found_without_computing_and_files_go_with_their_handles(
    frames: Frames, tmp_path: Path
) -> None:
    two = both(SELF, frames, tmp_path)
    name = RELATIONS[0].name
    columns = {"c0": [1, 2], "c1": [7, None], "c2": [None, None], "c3": ["x", "x"]}
    rows = two.spark.rows(name, _table(two, name, columns, [1, 1]), 1)
    seed = two.spark.negate(two.spark.seed(0, rows))
    assert two.spark.key_values(seed, 0, 1).to_pylist() == [7]
    assert seed.stored is None
    assert two.spark.key_values(two.spark.materialized(seed), 0, 0).to_pylist() == [1, 2]
    assert len(list(tmp_path.iterdir())) == 2
    del rows, seed
    two.storage.tidy()
    assert list(tmp_path.iterdir()) == []
