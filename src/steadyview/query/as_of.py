"""A source relation as of a past cn, from an answer of now and the update log.

    R(cn)  =  answer  -  { log rows in the answer, after cn }  +  { not in it, up to cn }

Written for verification and for recomputed views: whole relations under their own names, one row
per copy, nothing shared with the incremental maintenance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from steadyview.changes import RelationSchema
from steadyview.changes.types import COUNT, SEQ
from steadyview.engine.answers import store
from steadyview.engine.frames import Frames, column_ddl
from steadyview.sources.contract import Read, Snapshot
from steadyview.update_log import UpdateLog


@dataclass(frozen=True)
class Reflection:
    """Of one source: seq `first`, first + 1, ... with cn and whether the answer shows it."""

    first: int
    cn: np.ndarray
    reflected: np.ndarray


class RelationsAsOf:
    """Relations of frozen sources at one cn, as temporary views."""

    def __init__(self, frames: Frames, folder: Path, log: UpdateLog, cn: int) -> None:
        self.compensated = 0
        self._frames = frames
        self._folder = folder
        self._log = log
        self._cn = cn

    def view(
        self,
        relation: RelationSchema,
        columns: Sequence[int],
        snapshot: Snapshot,
        reflection: Reflection,
    ) -> str:
        """A temporary view with the relation's rows at the cn, columns named as at the source."""
        number = len(list(self._folder.iterdir()))
        spark = self._frames.spark
        parallelism = spark.sparkContext.defaultParallelism
        tasks = snapshot.tasks(Read(relation, tuple(columns)), parallelism)
        path = self._folder / f"relation-{number:03d}.parquet"
        files, _ = store(spark, tasks, relation, columns, path)
        ddl = column_ddl(relation, columns)
        rows = self._frames.parquet("relation", files, ddl)
        changes = self._changes(relation, columns, reflection)
        if changes.num_rows:
            self.compensated += changes.num_rows
            rows = self._compensated(rows, changes, ddl, columns, path)
        return self._named(relation, columns, rows)

    def _changes(
        self, relation: RelationSchema, columns: Sequence[int], reflection: Reflection
    ) -> pa.Table:
        """The log rows that turn the answer into the state at the cn, with the count to add."""
        last = reflection.first + len(reflection.cn) - 1
        names = [f"c{i}" for i in columns]
        schema = self._log.schema(relation.name)
        files = self._log.files(relation.name, reflection.first, last)
        within = (ds.field(SEQ) >= reflection.first) & (ds.field(SEQ) <= last)
        log = ds.dataset(files, schema=schema, format="parquet").to_table(
            columns=[*names, COUNT, SEQ], filter=within
        )
        place = log[SEQ].to_numpy() - reflection.first
        after = reflection.cn[place] > self._cn
        shown = reflection.reflected[place]
        counts = log[COUNT].to_numpy()
        signed = np.where(shown & after, -counts, np.where(~shown & ~after, counts, 0))
        table = log.select(names).append_column("n", pa.array(signed.astype(np.int64)))
        return table.filter(pa.array(signed != 0))

    def _compensated(
        self, rows: str, changes: pa.Table, ddl: str, columns: Sequence[int], path: Path
    ) -> str:
        file = path.with_suffix(".changes.parquet")
        pq.write_table(changes, file, store_decimal_as_integer=True)
        log = self._frames.parquet("changes", [str(file)], f"{ddl}, n BIGINT")
        listed = ", ".join(f"c{i}" for i in columns)
        return (
            f"(SELECT {listed} FROM (SELECT {listed}, SUM(n) AS n FROM (SELECT {listed}, 1L AS n "
            f"FROM {rows} UNION ALL SELECT {listed}, n FROM {log}) GROUP BY {listed}) "
            "LATERAL VIEW EXPLODE(SEQUENCE(1L, n)) AS copy WHERE n > 0)"
        )

    def _named(self, relation: RelationSchema, columns: Sequence[int], rows: str) -> str:
        listed = ", ".join(
            f"c{i} AS `{relation.columns[i].name.replace('`', '``')}`" for i in columns
        )
        return self._frames.query("as_of", f"SELECT {listed} FROM {rows}")
