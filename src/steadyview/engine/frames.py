"""Rows as temporary views of the session: from Parquet files, or from memory if they are few.

The schema is always declared: nothing is inferred.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import count
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from steadyview.changes import RelationSchema
from steadyview.engine.failures import spark_told
from steadyview.engine.local_rows import LOCAL_ROWS, struct

_numbers = count(1)


def column_ddl(relation: RelationSchema, columns: Iterable[int]) -> str:
    """Stored columns of a relation as a Spark schema.

    Column numbers keep their order: `c0 BIGINT, c2 STRING`.
    """
    return ", ".join(f"c{i} {relation.columns[i].type}" for i in columns)


class Frames:
    """Temporary views over files, dropped together."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self._names: list[str] = []

    def parquet(self, label: str, paths: Sequence[str], ddl: str) -> str:
        """A temporary view over the files; its name. No files: an empty relation of that schema."""
        if not paths:
            return self.query(label, _nothing(ddl))
        with spark_told(Path(paths[0]).parent):
            found = self.spark.read.schema(ddl).parquet(*paths)
        return self.frame(label, found)

    def rows(self, label: str, table: pa.Table, columns: Sequence[tuple[str, str]]) -> str:
        """A temporary view of rows at hand, with these columns and types; its name."""
        # in one piece: Spark stops reading at a piece without rows, and says nothing
        listed = table.select([name for name, _ in columns]).combine_chunks()
        if not listed.num_rows:
            return self.query(label, _nothing(", ".join(f"{n} {t}" for n, t in columns)))
        found = self.spark.createDataFrame(listed, schema=struct(columns))
        return self.frame(label, found)

    def few(
        self, label: str, table: pa.Table, columns: Sequence[tuple[str, str]], folder: Path
    ) -> str:
        """The same, by way of a file in the folder where the rows are not so few; its name."""
        if table.num_rows <= LOCAL_ROWS:
            return self.rows(label, table, columns)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{label}-{next(_numbers):06d}.parquet"
        pq.write_table(table, path, compression="none", store_decimal_as_integer=True)
        return self.parquet(label, [str(path)], ", ".join(f"{n} {t}" for n, t in columns))

    def query(self, label: str, sql: str) -> str:
        """A temporary view of a query; its name."""
        return self.frame(label, self.spark.sql(sql))

    def frame(self, label: str, frame: DataFrame) -> str:
        """A temporary view of a frame of this session; its name."""
        name = f"sv_{label}_{next(_numbers)}"
        frame.createOrReplaceTempView(name)
        self._names.append(name)
        return name

    def drop_one(self, name: str) -> None:
        """Forget one view made here."""
        self.spark.catalog.dropTempView(name)
        self._names.remove(name)

    def drop(self) -> None:
        """Forget every view made here."""
        for name in self._names:
            self.spark.catalog.dropTempView(name)
        self._names.clear()


def _nothing(ddl: str) -> str:
    """A query with that schema and no rows; planned away by Spark."""
    columns = re.findall(r"(`(?:[^`]|``)+`|\w+) ([A-Z_]+(?:\(\d+,\s*\d+\))?)", ddl)
    listed = ", ".join(f"CAST(NULL AS {type_}) AS {name}" for name, type_ in columns)
    return f"SELECT {listed} WHERE FALSE"
