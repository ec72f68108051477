"""The part of a relation's update log that a batch can meet, each row tagged with its cn.

For the batch (a, b] of a view and the set P that the relation's snapshot reflects, a log row of
transaction s matters if s > a (the batch's own, or reflected already) or if s is not in P (an
earlier one that the snapshot does not show yet). Everything else is in every state the batch looks
at.

Small logs are tagged through Arrow, large ones by a Spark join with the commit table's part and P
as a file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from steadyview.changes import RelationSchema, arrow_type
from steadyview.changes.types import COUNT, SEQ
from steadyview.delta.parquet import CHECKED, reading
from steadyview.engine.failures import spark_told
from steadyview.engine.frames import Frames, column_ddl, new_file
from steadyview.engine.window_input import ARROW_LIMIT, Rows

_COMMIT = "_cn BIGINT, _reflected BOOLEAN"


@dataclass(frozen=True)
class Admitted:
    """Transactions of one source: seq `first`, first + 1, ... with cn and whether P has them."""

    first: int
    cn: np.ndarray
    reflected: np.ndarray

    @property
    def last(self) -> int:
        """The largest seq; first - 1 if there is none."""
        return self.first + len(self.cn) - 1

    def mattering(self, after: int) -> np.ndarray:
        """Which of them a batch that starts after cn `after` can meet."""
        found: np.ndarray = (self.cn > after) | ~self.reflected
        return found

    def signs(self, cn: int) -> np.ndarray:
        """Per transaction, how its rows lead an answer to cn: taken back (-1), added (1), let be.

        >>> reflected = np.array([True, False, True, False])
        >>> Admitted(1, np.array([4, 5, 8, 9]), reflected).signs(cn=7).tolist()
        [0, 1, -1, 0]
        """
        found: np.ndarray = (self.cn <= cn).astype(np.int64) - self.reflected
        return found


def without_idle_updates(rows: pa.Table) -> pa.Table:
    """The log rows without updates that changed none of the columns: old and new image are alike.

    >>> rows = {"c0": [7, 7, 7, 8], "_count": [-1, 1, -1, 1], "_seq": [4, 4, 5, 5]}
    >>> without_idle_updates(pa.table(rows)).to_pydict()
    {'c0': [7, 8], '_count': [-1, 1], '_seq': [5, 5]}
    """
    if rows.num_rows < 2:
        return rows
    count = rows[COUNT].to_numpy()
    idle = (count[:-1] < 0) & (count[:-1] == -count[1:])
    for column in rows.drop_columns([COUNT]).itercolumns():
        if not idle.any():
            return rows
        idle &= _alike(column)
    kept = np.ones(rows.num_rows, dtype=bool)
    kept[:-1] &= ~idle
    kept[1:] &= ~idle
    return rows.filter(pa.array(kept))


def _alike(column: pa.ChunkedArray) -> np.ndarray:
    """Per row but the last: whether the next one has the very same value (0.0 is not -0.0)."""
    values = pa.concat_arrays(column.chunks)
    if pa.types.is_floating(values.type):
        values = values.view(pa.int64() if values.type == pa.float64() else pa.int32())
    one, other = values.slice(0, len(values) - 1), values.slice(1)
    same = pc.or_(pc.coalesce(pc.equal(one, other), False), pc.and_(one.is_null(), other.is_null()))
    alike: np.ndarray = same.to_numpy(zero_copy_only=False)
    return alike


class LogTagger:
    """Makes the tagged logs of one batch in its work folder; usable from several threads."""

    def __init__(self, frames: Frames, folder: Path, admitted: Mapping[str, Admitted]) -> None:
        self._frames = frames
        self._folder = folder
        self._admitted = admitted

    def tag(
        self,
        relation: RelationSchema,
        files: Sequence[tuple[str, int]],
        columns: Sequence[int],
        after: int,
    ) -> Rows:
        """The rows of the files (path, rows) that matter to batches starting after cn `after`."""
        admitted = self._admitted[relation.name.source]
        columns = tuple(sorted(columns))
        small = sum(rows for _, rows in files) <= ARROW_LIMIT
        tag = self._by_arrow if small else self._by_spark
        with spark_told(self._folder):
            return tag(relation, [p for p, _ in files], columns, admitted, after)

    def _by_arrow(
        self,
        relation: RelationSchema,
        files: Sequence[str],
        columns: Sequence[int],
        admitted: Admitted,
        after: int,
    ) -> Rows:
        schema = pa.schema([(f"c{i}", arrow_type(relation.columns[i].type)) for i in columns])
        schema = schema.append(pa.field(COUNT, pa.int32())).append(pa.field(SEQ, pa.int64()))
        if not files or not len(admitted.cn):
            return Rows.of(_tagged(schema.empty_table(), admitted, after))
        within = (ds.field(SEQ) >= admitted.first) & (ds.field(SEQ) <= admitted.last)
        with reading(Path(files[0]).parent, files):
            table = ds.dataset(list(files), schema=schema, format=CHECKED).to_table(filter=within)
        return Rows.of(_tagged(without_idle_updates(table), admitted, after))

    def _by_spark(
        self,
        relation: RelationSchema,
        files: Sequence[str],
        columns: Sequence[int],
        admitted: Admitted,
        after: int,
    ) -> Rows:
        keep = admitted.mattering(after)
        seqs = np.arange(admitted.first, admitted.last + 1)[keep]
        mapping = pa.table(
            {SEQ: seqs, "_cn": admitted.cn[keep], "_reflected": admitted.reflected[keep]}
        )
        path = new_file(self._folder, "log")
        commits = path.with_suffix(".commits.parquet")
        pq.write_table(mapping, commits, compression="none")
        ddl = f"{column_ddl(relation, columns)}, {COUNT} INT, {SEQ} BIGINT".removeprefix(", ")
        log = self._frames.parquet("raw", files, ddl)
        table = self._frames.parquet("commits", [str(commits)], f"{SEQ} BIGINT, {_COMMIT}")
        names = "".join(f"l.c{i}, " for i in columns)
        self._frames.spark.sql(
            f"SELECT {names}l.{COUNT}, m._cn, m._reflected "
            f"FROM {log} l JOIN {table} m USING ({SEQ})"
        ).write.mode("overwrite").parquet(str(path))
        paths = sorted(str(p) for p in path.glob("*.parquet"))
        return Rows(None, tuple(paths), sum(pq.read_metadata(p).num_rows for p in paths))

def _tagged(table: pa.Table, admitted: Admitted, after: int) -> pa.Table:
    """The rows that matter, with cn and whether P has them."""
    place = table[SEQ].to_numpy() - admitted.first
    matters = admitted.mattering(after)[place]
    place = place[matters]
    tagged = table.drop_columns([SEQ]).filter(pa.array(matters))
    tagged = tagged.append_column("_cn", pa.array(admitted.cn[place], pa.int64()))
    return tagged.append_column("_reflected", pa.array(admitted.reflected[place], pa.bool_()))
