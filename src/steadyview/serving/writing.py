"""Rows of a view into its records: by one Arrow table here, or by a plain Spark job of many tasks.

Both do the same to all rows of a key: post-images, a look whether a key has one row, then upserts
in calls of bounded size. A task of a job may run twice, late, or beside its successor: every record
is guarded by its cn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from steadyview.changes import arrow_type
from steadyview.errors import SteadyviewError
from steadyview.serving.contract import RecordStore
from steadyview.serving.images import COUNT, Images, images_of_changes, images_of_state
from steadyview.serving.layout import CN, RecordLayout, Records
from steadyview.serving.stores import open_store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ROWS = 1_000
"""Records that are written in one call, at most."""
BYTES = 4 * 1024 * 1024
"""And about so many bytes, unless one record alone has more."""
PER_TASK = 50_000
"""Rows that a task of a job has at hand, about."""
_TOLD = "twice STRING, records BIGINT"


@dataclass(frozen=True)
class Written:
    """What was written: so many `records`; keys that have more than one row at some cn."""

    records: int = 0
    twice: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Batch:
    """What is written: the state at `cn`, or the changes of the view after the cn `after`.

    A state has the view's columns, changes `_count` and `_cn` as well.
    """

    records: Records
    cn: int | None = None
    after: int = 0

    @property
    def schema(self) -> pa.Schema:
        """Of the rows."""
        columns = [(n, arrow_type(t)) for n, t in self.records.layout.columns]
        if self.cn is None:
            columns += [(COUNT, pa.int64()), (CN, pa.int64())]
        return pa.schema(columns)

    def images(self, rows: pa.Table) -> Images:
        """The post-images of these rows."""
        layout: RecordLayout = self.records.layout
        rows = rows.select(self.schema.names).cast(self.schema)
        if self.cn is None:
            return images_of_changes(rows, layout)
        return images_of_state(rows, layout, self.cn)


def write(store: RecordStore, batch: Batch, rows: pa.Table) -> Written:
    """Write all rows of some keys; nothing, where a key has two rows."""
    images = batch.images(rows)
    twice = images.twice.to_pylist()
    if len(images.new):
        watermark, there = store.there(batch.records, images.new.to_pylist())
        # by another watermark somebody else was quicker, and has looked
        twice += there if watermark == batch.after else []
    if twice:
        return Written(twice=twice)
    for piece in pieces(images.rows):
        store.upsert(batch.records, piece)
    return Written(images.rows.num_rows)


def pieces(rows: pa.Table) -> Iterator[pa.Table]:
    """The rows in calls of bounded size."""
    if not rows.num_rows:
        return
    sizes = np.full(rows.num_rows, 64, dtype=np.int64)
    for column in rows.columns:
        if pa.types.is_string(column.type) or pa.types.is_binary(column.type):
            sizes += pc.fill_null(pc.binary_length(column), 0).to_numpy()
    ends = np.cumsum(sizes)
    start = 0
    while start < rows.num_rows:
        before = ends[start - 1] if start else 0
        most = int(np.searchsorted(ends, before + BYTES, side="right"))
        end = max(start + 1, min(start + ROWS, most))
        yield rows.slice(start, end - start)
        start = end


def write_by_spark(
    frame: DataFrame, rows: int, store: tuple[str, Mapping[str, Any]], batch: Batch, folder: Path
) -> Written:
    """The same by tasks of a Spark job, each with all rows of its keys.

    `rows`: about how many; `store`: its name and settings, which travel inside the function, so
    that no credential shows up in a plan; `folder`: where the rows are read.
    """
    # imported late: a small batch needs no Spark
    from steadyview.engine.answers import this_python
    from steadyview.engine.failures import spark_told

    spark = frame.sparkSession
    key = [frame[_quoted(name)] for name in batch.records.layout.key]
    tasks = max(spark.sparkContext.defaultParallelism, -(-rows // PER_TASK))
    writer = _writer(store[0], dict(store[1]), batch)
    with spark_told(folder), this_python(spark):
        told = frame.repartition(tasks, *key).mapInArrow(writer, _TOLD).toArrow()
    return Written(pc.sum(told["records"]).as_py() or 0, told["twice"].drop_null().to_pylist())


def _writer(
    store: str, settings: dict[str, Any], batch: Batch
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def written(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        # imported late: the function travels without it
        from steadyview.engine.carried import Carried

        held = [b for b in batches if b.num_rows]
        if not held:
            return
        try:
            with open_store(store, settings) as opened:
                found = write(opened, batch, pa.Table.from_batches(held))
        except SteadyviewError as error:
            raise Carried(error) from None
        keys = pa.array([None, *found.twice], pa.string())
        counts = pa.array([found.records, *[0] * len(found.twice)], pa.int64())
        yield pa.record_batch([keys, counts], names=["twice", "records"])

    return written


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
