"""Rows under names that statements read them by: from Parquet files, or at hand if they are few.

Files are temporary views of the session. Rows at hand become one only for a statement that needs
it: one over rows at hand alone is run by `prepared`. The schema is always declared: nothing is
inferred.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Sequence
from itertools import count
from pathlib import Path
from threading import Lock

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from steadyview.changes import RelationSchema
from steadyview.engine.failures import spark_told
from steadyview.engine.local_rows import LOCAL_BYTES, LOCAL_ROWS, struct
from steadyview.engine.prepared import Input, place, preparations

_numbers = count(1)
_OURS = f"sv_{secrets.token_hex(4)}"
"""What all names begin with: no text of anybody's has it, not even in a literal."""
_NAME = re.compile(rf"{_OURS}_\w+")


def column_ddl(relation: RelationSchema, columns: Iterable[int]) -> str:
    """Stored columns of a relation as a Spark schema.

    Column numbers keep their order: `c0 BIGINT, c2 STRING`.
    """
    return ", ".join(f"c{i} {relation.columns[i].type}" for i in columns)


class Frames:
    """Names of rows, forgotten together. Any thread may make some, and read all."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self._names: list[str] = []
        self._at_hand: dict[str, Input] = {}
        self._lock = Lock()

    def sql(self, text: str) -> DataFrame:
        """A statement over these names, as Spark runs it."""
        with self._lock:
            for name in sorted(self._at_hand.keys() & {*_NAME.findall(text)} - {*self._names}):
                self._frame_of(self._at_hand[name]).createOrReplaceTempView(name)
                self._names.append(name)
        return self.spark.sql(text)

    def _frame_of(self, given: Input) -> DataFrame:
        if not given.rows.num_rows:
            return self.spark.sql(_nothing(", ".join(f"{n} {t}" for n, t in given.columns)))
        return self.spark.createDataFrame(given.rows, schema=struct(given.columns))

    def collected(self, text: str) -> pa.Table:
        """The rows of a statement over these names; see `prepared`."""
        names = list(dict.fromkeys(_NAME.findall(text)))
        if all(name in self._at_hand for name in names):
            places = {name: place(i) for i, name in enumerate(names)}
            plain = _NAME.sub(lambda found: places[found[0]], text)
            found = preparations(self.spark).rows(plain, [self._at_hand[n] for n in names])
            if found is not None:
                return found
        return self.sql(text).toArrow()

    def parquet(self, label: str, paths: Sequence[str], ddl: str) -> str:
        """A temporary view over the files; its name. No files: an empty relation of that schema."""
        if not paths:
            return self.query(label, _nothing(ddl))
        with spark_told(Path(paths[0]).parent):
            found = self.spark.read.schema(ddl).parquet(*paths)
        return self.frame(label, found)

    def rows(self, label: str, table: pa.Table, columns: Sequence[tuple[str, str]]) -> str:
        """A name of rows at hand, with these columns and types."""
        # in one piece: Spark stops reading at a piece without rows, and says nothing
        listed = table.select([name for name, _ in columns]).combine_chunks()
        name = _named(label)
        self._at_hand[name] = Input(tuple(columns), listed)
        return name

    def few(
        self, label: str, table: pa.Table, columns: Sequence[tuple[str, str]], folder: Path
    ) -> str:
        """The same, by way of a file in the folder where the rows are not so few; its name."""
        if table.num_rows <= LOCAL_ROWS and table.nbytes <= LOCAL_BYTES:
            return self.rows(label, table, columns)
        path = new_file(folder, label)
        pq.write_table(table, path, compression="none", store_decimal_as_integer=True)
        return self.parquet(label, [str(path)], ", ".join(f"{n} {t}" for n, t in columns))

    def query(self, label: str, sql: str) -> str:
        """A temporary view of a query; its name."""
        return self.frame(label, self.sql(sql))

    def frame(self, label: str, frame: DataFrame) -> str:
        """A temporary view of a frame of this session; its name."""
        name = _named(label)
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
        self._at_hand.clear()


def new_file(folder: Path, label: str) -> Path:
    """A place for rows in the folder, for a file or for Spark's folder of files; used by nobody."""
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{label}-{next(_numbers):06d}.parquet"


def _named(label: str) -> str:
    return f"{_OURS}_{label}_{next(_numbers)}"


def _nothing(ddl: str) -> str:
    """A query with that schema and no rows; planned away by Spark."""
    columns = re.findall(r"(`(?:[^`]|``)+`|\w+) ([A-Z_]+(?:\(\d+,\s*\d+\))?)", ddl)
    listed = ", ".join(f"CAST(NULL AS {type_}) AS {name}" for name, type_ in columns)
    return f"SELECT {listed} WHERE FALSE"
