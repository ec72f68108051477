"""A statement that was planned before gives what Spark gives for the same text and rows."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from steadyview.changes import arrow_type
from steadyview.engine.failures import SparkError, is_data_error, reason
from steadyview.engine.frames import Frames
from steadyview.engine.prepared import Input, preparations

COLUMNS = (
    ("k", "BIGINT"),
    ("t", "STRING"),
    ("d", "DECIMAL(10,2)"),
    ("at", "TIMESTAMP"),
    ("day", "DATE"),
    ("x", "DOUBLE"),
)
SCHEMA = pa.schema([(name, arrow_type(type_)) for name, type_ in COLUMNS])
TEXTS = [
    "SELECT * FROM {a}",
    "SELECT a.k, b.t, a.d + b.d AS d FROM {a} a JOIN {b} b ON a.k <=> b.k",
    "SELECT a.k, b.t, a.day FROM {a} a LEFT JOIN {b} b ON a.k = b.k AND a.d < b.d",
    "SELECT a.t, b.at, b.x FROM {a} a FULL JOIN {b} b ON a.t = b.t",
    "SELECT * FROM {a} a WHERE NOT EXISTS (SELECT 1 FROM {b} b WHERE b.k = a.k)",
    "SELECT k, COUNT(*) AS n, SUM(d) AS d, MAX(at) AS at FROM (SELECT * FROM {a} UNION ALL "
    "SELECT * FROM {b} UNION ALL SELECT * FROM {a}) GROUP BY k HAVING COUNT(*) > 1",
    "SELECT k, t, SUM(d) OVER (PARTITION BY k ORDER BY t, d, at, x ROWS UNBOUNDED PRECEDING) AS s, "
    "LEAD(day) OVER (PARTITION BY k ORDER BY t, d, at, x, day) AS l FROM {a}",
    "SELECT DISTINCT x.k FROM {a} x JOIN {a} y ON x.k = y.k JOIN {b} z ON z.t >= y.t",
    "SELECT a.k, one.v FROM {a} a, (VALUES (1), (2)) AS one(v)",
]


def some(dice: random.Random) -> pa.Table:
    def row() -> tuple[Any, ...]:
        return (
            dice.choice((None, 1, 2, 3)),
            dice.choice((None, "", "a", "ü")),
            dice.choice((None, Decimal("1.25"), Decimal("-3.50"))),
            dice.choice((None, 0, 1_000_001)),
            dice.choice((None, 0, 20_000)),
            dice.choice((None, 0.5, -0.0, float("inf"))),
        )

    rows = [row() for _ in range(dice.randrange(9))]
    columns = zip(*rows, strict=True) if rows else [[]] * len(COLUMNS)
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], SCHEMA)


def bag(rows: pa.Table) -> list[str]:
    return sorted(map(repr, rows.to_pylist()))


@pytest.mark.parametrize("text", TEXTS)
def test_each_run_gives_what_spark_gives_for_its_rows(session: SparkSession, text: str) -> None:
    dice = random.Random(text)
    for _ in range(4):
        frames = Frames(session)
        names = {label: frames.rows(label, some(dice), COLUMNS) for label in "ab"}
        found = frames.collected(text.format(**names))
        asked = frames.sql(text.format(**names)).toArrow()
        assert bag(found) == bag(asked)
        assert found.schema.types == asked.schema.types
        frames.drop()


def test_a_statement_is_planned_once(session: SparkSession) -> None:
    kept = preparations(session)._kept
    text, known = "SELECT COUNT(*) AS how_many_of_these FROM {}", len(kept)
    for rows in (1, 5, 0):
        frames = Frames(session)
        table = pa.table({"a": pa.array(range(rows), pa.int64())})
        found = frames.collected(text.format(frames.rows("n", table, [("a", "BIGINT")])))
        assert found[0].to_pylist() == [rows]
    assert len(kept) == known + 1


def test_other_types_are_another_statement(session: SparkSession) -> None:
    for value, type_ in ((1, "INT"), (1, "BIGINT"), ("1", "STRING"), (Decimal(1), "DECIMAL(5,1)")):
        frames = Frames(session)
        table = pa.table({"a": pa.array([value], arrow_type(type_))})
        name = frames.rows("typed", table, [("a", type_)])
        assert frames.collected(f"SELECT a FROM {name}").schema.types == [arrow_type(type_)]


def test_threads_do_not_see_each_others_rows(session: SparkSession) -> None:
    def total(number: int) -> tuple[int, int]:
        frames = Frames(session)
        table = pa.table({"a": pa.array([number] * 3, pa.int64())})
        name = frames.rows("mine", table, [("a", "BIGINT")])
        text = f"SELECT SUM(x.a) AS s FROM {name} x JOIN {name} y ON x.a = y.a"
        (found,) = frames.collected(text)["s"].to_pylist()
        return number, found

    with ThreadPoolExecutor(4) as pool:
        for number, found in pool.map(total, range(40)):
            assert found == 9 * number


def test_a_query_inside_an_expression_reads_the_rows_of_its_run(session: SparkSession) -> None:
    for rows in ([1, 2], [7], []):
        frames = Frames(session)
        table = pa.table({"a": pa.array(rows, pa.int64())})
        name = frames.rows("inner", table, [("a", "BIGINT")])
        found = frames.collected(f"SELECT (SELECT MAX(a) FROM {name}) AS m FROM VALUES (1)")
        assert found["m"].to_pylist() == [max(rows, default=None)]
        frames.drop()


def test_a_value_that_no_expression_takes_is_told_as_ever(session: SparkSession) -> None:
    given = Input((("a", "INT"),), pa.table({"a": pa.array([1, 0], pa.int32())}))
    with pytest.raises(SparkError) as failed:
        preparations(session).rows("SELECT 1 DIV a AS q FROM input_0", [given])
    assert is_data_error(failed.value)
    assert "DIVIDE_BY_ZERO" in reason(failed.value)
    fine = Input(given.columns, given.rows.slice(0, 1))
    again = preparations(session).rows("SELECT 1 DIV a AS q FROM input_0", [fine])
    assert again is not None
    assert again["q"].to_pylist() == [1]


def test_a_large_result_arrives_whole(session: SparkSession) -> None:
    frames = Frames(session)
    table = pa.table({"a": pa.array(range(1_000), pa.int64()), "t": ["x" * 20] * 1_000})
    name = frames.rows("many", table, [("a", "BIGINT"), ("t", "STRING")])
    found = frames.collected(f"SELECT x.a, y.a AS b, x.t FROM {name} x CROSS JOIN {name} y")
    assert found.nbytes > 3 * (8 << 20)
    assert found.num_rows == 1_000_000
    assert len(set(zip(*(found[c].to_pylist() for c in "ab"), strict=True))) == 1_000_000


def test_rows_of_many_bytes_go_through_a_file(session: SparkSession, tmp_path: Path) -> None:
    frames = Frames(session)
    table = pa.table({"t": ["x" * (9 << 20), "y" * (9 << 20), None]})
    name = frames.few("wide", table, [("t", "STRING")], tmp_path)
    assert list(tmp_path.glob("*.parquet"))
    found = frames.collected(f"SELECT LENGTH(t) AS n FROM {name}")["n"].to_pylist()
    assert sorted(found, key=str) == [9 << 20, 9 << 20, None]
    frames.drop()
