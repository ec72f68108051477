"""Errors of Spark's that came to the driver as text. No Spark."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import PySparkException

from steadyview.engine.causes import told_in
from steadyview.engine.failures import cause, is_data_error
from steadyview.errors import SteadyviewError, StorageDamaged, StorageUnavailable

ABORTED = """Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 times, most recent \
failure: Lost task 0.0 in stage 1.0 (TID 1) (127.0.0.1 executor driver): {}
\tat org.apache.spark.sql.execution.Some.run(Some.scala:231)
{}
Driver stacktrace:"""
READ = "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file {}.  SQLSTATE: KD001"
FILE = "file:///w/nodes/a%20b-1/delta/part-0.parquet"


def aborted(first: str, last: str = "") -> PySparkException:
    return PySparkException(message=ABORTED.format(first, last))


@pytest.mark.parametrize(
    ("error", "kind", "fact"),
    [
        (
            aborted(
                f"org.apache.spark.SparkException: {READ.format(FILE)}",
                "Caused by: java.lang.RuntimeException: no magic number",
            ),
            StorageDamaged,
            'file "/w/nodes/a b-1/delta/part-0.parquet" is damaged\ndetail: no magic number',
        ),
        (
            aborted(
                f"org.apache.spark.SparkException: {READ.format(FILE)}",
                f"Caused by: java.io.FileNotFoundException: File {FILE} does not exist",
            ),
            StorageDamaged,
            f'lacks a file\ndetail: java.io.FileNotFoundException: File {FILE} does not exist',
        ),
        (
            aborted("java.io.IOException: No space left on device"),
            StorageUnavailable,
            "disk full",
        ),
    ],
    ids=["damaged", "missing", "full"],
)
def test_what_a_task_met_is_found_in_the_text_of_its_job(
    error: PySparkException, kind: type[SteadyviewError], fact: str
) -> None:
    found = cause(error, Path("/w"))
    assert isinstance(found, kind)
    assert fact in str(found)
    assert not is_data_error(error)


def test_the_data_are_to_blame_by_sqlstate_and_not_by_words() -> None:
    value = "org.apache.spark.SparkArithmeticException: [DIVIDE_BY_ZERO] No. SQLSTATE: 22012"
    assert is_data_error(aborted(value))
    words = "org.apache.spark.SparkException: the text '[DIVIDE_BY_ZERO] No' cannot be parsed"
    assert not is_data_error(aborted(words))


def test_a_name_in_the_middle_of_a_line_is_no_cause() -> None:
    plan = "Filter (a = java.io.FileNotFoundException: x)\n  +- java.io.FileNotFoundException"
    assert told_in(plan) == []
    assert cause(PySparkException(message=plan), Path("/w")) is None
