"""The lookups of one batch, shared by all views.

All answers of a batch are over the same frozen states, so an answer by (relation, column) serves
every view and every occurrence that asks by that column: only values not yet asked for are sent,
and a relation that was read whole is never asked again, be it in an earlier life.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from threading import Lock

import pyarrow as pa
import pyarrow.compute as pc

from steadyview.changes import RelationName, RelationSchema, arrow_type
from steadyview.engine.answers import store
from steadyview.engine.frames import Frames
from steadyview.engine.spark_algebra import Answer, Keys
from steadyview.engine.tagged_log import ARROW_LIMIT, TaggedLog
from steadyview.maintenance import EdgeLookup
from steadyview.runtime.moment import Moment
from steadyview.sources.contract import Read, ReadTask

_Topic = tuple[RelationName, int | None]


@dataclass
class _Known:
    """What was answered about one relation by one column (None: whole)."""

    values: pa.Array | None = None
    paths: list[str] = field(default_factory=list)
    view: str | None = None


@dataclass(frozen=True)
class _Asked:
    """A source's answer without rows that were not asked for.

    Where the source's equality is coarser than Spark's (a collation without case), two questions of
    one batch would both bring the row, and it would count twice.
    """

    task: ReadTask
    key: int | None
    values: pa.Array

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows whose key is exactly one of the values."""
        for batch in self.task.batches():
            keys = batch.column(batch.schema.get_field_index(f"c{self.key}"))
            yield batch.filter(pc.is_in(keys, value_set=self.values))


class Lookups:
    """Asks sources, keeps the answers as files, counts what was asked."""

    def __init__(
        self,
        frames: Frames,
        folder: Path,
        moment: Moment,
        columns: Mapping[RelationName, tuple[int, ...]],
        logs: Mapping[RelationName, TaggedLog],
    ) -> None:
        self.sent = 0
        self.rows = 0
        self._frames = frames
        self._folder = folder
        self._snapshots = moment.snapshots
        self._columns = columns
        self._logs = logs
        self._known: dict[_Topic, _Known] = {
            (name, None): _Known(paths=list(paths)) for name, paths in moment.stored.items()
        }
        self._numbers = count(1)
        self._lock = Lock()

    def answer(self, asks: Iterable[EdgeLookup[Keys]]) -> list[Answer]:
        """One answer per ask, in order; each holds at least what was asked for."""
        asks = list(asks)
        wanted = self._gathered(asks)
        with ThreadPoolExecutor(max(len(wanted), 1), "lookup") as pool:
            list(pool.map(self._send, wanted))
            list(pool.map(self._register, {self._topic(ask) for ask in asks}))
        return [self._answer(ask) for ask in asks]

    def _topic(self, ask: EdgeLookup[Keys]) -> _Topic:
        relation = ask.occurrence.relation.name
        whole = (relation, None)
        if ask.keys is None or ask.edge.key is None or whole in self._known:
            return whole
        return whole if len(ask.keys.values) > ARROW_LIMIT else (relation, ask.edge.key.to_column)

    def _gathered(self, asks: list[EdgeLookup[Keys]]) -> list[Read]:
        """The questions still to be sent, asks on one topic as one question."""
        topics: dict[_Topic, tuple[RelationSchema, list[pa.Array]]] = {}
        for ask in asks:
            relation = ask.occurrence.relation
            topic = self._topic(ask)
            values = topics.setdefault(topic, (relation, []))[1]
            if topic[1] is not None and ask.keys is not None:
                values.append(as_key(ask.keys.values, relation, topic[1]))
        reads = [self._read(topic, relation, v) for topic, (relation, v) in topics.items()]
        return [r for r in reads if r is not None]

    def _read(self, topic: _Topic, relation: RelationSchema, asked: list[pa.Array]) -> Read | None:
        columns = self._columns[relation.name]
        key = topic[1]
        if key is None:
            return None if topic in self._known else Read(relation, columns)
        known = self._known.setdefault(topic, _Known())
        values = pc.unique(pa.chunked_array(asked, type=arrow_type(relation.columns[key].type)))
        if known.values is not None:
            values = values.filter(pc.invert(pc.is_in(values, known.values)))
        if not len(values):
            return None
        known.values = values if known.values is None else pa.concat_arrays([known.values, values])
        return Read(relation, columns, key, values)

    def _send(self, read: Read) -> None:
        snapshot = self._snapshots[read.relation.name.source]
        parallelism = self._frames.spark.sparkContext.defaultParallelism if read.key is None else 1
        tasks: Sequence[ReadTask | _Asked] = snapshot.tasks(read, parallelism)
        if read.values is not None:
            tasks = [_Asked(task, read.key, read.values) for task in tasks]
        path = self._folder / f"answer-{next(self._numbers):04d}.parquet"
        files, rows = store(self._frames.spark, tasks, read.relation, read.columns, path)
        with self._lock:
            self.sent += 1
            self.rows += rows
            known = self._known.setdefault((read.relation.name, read.key), _Known())
            known.paths.extend(files if rows else [])
            known.view = None

    def _register(self, topic: _Topic) -> None:
        known = self._known[topic]
        if known.view is None:
            known.view = self._logs[topic[0]].with_answer(self._frames, known.paths)

    def _answer(self, ask: EdgeLookup[Keys]) -> Answer:
        known = self._known[self._topic(ask)]
        assert known.view is not None
        logged = bool(self._logs[ask.occurrence.relation.name].paths)
        column = ask.edge.key.to_column if ask.edge.key else None
        return Answer(known.view, tuple(known.paths), column, logged)


def as_key(values: pa.Array, relation: RelationSchema, column: int) -> pa.Array:
    """The values in the column's own type; those that cannot be there are left out."""
    wanted = arrow_type(relation.columns[column].type)
    if values.type == wanted:
        return values
    if pa.types.is_integer(wanted):
        bits = wanted.bit_width - 1
        wide = values.cast(pa.int64())
        fits = pc.and_(pc.greater_equal(wide, -(2**bits)), pc.less_equal(wide, 2**bits - 1))
        return wide.filter(fits).cast(wanted)
    return _exact_decimals(values, wanted)


def _exact_decimals(values: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Decimals that the wanted type holds exactly."""
    kept = []
    for value in values.to_pylist():
        try:
            kept.append(pa.scalar(value, type=wanted))
        except pa.ArrowInvalid:
            continue
    return pa.array([k.as_py() for k in kept], type=wanted)
