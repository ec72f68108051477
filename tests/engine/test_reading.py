"""Spark's own parser judges how we read SQL, expression by expression."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from steadyview.engine.reading import check_reading, read_alike
from steadyview.errors import ViewRefused
from steadyview.views.dialect import parsed, written
from steadyview.views.functions import SCALAR
from steadyview.views.parse import ViewText
from steadyview.views.readings import readings
from tests.plans.read_texts import case

CORPUS = Path(__file__).with_name("expressions.txt").read_text(encoding="utf-8").splitlines()
SHAPES = ("{}(a)", "{}(a, b)", "{}(a, 'x', 1)", "{}(a.b + 1, c || 'd', 2, e)", "{}()")
NOT_READ = frozenset(
    {"a >>> 1", "-a + +b", "~a & b | c ^ d", "a | b & c", "a IS UNKNOWN", "a IS NOT UNKNOWN"}
    | {"CAST(a AS STRUCT<x: INT, y: STRING>)"}
)
"""What Spark reads and we do not, or otherwise: refused, never misread."""
KEYWORDS = frozenset({"between", "cast", "try_cast", "extract", "in", "not", "when"})
"""Words of the language that Spark also takes for functions."""


def understood(spark: SparkSession, text: str) -> bool | None:
    """Whether the text is read as Spark reads it; None if Spark cannot read it at all."""
    try:
        spark._jsparkSession.sessionState().sqlParser().parsePlan(text)
    except PySparkException:
        return None
    try:
        check_reading(spark, ViewText("v", text))
    except ViewRefused:
        return False
    assert read_alike(spark, text, written(parsed(text)))
    return True


def test_nearly_every_expression_of_sparks_sql_is_read_as_spark_reads_it(
    spark: SparkSession,
) -> None:
    refused = {text for text in CORPUS if understood(spark, f"SELECT {text} FROM t") is False}
    assert refused <= NOT_READ


def test_every_scalar_function_is_read_as_a_call_of_its_name(spark: SparkSession) -> None:
    calls = [shape.format(name) for name in sorted(SCALAR - KEYWORDS) for shape in SHAPES]
    refused = [text for text in calls if understood(spark, f"SELECT {text} AS x FROM t") is False]
    assert refused == []


def test_whole_queries_are_read_as_spark_reads_them(spark: SparkSession) -> None:
    for seed in range(60):
        assert understood(spark, case(seed, 2).text().spark) is True


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("SELECT 10L", "SELECT 10"),
        ("SELECT a OR b AND c", "SELECT (a OR b) AND c"),
        ("SELECT EXISTS (SELECT 1 FROM t)", "SELECT EXISTS (SELECT 2 FROM t)"),
        ("SELECT a IN (SELECT b FROM t)", "SELECT a IN (SELECT c FROM t)"),
        ("WITH x AS (SELECT 1) SELECT * FROM x", "WITH x AS (SELECT 2) SELECT * FROM x"),
        ("SELECT CAST(a AS INT)", "SELECT CAST(a AS BIGINT)"),
        ("SELECT 1 UNION SELECT 2", "SELECT 1 UNION ALL SELECT 2"),
        ("SELECT * FROM a LEFT JOIN b ON x", "SELECT * FROM a RIGHT JOIN b ON x"),
        ("SELECT transform(a, x -> x + 1)", "SELECT transform(a, x -> x + 2)"),
        ("SELECT '\\n'", "SELECT 'n'"),
        (
            "SELECT 1 UNION SELECT 2 INTERSECT SELECT 3",
            "(SELECT 1 UNION SELECT 2) INTERSECT SELECT 3",
        ),
    ],
)
def test_what_means_something_else_is_told_apart(spark: SparkSession, one: str, other: str) -> None:
    assert read_alike(spark, one, one)
    assert not read_alike(spark, one, other)


def test_every_cell_of_values_is_compared() -> None:
    view = ViewText("v", "SELECT * FROM VALUES (1 + a, 'x'), (-2, 10L) AS t(a, b)")
    cells = [ours for _, _, ours in readings(view)][1:]
    assert cells == ["SELECT *", "SELECT 1 + a", "SELECT 'x'", "SELECT -2", "SELECT 10L"]
