"""The inputs of a batch: relations of frozen sources, and nodes that others keep.

A relation's answers reflect what its source's snapshot shows; a node's are its rows at the cn c of
its base and reflect exactly {s <= c}, whatever c is. Both have a log: the update log, and the
node's own view delta.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from steadyview.changes import RelationName, RelationSchema, arrow_type
from steadyview.delta.parquet import CHECKED, reading
from steadyview.engine.answers import store
from steadyview.engine.frames import Frames, new_file
from steadyview.engine.tagged_log import Admitted, LogTagger
from steadyview.engine.window_input import ARROW_LIMIT, REFLECTED, Rows, WindowInput
from steadyview.plans.ends import Ends
from steadyview.plans.moves import CN
from steadyview.plans.versions import COUNT, Logged, Reply
from steadyview.query.moment import Moment
from steadyview.sources.contract import Read, ReadTask, Snapshot
from steadyview.update_log import UpdateLog
from steadyview.warehouse.view_store import ViewStore


class RelationInputs:
    """Makes the inputs of a batch that are relations."""

    def __init__(
        self,
        frames: Frames,
        folder: Path,
        moment: Moment,
        admitted: Mapping[str, Admitted],
        log: UpdateLog,
    ) -> None:
        self._frames = frames
        self._folder = folder
        self._moment = moment
        self._admitted = admitted
        self._log = log
        self._tagger = LogTagger(frames, folder, admitted)

    def made(self, relation: RelationSchema, columns: Sequence[int], after: int) -> WindowInput:
        """The input for windows that start at cn `after` or later; StorageDamaged by its log."""
        types = {i: relation.columns[i].type for i in columns}
        stored = self._moment.stored.get(relation.name)
        if stored is not None:
            whole = Rows(None, tuple(stored), _count(stored))
            nothing = Rows.of(_no_log(types))
            return WindowInput(self._frames, self._folder, types, nothing, lambda *_: whole)
        admitted = self._admitted[relation.name.source]
        files = self._log.entries(relation.name, admitted.first, admitted.last)
        listed = [(f.path, f.rows) for f in files]
        log = self._tagger.tag(relation, listed, columns, after)
        snapshot = self._moment.snapshots[relation.name.source]
        asked = _Asked(self._frames, self._folder, snapshot, relation, tuple(columns))
        return WindowInput(self._frames, self._folder, types, log, asked.fetch)


class _Asked:
    """Asks a frozen source about one relation."""

    def __init__(
        self,
        frames: Frames,
        folder: Path,
        snapshot: Snapshot,
        relation: RelationSchema,
        columns: tuple[int, ...],
    ) -> None:
        self._frames = frames
        self._folder = folder
        self._snapshot = snapshot
        self._relation = relation
        self._columns = columns

    def fetch(self, column: int | None, keys: pa.Array | None) -> Rows:
        """All rows, or those with one of the keys in the column and no others."""
        if column is None or keys is None:
            return self._whole()
        (task,) = self._snapshot.tasks(Read(self._relation, self._columns, column, keys), 1)
        schema = pa.schema([(f"c{i}", self._type(i)) for i in self._columns])
        batches = []
        for batch in task.batches():
            # a source's equality may be coarser than Spark's: a collation without case
            found = pc.is_in(batch.column(schema.get_field_index(f"c{column}")), value_set=keys)
            batches.append(batch.filter(found))
        return Rows.of(pa.Table.from_batches(batches, schema))

    def _type(self, column: int) -> pa.DataType:
        return arrow_type(self._relation.columns[column].type)

    def _whole(self) -> Rows:
        spark = self._frames.spark
        read = Read(self._relation, self._columns)
        parallelism = spark.sparkContext.defaultParallelism
        tasks: Sequence[ReadTask] = self._snapshot.tasks(read, parallelism)
        path = new_file(self._folder, "answer")
        files, rows = store(spark, tasks, self._relation, self._columns, path)
        if rows > ARROW_LIMIT:
            return Rows(None, tuple(files), rows)
        schema = pa.schema([(f"c{i}", self._type(i)) for i in self._columns])
        read_back = [pq.read_table(f, schema=schema) for f in files]
        return Rows.of(pa.concat_tables([schema.empty_table(), *read_back]))


def node_input(
    frames: Frames,
    folder: Path,
    store: ViewStore,
    columns: Sequence[int],
    window: tuple[int, int],
) -> WindowInput:
    """A node as an input over the window: its rows at its newest base, its change around."""
    base = store.newest_base()
    types = {i: store.shape.visible[i][1] for i in columns}
    low, high = min(base.cn, window[0]), max(base.cn, window[1])
    files = [f.path for f in store.delta_files(store.delta.version(), low, high)]
    log = _delta(store, files, types, low, high, base.cn)

    def fetch(column: int | None, keys: pa.Array | None) -> Rows:
        paths = [f.path for f in store.base.files(base.version)]
        return _base_rows(store, paths, types, column, keys)

    return WindowInput(frames, folder, types, log, fetch)


def at_ends(whole: WindowInput, ends: Ends, window: tuple[int, int]) -> WindowInput:
    """A node's input where ends are enough: of its rows at the window's start, and its change."""
    log = whole.log.table
    assert log is not None
    shown = log[REFLECTED].to_numpy(zero_copy_only=False).astype(bool)

    def fetch(column: int | None, keys: pa.Array | None) -> Rows:
        rows, name = whole.fetch(column, keys).table, None if column is None else f"c{column}"
        return Rows.of(ends.at(window, Reply(rows, shown, name, keys), Logged(log)))

    inside = log.filter((pc.field(CN) > window[0]) & (pc.field(CN) <= window[1]))
    later = pa.array(np.zeros(inside.num_rows, dtype=bool))
    inside = inside.set_column(inside.schema.get_field_index(REFLECTED), REFLECTED, later)
    return WindowInput(whole.frames, whole.folder, whole.types, Rows.of(inside), fetch)


def _delta(
    store: ViewStore, files: list[str], types: Mapping[int, str], low: int, high: int, at: int
) -> Rows:
    if not files:
        return Rows.of(_no_log(types))
    schema = pa.schema([(f"c{i}", arrow_type(t)) for i, t in types.items()])
    schema = schema.append(pa.field(COUNT, pa.int64())).append(pa.field(CN, pa.int64()))
    within = (pc.field(CN) > low) & (pc.field(CN) <= high)
    with reading(store.delta.path, files):
        rows = ds.dataset(files, schema=schema, format=CHECKED).to_table(filter=within)
    shown = pc.less_equal(rows[CN], at)
    return Rows.of(rows.append_column(REFLECTED, shown))


def _base_rows(
    store: ViewStore,
    paths: list[str],
    types: Mapping[int, str],
    column: int | None,
    keys: pa.Array | None,
) -> Rows:
    """Rows of the base under the names `c0`, `c1`, ..."""
    names = {i: store.shape.visible[i][0] for i in types}
    schema = pa.schema([(names[i], arrow_type(t)) for i, t in types.items()])
    if not paths:
        empty = schema.empty_table()
        return Rows.of(empty.rename_columns([f"c{i}" for i in types]))
    wanted = None
    if column is not None and keys is not None:
        wanted = pc.field(names[column]).isin(keys)
    with reading(store.base.path, paths):
        rows = ds.dataset(paths, schema=schema, format=CHECKED).to_table(filter=wanted)
    return Rows.of(rows.rename_columns([f"c{i}" for i in types]))


def _no_log(types: Mapping[int, str]) -> pa.Table:
    fields = [(f"c{i}", arrow_type(t)) for i, t in types.items()]
    log = [(COUNT, pa.int64()), (CN, pa.int64()), (REFLECTED, pa.bool_())]
    return pa.schema([*fields, *log]).empty_table()


def _count(paths: Sequence[str]) -> int:
    return sum(pq.read_metadata(path).num_rows for path in paths)


def rows_per_cn(inputs: Mapping[RelationName, WindowInput]) -> tuple[np.ndarray, np.ndarray]:
    """The cns that have logged rows, ascending, and how many each."""
    cns = np.concatenate([np.zeros(0, np.int64), *(i.cns() for i in inputs.values())])
    distinct, rows = np.unique(cns, return_counts=True)
    return distinct, rows
