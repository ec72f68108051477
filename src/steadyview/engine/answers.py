"""Answers: what a source told about one question, stored before anything uses it (law 3).

A question that the source cuts into several parts is read by Spark's executors, each part under the
same snapshot; a question of one part is read here, in batches of bounded size.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from steadyview.changes import RelationSchema, arrow_type
from steadyview.delta.failures import told
from steadyview.engine.carried import Carried
from steadyview.engine.failures import spark_told
from steadyview.errors import SteadyviewError


class Task(Protocol):
    """A part of a question; picklable unless it has to run in this process."""

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows of the part."""


def store(
    spark: SparkSession,
    tasks: Sequence[Task],
    relation: RelationSchema,
    columns: Sequence[int],
    path: Path,
) -> tuple[list[str], int]:
    """Carry the tasks out and keep the rows at `path`; the files and how many rows they hold."""
    if len(tasks) == 1:
        return _store_here(tasks[0], relation, columns, path)
    return _store_by_spark(spark, tasks, relation, columns, path)


def store_each(
    spark: SparkSession,
    tasks: Sequence[Task],
    relation: RelationSchema,
    columns: Sequence[int],
    path: Path,
) -> list[list[str]]:
    """The same, and which files hold the rows of each task."""
    files, _ = store(spark, tasks, relation, columns, path)
    if len(tasks) == 1:
        return [files]
    # a task is a partition, and Spark's files carry the partition's number
    numbers = [int(Path(f).name.split("-")[1]) for f in files]
    return [[f for f, n in zip(files, numbers, strict=True) if n == i] for i in range(len(tasks))]


def _store_here(
    task: Task, relation: RelationSchema, columns: Sequence[int], path: Path
) -> tuple[list[str], int]:
    schema = pa.schema([(f"c{i}", arrow_type(relation.columns[i].type)) for i in columns])
    rows = 0
    with told(path):
        sink = pq.ParquetWriter(path, schema, compression="none", store_decimal_as_integer=True)
    try:
        for batch in task.batches():
            with told(path):
                sink.write_batch(batch)
            rows += batch.num_rows
    finally:
        with told(path):
            sink.close()
    return [str(path)], rows


def _store_by_spark(
    spark: SparkSession,
    tasks: Sequence[Task],
    relation: RelationSchema,
    columns: Sequence[int],
    path: Path,
) -> tuple[list[str], int]:
    ddl = ", ".join(f"c{i} {relation.columns[i].type}" for i in columns)
    numbers = spark.range(0, len(tasks), 1, len(tasks))
    with spark_told(path):
        with this_python(spark):
            rows = numbers.mapInArrow(_reader(list(tasks)), ddl)
        rows.write.mode("overwrite").parquet(str(path))
        files = sorted(str(p) for p in path.glob("*.parquet"))
        return files, sum(pq.read_metadata(f).num_rows for f in files)


@contextmanager
def this_python(spark: SparkSession) -> Iterator[None]:
    """Executors on this machine run this Python: the first on the path may not know our tasks."""
    context = spark.sparkContext
    given = context.pythonExec
    if (context.master or "").startswith("local"):
        context.pythonExec = sys.executable
    try:
        yield
    finally:
        context.pythonExec = given


def _reader(
    tasks: list[Task],
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The tasks travel inside the function, so that no connection setting shows up in a plan."""

    def read(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                try:
                    yield from tasks[number].batches()
                except SteadyviewError as error:
                    raise Carried(error) from None

    return read
