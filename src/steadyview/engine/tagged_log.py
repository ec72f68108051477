"""The part of a relation's update log that a batch can meet, each row tagged with its cn.

For the batch (a, b] of a view and the set P that the relation's snapshot reflects, a log row of
transaction s matters if s > a (the batch's own, or reflected already) or if s is not in P (an
earlier one that the snapshot does not show yet). Everything else is in every state the batch looks
at.

The commit table and P reach Spark as columns of these files, `_cn` and `_reflected`; small logs are
tagged through Arrow, large ones by a Spark join with the same mapping as a file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
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
from steadyview.engine.frames import Frames, column_ddl

_COMMIT = "_cn BIGINT, _reflected BOOLEAN, _own BOOLEAN"
TAGS = f"{COUNT} INT, {_COMMIT}"
"""The columns of a tagged log behind the relation's own."""
ARROW_LIMIT = 200_000
"""Up to so many rows may pass the driver (law 1)."""


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
        return (self.cn > after) | ~self.reflected


@dataclass(frozen=True)
class TaggedLog:
    """Log rows of one relation: files, the temporary view over them, how many, and P's shape.

    `_own` marks the rows after cn `after`: a column, not a number in the SQL text, because Spark
    compiles a plan anew whenever a number in it changes.
    """

    relation: RelationSchema
    view: str
    paths: tuple[str, ...]
    columns: tuple[int, ...]
    rows: int
    cn_high: int
    after: int
    _hottest: dict[int, int] = field(default_factory=dict, compare=False)
    _per_cn: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list, compare=False)

    def with_answer(self, frames: Frames, paths: Sequence[str]) -> str:
        """A temporary view over an answer's files and the log's, which has `TAGS` if it has rows.

        The answer's rows are those whose tags are NULL.
        """
        ddl = column_ddl(self.relation, self.columns)
        ddl = f"{ddl}, {TAGS}" if self.paths else ddl
        return frames.parquet("answer", [*paths, *self.paths], ddl)

    def per_cn(self) -> tuple[np.ndarray, np.ndarray]:
        """The cns that have rows, ascending, and how many each."""
        if not self._per_cn:
            found = [np.unique(_cns(path), return_counts=True) for path in self.paths]
            cns = np.concatenate([cns for cns, _ in found] or [np.zeros(0, np.int64)])
            rows = np.concatenate([rows for _, rows in found] or [np.zeros(0, np.int64)])
            distinct, place = np.unique(cns, return_inverse=True)
            self._per_cn.append((distinct, np.bincount(place, rows, len(distinct)).astype(int)))
        return self._per_cn[0]

    def rows_within(self, after: int, upto: int) -> int:
        """How many rows have a cn in (after, upto]."""
        if after <= self.after and self.cn_high <= upto:
            return self.rows
        cns, rows = self.per_cn()
        first, last = np.searchsorted(cns, (after, upto), side="right")
        return int(rows[first:last].sum())

    def touched(self, after: int, upto: int) -> bool:
        """Whether there may be a row with a cn in (after, upto]."""
        if self.cn_high <= upto:
            return self.cn_high > after
        return self.rows_within(after, upto) > 0

    def hottest(self, column: int) -> int:
        """The largest number of log rows that share one value of the column."""
        if column not in self._hottest:
            values = read_column(self.paths, column)
            counts = pc.value_counts(values)
            top = pc.max(counts.field("counts")).as_py() if len(counts) else 0
            self._hottest[column] = top
        return self._hottest[column]


def read_column(paths: Sequence[str], column: int) -> pa.ChunkedArray:
    """One stored column of some Parquet files."""
    name = f"c{column}"
    if not paths:
        return pa.chunked_array([pa.nulls(0)])
    return pa.chunked_array(
        [chunk for p in paths for chunk in pq.read_table(p, columns=[name])[name].chunks]
        or [pa.nulls(0)]
    )


def _cns(path: str) -> np.ndarray:
    found: np.ndarray = pq.read_table(path, columns=["_cn"])["_cn"].to_numpy()
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
    return same.to_numpy(zero_copy_only=False)


class LogTagger:
    """Makes the tagged logs of one batch in its work folder; usable from several threads."""

    def __init__(self, frames: Frames, folder: Path, admitted: Mapping[str, Admitted]) -> None:
        self._frames = frames
        self._folder = folder
        self._admitted = admitted
        self._numbers = count(1)

    def tag(
        self,
        relation: RelationSchema,
        files: Sequence[tuple[str, int]],
        columns: Sequence[int],
        after: int,
    ) -> TaggedLog:
        """The rows of the files (path, rows) that matter to batches starting after cn `after`."""
        admitted = self._admitted[relation.name.source]
        columns = tuple(sorted(columns))
        small = sum(rows for _, rows in files) <= ARROW_LIMIT
        tag = self._by_arrow if small else self._by_spark
        with spark_told(self._folder):
            paths, rows, high = tag(relation, [p for p, _ in files], columns, admitted, after)
        ddl = f"{column_ddl(relation, columns)}, {TAGS}"
        view = self._frames.parquet("log", paths, ddl.removeprefix(", "))
        return TaggedLog(relation, view, tuple(paths), columns, rows, high, after)

    def _by_arrow(
        self,
        relation: RelationSchema,
        files: Sequence[str],
        columns: Sequence[int],
        admitted: Admitted,
        after: int,
    ) -> tuple[list[str], int, int]:
        if not files or not len(admitted.cn):
            return [], 0, 0
        within = (ds.field(SEQ) >= admitted.first) & (ds.field(SEQ) <= admitted.last)
        schema = pa.schema([(f"c{i}", arrow_type(relation.columns[i].type)) for i in columns])
        schema = schema.append(pa.field(COUNT, pa.int32())).append(pa.field(SEQ, pa.int64()))
        with reading(Path(files[0]).parent, files):
            table = ds.dataset(list(files), schema=schema, format=CHECKED).to_table(filter=within)
        table = without_idle_updates(table)
        place = table[SEQ].to_numpy() - admitted.first
        matters = admitted.mattering(after)[place]
        place = place[matters]
        cn, reflected = admitted.cn[place], admitted.reflected[place]
        tagged = table.drop_columns([SEQ]).filter(pa.array(matters))
        for name, values in (("_cn", cn), ("_reflected", reflected), ("_own", cn > after)):
            tagged = tagged.append_column(name, pa.array(values))
        if not tagged.num_rows:
            return [], 0, 0
        path = self._path()
        pq.write_table(tagged, path, compression="none")
        return [str(path)], tagged.num_rows, int(cn.max())

    def _by_spark(
        self,
        relation: RelationSchema,
        files: Sequence[str],
        columns: Sequence[int],
        admitted: Admitted,
        after: int,
    ) -> tuple[list[str], int, int]:
        keep = admitted.mattering(after)
        seqs = np.arange(admitted.first, admitted.last + 1)[keep]
        cn = admitted.cn[keep]
        mapping = pa.table(
            {SEQ: seqs, "_cn": cn, "_reflected": admitted.reflected[keep], "_own": cn > after}
        )
        path = self._path()
        commits = path.with_suffix(".commits.parquet")
        pq.write_table(mapping, commits, compression="none")
        ddl = f"{column_ddl(relation, columns)}, {COUNT} INT, {SEQ} BIGINT".removeprefix(", ")
        log = self._frames.parquet("raw", files, ddl)
        table = self._frames.parquet("commits", [str(commits)], f"{SEQ} BIGINT, {_COMMIT}")
        names = "".join(f"l.c{i}, " for i in columns)
        self._frames.spark.sql(
            f"SELECT {names}l.{COUNT}, m._cn, m._reflected, m._own "
            f"FROM {log} l JOIN {table} m USING ({SEQ})"
        ).write.mode("overwrite").parquet(str(path))
        paths = sorted(str(p) for p in path.glob("*.parquet"))
        rows = sum(pq.read_metadata(p).num_rows for p in paths)
        return (paths, rows, int(cn.max())) if rows else ([], 0, 0)

    def _path(self) -> Path:
        self._folder.mkdir(parents=True, exist_ok=True)
        return self._folder / f"log-{next(self._numbers):04d}.parquet"
