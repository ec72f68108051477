"""Whether the records of a view that is served from the log go on, or begin anew, and with what.

    records at positions p   ->  managers go on behind p          while the log reaches back to p
    the view's state at cn   ->  records at p = positions of cn   of a new incarnation, otherwise

The first state is what the warehouse has of the view at one cn: its groups with their hidden sums,
or its rows. A cn is a position in each source, so entries go on exactly behind it. It is loaded
under a stream of its own, of one entry; like any other operation it may be done twice.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from steadyview.catalog import ViewRow
from steadyview.crash_points import crash_point
from steadyview.errors import SteadyviewError, StorageUnavailable, StoreRefused
from steadyview.plans.fold import Fold
from steadyview.runtime.file_reading import state_parts
from steadyview.runtime.kept import recalled
from steadyview.runtime.managers.lanes import Lanes, LogServed, committed
from steadyview.runtime.managers.log_entries import stream_text
from steadyview.runtime.managers.record_view import RecordView
from steadyview.runtime.parts import Parts
from steadyview.runtime.record_batches import SMALL, Target
from steadyview.serving.contract import Addition, Position, Put, RecordStore, ServedView
from steadyview.serving.layout import Records
from steadyview.serving.stores import open_store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from steadyview.warehouse.view_store import ViewStore

FIRST = "first state"
"""The stream of what records begin with; it has one entry."""
ROWS_TOGETHER = 1_000
RECLAIM = 60.0
"""Seconds between two looks for tombstones that nobody needs."""


class LogRecords:
    """Brings the records of views that are served from the log to where managers can go on."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._catalog = parts.catalog
        self._reclaimed: dict[str, float] = {}

    def bring(
        self, target: Target, row: ViewRow, known: ServedView | None, view: RecordView
    ) -> LogServed | None:
        """What managers are to keep; None where the view stands still.

        StoreRefused where something else is in its place.
        """
        identity = self._catalog.identity()
        if known is not None and known.warehouse != identity:
            raise StoreRefused(
                f'another warehouse serves a view "{row.name}" in store "{target.name}"',
                hint="give one of the two another store, or another name",
            )
        if row.state != "active":
            return None
        why = self._anew(target, row, known, view)
        if why is not None:
            records = self._rebuild(target, row, view, identity, why)
        elif known is None or known.records is None or known.error is not None:
            return None
        else:
            records = known.records
            self._reclaim(target, records)
        return LogServed(target.name, target.settings, records, view)

    def catch_up(self, target: Target, served: LogServed) -> None:
        """Apply, in this process, all that is admitted now."""
        lanes = Lanes(served, target.store, self._catalog, self._parts.log)
        lanes.take(list(served.streams.values()))
        while lanes.poll():
            pass
        lanes.finish()

    def _anew(
        self, target: Target, row: ViewRow, known: ServedView | None, view: RecordView
    ) -> str | None:
        """Why the records begin anew; None: they go on."""
        if known is None:
            return "there were none"
        if known.wanted:
            return "somebody asked for it"
        begun = known.begun
        if known.error and begun and (begun.node, begun.layout) == (row.id, view.layout):
            return None
        records = known.records
        if records is None:
            return "there were none"
        if records.node != row.id:
            return "the view was built anew"
        if records.layout != view.layout:
            return "its columns, its key or its way are others"
        return self._lost(target, row, records, view)

    def _lost(
        self, target: Target, row: ViewRow, records: Records, view: RecordView
    ) -> str | None:
        """Whether entries behind what is registered are gone, or are not ours."""
        commits = self._catalog.commits
        served = LogServed(target.name, target.settings, records, view)
        known = target.store.positions(records)
        for stream in served.streams.values():
            at = known.get(stream_text(stream), Position(0, 0, 0))
            oldest = commits.seq_upto(stream.source, commits.oldest_cn())
            if at.entry < oldest:
                return f'the log of "{stream.source}" after entry {at.entry} is not kept any more'
            ahead = at.entry > self._catalog.sources.state(stream.source).last_seq
            time_ = committed(self._catalog, stream.source, at.entry) if at.entry else 0
            if ahead or (at.entry > oldest and at.time != time_):
                raise StoreRefused(
                    f'view "{row.name}" has records of another past in store "{target.name}"',
                    detail=f'entry {at.entry} of "{stream.source}" is not the one they are at: a'
                    " copy of this warehouse wrote them, or it was itself restored from a backup",
                    hint=f"run: steadyview serve rebuild {row.name}",
                )
        return None

    def _reclaim(self, target: Target, records: Records) -> None:
        """Raise the floors to what is registered, and drop the tombstones that they cover."""
        now = time.monotonic()
        if now - self._reclaimed.setdefault(records.name, now) < RECLAIM:
            return
        self._reclaimed[records.name] = now
        for stream, position in target.store.positions(records).items():
            if position.entry > position.floor:
                target.store.reclaim(records, stream, position.entry)

    # --- first state -------------------------------------------------------------------------

    def _rebuild(
        self, target: Target, row: ViewRow, view: RecordView, identity: str, why: str
    ) -> Records:
        assert row.cn is not None
        store, commits = target.store, self._catalog.commits
        at = {source: commits.seq_upto(source, row.cn) for source in view.sources}
        store.sweep(row.name)
        records = store.begin(view.layout, identity, row.id, why)
        served = LogServed(target.name, target.settings, records, view)
        self._load(target, served, row)
        crash_point("records-written")
        for stream in served.streams.values():
            seq = at[stream.source]
            store.move(
                records, stream_text(stream), seq, committed(self._catalog, stream.source, seq)
            )
        store.switch(records, FIRST, Position(1, commits.time_of(row.cn), 1))
        store.sweep(row.name)
        return records

    def _load(self, target: Target, served: LogServed, row: ViewRow) -> None:
        few = self._few_rows(served.view, row)
        if few is not None:
            for batch in few.to_batches(max_chunksize=ROWS_TOGETHER):
                _store_rows(served, target.store, batch)
            return
        # imported late: records that go on need no Spark
        from steadyview.engine.answers import this_python
        from steadyview.engine.failures import spark_told
        from steadyview.engine.frames import Frames
        from steadyview.engine.session import beside

        spark = beside(self._parts.spark)
        frames = Frames(spark)
        try:
            with spark_told(self._parts.root):
                rows = self._rows(frames, served.view, row)
                with this_python(spark):
                    told = rows.mapInArrow(_loader(served), "nothing INT")
                told.collect()
        finally:
            frames.drop()

    def _few_rows(self, view: RecordView, row: ViewRow) -> pa.Table | None:
        """The same as `_rows` without Spark, where that is no work for Arrow alone."""
        from steadyview.warehouse.apply import few_states
        from steadyview.warehouse.view_store import ViewStore

        assert row.cn is not None
        if view.keyed:
            return self._few_keyed(view, row, row.cn)
        fold = view.node.fold
        assert fold is not None
        store = ViewStore(self._parts.root, row, recalled(row).shape)
        before = store.state_cn()
        found = few_states(store, row.cn)
        _check_still(store, before, row)
        if found is None:
            return None
        sums = [name for name, _ in view.layout.sums]
        return found.filter(pc.greater(found[sums[0]], 0)).select([*_keys(view, fold), *sums])

    def _few_keyed(self, view: RecordView, row: ViewRow, cn: int) -> pa.Table | None:
        parts = state_parts(self._parts.root, self._catalog, row.id, cn)
        there = sum(group.left for part in parts for group in part.groups)
        if there + sum(p.come.num_rows for p in parts if p.come is not None) > SMALL:
            return None
        names = [*view.layout.key, *(n for n, _ in view.layout.values)]
        pieces = [piece.select(names) for part in parts for piece in part.rows()]
        return pa.concat_tables(pieces) if pieces else None

    def _rows(self, frames: Any, view: RecordView, row: ViewRow) -> DataFrame:
        """The view's groups with their sums, or its rows; columns of the key first."""
        from steadyview.runtime.serving import rows_reaching
        from steadyview.warehouse.apply import state_at
        from steadyview.warehouse.view_store import ViewStore

        assert row.cn is not None
        if view.keyed:
            names = [*view.layout.key, *(n for n, _ in view.layout.values)]
            rows = rows_reaching(self._parts, frames.spark, row, row.cn)
            return rows.select(*(rows[_quoted(name)] for name in names))
        fold = view.node.fold
        assert fold is not None
        store = ViewStore(self._parts.root, row, recalled(row).shape)
        before = store.state_cn()
        found = state_at(frames, store, row.cn)
        _check_still(store, before, row)
        keys = _keys(view, fold)
        sums = [name for name, _ in view.layout.sums]
        return found.where(f"{sums[0]} > 0").select(*keys, *sums)


def _check_still(store: ViewStore, before: int, row: ViewRow) -> None:
    """Who keeps the views may roll their states on meanwhile."""
    if before > (row.cn or 0) or store.state_cn() != before:
        raise StorageUnavailable(f'the state of "{row.name}" moved on', hint="it is tried again")


def _keys(view: RecordView, fold: Fold) -> list[str]:
    """What the state calls the columns of the record's key, in the key's order."""
    by_sql = {key.sql: key.name for key in fold.keys}
    return [by_sql[sql] for sql in view.key]


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _loader(served: LogServed) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def load(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        # imported late: the function travels without it
        from steadyview.engine.carried import Carried

        try:
            with open_store(served.store, served.settings) as store:
                for batch in batches:
                    for start in range(0, batch.num_rows, ROWS_TOGETHER):
                        _store_rows(served, store, batch.slice(start, ROWS_TOGETHER))
        except SteadyviewError as error:
            raise Carried(error) from None
        return iter(())

    return load


def _store_rows(served: LogServed, store: RecordStore, batch: pa.RecordBatch) -> None:
    rows = list(zip(*(column.to_pylist() for column in batch.columns), strict=True))
    layout, width = served.records.layout, len(served.records.layout.key)
    if served.view.keyed:
        names = [name for name, _ in layout.values]
        puts = [Put(r[:width], 1, _named(names, r[width:])) for r in rows]
        store.put(served.records, FIRST, puts)
        return
    names = [name for name, _ in layout.sums]
    whole = [not type_.startswith("DECIMAL") for _, type_ in layout.sums]
    found = []
    for row in rows:
        values = [int(v) if w else v for v, w in zip(row[width:], whole, strict=True)]
        found.append(Addition(row[:width], 1, _named(names, values)))
    store.add(served.records, FIRST, found)


def _named(names: list[str], values: Iterable[Any]) -> Mapping[str, Any]:
    return dict(zip(names, values, strict=True))
