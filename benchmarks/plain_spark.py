"""A full refresh as a Spark user writes it: Parquet files of all relations, the SELECT, a write.

There is no JDBC driver here without a jar, so relations are exported by what the databases offer
themselves: COPY of PostgreSQL, SELECT of SQLite, turned to Parquet by Arrow. The export is measured
apart from the refresh. Spark runs as it comes, adaptive execution on; it is only told how many
cores there are. Shares nothing with the product but the Java process, so it also says what a view's
rows should be.
"""

from __future__ import annotations

import io
import re
import shutil
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import psycopg
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from psycopg import sql
from pyspark.sql import DataFrame, SparkSession

Columns = Sequence[str]
_FILE_ROWS = 500_000
"""Rows of a file: every core should have some."""
_BLOCK = 1 << 22
_TYPES = {20: pa.int64(), 23: pa.int32(), 1082: pa.date32(), 25: pa.string(), 1042: pa.string()}
"""PostgreSQL's type numbers of the columns of TPC-H, but for numeric."""
_NUMERIC = 1700
_DECLARED = {"INTEGER": pa.int64(), "TEXT": pa.string(), "DECIMAL(15,2)": pa.decimal128(15, 2)}
"""Types of SQLite's columns."""


class PlainSpark:
    """A session of a user's own over Parquet files; relations are called source.table."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark = spark.newSession()
        self._spark.conf.set("spark.sql.adaptive.enabled", "true")
        cores = spark.sparkContext.defaultParallelism
        self._spark.conf.set("spark.sql.shuffle.partitions", str(cores))
        self.folder = folder
        folder.mkdir(parents=True)
        self._names: dict[str, str] = {}

    def export(self, relation: str, batches: Iterable[pa.RecordBatch]) -> float:
        """Write a relation's rows in place of those of an earlier export; seconds."""
        started = time.perf_counter()
        path = self.folder / relation
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir()
        for number, rows in enumerate(_files(batches)):
            pq.write_table(rows, path / f"{number}.parquet", compression="zstd")
        self._names[relation] = relation.replace(".", "__")
        return time.perf_counter() - started

    def refresh(self, text: str) -> float:
        """Read, compute, write; seconds."""
        started = time.perf_counter()
        self.rows(text).write.mode("overwrite").parquet(str(self.folder / "refreshed"))
        return time.perf_counter() - started

    def rows(self, text: str) -> DataFrame:
        """What the SELECT gives over the files."""
        for relation, name in self._names.items():
            self._spark.read.parquet(str(self.folder / relation)).createOrReplaceTempView(name)
            text = re.sub(rf"\b{re.escape(relation)}\b", name, text)
        return self._spark.sql(text)


def from_postgres(
    connection: psycopg.Connection, table: str, columns: Columns
) -> Iterator[pa.RecordBatch]:
    """A table's rows by COPY."""
    names = sql.SQL(", ").join(map(sql.Identifier, columns))
    select = sql.SQL("SELECT {} FROM {}").format(names, sql.Identifier(table))
    described = connection.execute(select + sql.SQL(" LIMIT 0")).description or ()
    types = {
        c.name: pa.decimal128(c.precision, c.scale)
        if c.type_code == _NUMERIC
        else _TYPES[c.type_code]
        for c in described
    }
    with (
        connection.cursor() as cursor,
        cursor.copy(sql.SQL("COPY ({}) TO STDOUT (FORMAT csv)").format(select)) as copy,
    ):
        yield from pa_csv.open_csv(
            pa.PythonFile(_Blocks(iter(copy)), mode="r"),
            read_options=pa_csv.ReadOptions(column_names=list(types), block_size=_BLOCK),
            convert_options=pa_csv.ConvertOptions(column_types=types, strings_can_be_null=False),
        )


class _Blocks(io.RawIOBase):
    """What an iterator of bytes yields, to be read like a file."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks
        self._rest = b""

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        found = [self._rest]
        length = len(self._rest)
        while (size < 0 or length < size) and (block := next(self._blocks, None)) is not None:
            found.append(bytes(block))
            length += len(block)
        whole = b"".join(found)
        cut = len(whole) if size < 0 else size
        self._rest = whole[cut:]
        return whole[:cut]


def from_sqlite(path: Path, table: str, types: Mapping[str, str]) -> Iterator[pa.RecordBatch]:
    """A table's rows by SELECT; `types`: columns and what they are declared as."""
    connection = sqlite3.connect(path)
    try:
        cursor = connection.execute(f"SELECT {', '.join(types)} FROM {table}")
        while rows := cursor.fetchmany(_FILE_ROWS):
            columns = [
                pa.array(values).cast(_DECLARED[type_])
                for values, type_ in zip(zip(*rows, strict=True), types.values(), strict=True)
            ]
            yield pa.record_batch(columns, names=list(types))
    finally:
        connection.close()


def _files(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """The batches, put together to what a file holds."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(b.num_rows for b in waiting) >= _FILE_ROWS:
            yield pa.Table.from_batches(waiting)
            waiting = []
    if waiting:
        yield pa.Table.from_batches(waiting)
