"""A statement that was planned before gives what Spark gives for the same text and rows."""

from __future__ import annotations

import gc
import random
import weakref
from collections.abc import Callable
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
from steadyview.engine.session import open_session

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


def test_a_plan_that_is_gone_is_made_again(session: SparkSession) -> None:
    kept, given = preparations(session), Input((("a", "INT"),), pa.table({"a": [4]}))
    texts = [f"SELECT a + {i} AS b FROM input_0" for i in range(3)]
    for _ in range(2):
        for i, text in enumerate(texts):
            found = kept.rows(text, [given])
            assert found is not None
            assert found["b"].to_pylist() == [4 + i]
        # as if other processes had needed all places
        kept._java.forget([*kept._kept.values()])
    kept.forget()
    assert not kept._kept


def test_other_types_are_another_statement(session: SparkSession) -> None:
    for value, type_ in ((1, "INT"), (1, "BIGINT"), ("1", "STRING"), (Decimal(1), "DECIMAL(5,1)")):
        frames = Frames(session)
        table = pa.table({"a": pa.array([value], arrow_type(type_))})
        name = frames.rows("typed", table, [("a", type_)])
        assert frames.collected(f"SELECT a FROM {name}").schema.types == [arrow_type(type_)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT SUM(x.a) AS s FROM {a} x JOIN {a} y ON x.a = y.a", lambda n: [9 * n]),
        ("SELECT COUNT(y.a) AS s FROM range(3) r LEFT JOIN {a} y ON y.a = r.id + {n}", None),
        ("SELECT COUNT(*) AS s FROM VALUES (0), (9) o(v) LEFT JOIN {a} y ON o.v <= y.a", None),
        ("SELECT COUNT(*) AS s FROM VALUES (0), (9) o(v) WHERE v NOT IN (SELECT a FROM {a})", None),
        (
            "SELECT /*+ BROADCAST(y) */ COUNT(*) AS s FROM {a} x JOIN {a} y "
            "ON x.a = AGGREGATE(FILTER(SEQUENCE(0L, y.a), e -> e = y.a), 0L, (s, e) -> s + e)",
            lambda _: [9],
        ),
    ],
)
def test_threads_do_not_see_each_others_rows(
    session: SparkSession, text: str, expected: Callable[[int], list[int]] | None
) -> None:
    """Also where parts of the text stand over constants, and where lambdas hold values."""

    def given(number: int) -> tuple[Frames, str]:
        frames = Frames(session)
        table = pa.table({"a": pa.array([number] * 3, pa.int64())})
        return frames, text.format(a=frames.rows("mine", table, [("a", "BIGINT")]), n=1)

    def total(number: int) -> list[int]:
        frames, statement = given(number)
        return frames.collected(statement)["s"].to_pylist()

    def alone(number: int) -> list[int]:
        frames, statement = given(number)
        found = frames.sql(statement).toArrow()["s"].to_pylist()
        frames.drop()
        return found

    wanted = {n: alone(n) if expected is None else expected(n) for n in range(5)}
    with ThreadPoolExecutor(4) as pool:
        numbers = [n % 5 for n in range(100)]
        for number, found in zip(numbers, pool.map(total, numbers), strict=True):
            assert found == wanted[number]


def test_what_keeps_a_plan_of_its_own_is_run_by_spark(session: SparkSession) -> None:
    frames = Frames(session)
    name = frames.rows("start", pa.table({"k": pa.array([1, 3], pa.int64())}), [("k", "BIGINT")])
    step = f"SELECT k FROM {name} UNION ALL SELECT n + 1 FROM q WHERE n < 5"
    found = frames.collected(f"WITH RECURSIVE q(n) AS ({step}) SELECT n FROM q")
    assert sorted(found["n"].to_pylist()) == [1, 2, 3, 3, 4, 4, 5, 5]
    frames.drop()


def test_statements_have_the_settings_of_their_session(
    spark: SparkSession, tmp_path: Path
) -> None:
    settings = {"spark.sql.decimalOperations.allowPrecisionLoss": "false"}
    exact = open_session("exact", settings, tmp_path, spark)
    product = "SELECT CAST(1.00000000001 AS DECIMAL(38,11)) * a AS p FROM {}"
    one = pa.table({"a": pa.array([Decimal("2.4")], arrow_type("DECIMAL(38,3)"))})
    types = []
    for opened in (exact, open_session("usual", {}, tmp_path, spark)):
        frames = Frames(opened)
        text = product.format(frames.rows("factor", one, [("a", "DECIMAL(38,3)")]))
        assert frames.collected(text).schema.types == frames.sql(text).toArrow().schema.types
        types += frames.collected(text).schema.types
        frames.drop()
    assert types[0] != types[1]


def test_a_session_that_nobody_holds_is_forgotten(spark: SparkSession, tmp_path: Path) -> None:
    opened = open_session("brief", {}, tmp_path, spark)
    frames = Frames(opened)
    name = frames.rows("one", pa.table({"a": pa.array([1], pa.int64())}), [("a", "BIGINT")])
    assert frames.collected(f"SELECT a FROM {name}").num_rows == 1
    gone = weakref.ref(preparations(opened))
    SparkSession.builder.getOrCreate()
    del frames, opened
    gc.collect()
    assert gone() is None


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


def test_a_result_of_very_many_bytes_is_left_to_spark(session: SparkSession) -> None:
    wide = pa.table({"t": ["x" * 1_000_000, "y"]})
    many = pa.table({"k": pa.array(range(70), pa.int64())})
    given = [Input((("t", "STRING"),), wide), Input((("k", "BIGINT"),), many)]
    text = "SELECT t FROM input_0 CROSS JOIN input_1 WHERE LENGTH(t) > 1"
    assert preparations(session).rows(text, given) is None
    assert preparations(session).rows(f"{text} AND k < 3", given).num_rows == 3


def test_rows_of_many_bytes_go_through_a_file(session: SparkSession, tmp_path: Path) -> None:
    frames = Frames(session)
    table = pa.table({"t": ["x" * (9 << 20), "y" * (9 << 20), None]})
    name = frames.few("wide", table, [("t", "STRING")], tmp_path)
    assert list(tmp_path.glob("*.parquet"))
    found = frames.collected(f"SELECT LENGTH(t) AS n FROM {name}")["n"].to_pylist()
    assert sorted(found, key=str) == [9 << 20, 9 << 20, None]
    frames.drop()
