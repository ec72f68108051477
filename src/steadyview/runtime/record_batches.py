"""What is to be written into a store: what a view's change table says, or all of its rows.

    records at W  ->  changes (W, cn]  ->  records at cn          while the changes of W on are kept
    nothing       ->  state at cn      ->  records at cn          of a new incarnation, otherwise

After a batch's last record its position is written, and only then are readers shown its cn. Killed
anywhere in between, the next life reads the position in the store and does the batch again, cut as
it may be by then. A store that was restored from a backup has the position of that time; one that
is empty, has other columns or another view's rows is written anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from steadyview.catalog import ViewRow
from steadyview.crash_points import crash_point
from steadyview.errors import DefiniteError, OutsideRetention, StoreRefused
from steadyview.runtime.file_reading import state_parts
from steadyview.runtime.kept import shape_of
from steadyview.runtime.parts import Parts
from steadyview.runtime.served_rows import layout_of
from steadyview.serving.contract import Position, RecordStore, ServedView
from steadyview.serving.layout import CHANGES, Records
from steadyview.serving.writing import Batch, Written, write, write_by_spark
from steadyview.warehouse.change_rows import ChangeRows
from steadyview.warehouse.view_store import CN, COUNT, ViewStore

SMALL = 5_000
"""Rows up to which a batch is written by this process; larger ones are a Spark job."""


class KeyNotUnique(DefiniteError):
    """A view that is served has several rows of one key at a cn."""


@dataclass(frozen=True)
class Target:
    """A store of the project and the open connection to it."""

    name: str
    settings: Mapping[str, Any]
    store: RecordStore


class RecordBatches:
    """Brings the records of views to the cn that each shows."""

    def __init__(self, parts: Parts, target: Target) -> None:
        self._parts = parts
        self._catalog = parts.catalog
        self._target = target
        self._store = target.store

    def bring(self, row: ViewRow, known: ServedView | None) -> bool:
        """Have the view's records at its cn; whether anything was written.

        KeyNotUnique where they cannot be; StoreRefused where something else is in its place.
        """
        assert row.cn is not None
        identity = self._catalog.identity()
        if known is not None and known.warehouse != identity:
            raise StoreRefused(
                f'another warehouse serves a view "{row.name}" in store "{self._target.name}"',
                hint="give one of the two another store, or another name",
            )
        why = self._anew(row, known)
        if why is not None:
            self._rebuild(row, identity, why)
            return True
        if known is None or known.records is None or known.error is not None:
            return False
        return self._go_on(row, known.records)

    def _anew(self, row: ViewRow, known: ServedView | None) -> str | None:
        """Why the records are to be written anew; None: they go on from where they are."""
        if known is None:
            return "there were none"
        begun = known.begun
        if known.wanted:
            return "somebody asked for it"
        if known.error and begun and (begun.node, begun.layout) == (row.id, layout_of(row)):
            return None
        if known.records is None:
            return "there were none"
        records = known.records
        if records.node != row.id:
            return "the view was built anew"
        if records.layout != layout_of(row):
            return "its columns or its key are others"
        position = self._store.position(records, CHANGES)
        if position.entry == row.cn:
            return None
        if row.kind != "incremental":
            return "the view is recomputed, and has no changes"
        if position.entry < row.oldest_cn:
            return f"the changes after cn {position.entry} are not kept any more"
        self._check_history(row, position)
        return None

    def _check_history(self, row: ViewRow, position: Position) -> None:
        """StoreRefused unless the store has come to this very commit of ours."""
        try:
            same = position.entry <= (row.cn or 0) and position.time == self._time(position.entry)
        except OutsideRetention:
            same = True
        if not same:
            raise StoreRefused(
                f'view "{row.name}" has records of another past in store "{self._target.name}"',
                detail=f"they are at a cn {position.entry} that this warehouse does not know: a"
                " copy of it wrote them, or it was itself restored from a backup",
                hint=f"run: steadyview serve rebuild {row.name}",
            )

    def _time(self, cn: int) -> int:
        return self._catalog.commits.time_of(cn) if cn else 0

    # --- changes -----------------------------------------------------------------------------

    def _go_on(self, row: ViewRow, records: Records) -> bool:
        assert row.cn is not None
        position = self._store.position(records, CHANGES)
        if position.entry == row.cn:
            return False
        written = self._changes(row, records, position.entry)
        self._check_unique(row, written)
        crash_point("records-written")
        self._store.move(records, CHANGES, row.cn, self._time(row.cn))
        if position.entry > position.floor:
            # no reader of a watermark before this one needs them
            self._store.reclaim(records, CHANGES, position.entry)
        return True

    def _changes(self, row: ViewRow, records: Records, after: int) -> Written:
        assert row.cn is not None
        batch = Batch(records, after=after)
        store = ViewStore(self._parts.root, row, shape_of(row))
        files = store.delta_files(store.delta.version(), after, row.cn)
        rows = sum(file.rows for file in files)
        if rows <= SMALL:
            changes = ChangeRows(store, self._catalog.commits, row.cn).rows(after, row.cn)
            return write(self._store, batch, changes)
        # imported late: small batches need no Spark
        from steadyview.engine.session import beside
        from steadyview.warehouse.states import States

        spark = beside(self._parts.spark)
        states = States(spark, store)
        delta = states.changed_sql(after, row.cn, store.delta.version())
        if delta is None:
            return Written()
        names = [*(name for name, _ in store.shape.visible), COUNT, CN]
        frame = spark.sql(f"SELECT * FROM {delta}").toDF(*names)
        try:
            return self._by_spark(frame, rows, batch)
        finally:
            states.drop()

    # --- states ------------------------------------------------------------------------------

    def _rebuild(self, row: ViewRow, identity: str, why: str) -> None:
        assert row.cn is not None
        self._store.sweep(row.name)
        records = self._store.begin(layout_of(row), identity, row.id, why)
        written = self._state(row, records)
        self._check_unique(row, written)
        crash_point("records-written")
        position = Position(row.cn, self._time(row.cn), row.cn)
        self._store.switch(records, CHANGES, position)
        self._store.sweep(row.name)

    def _state(self, row: ViewRow, records: Records) -> Written:
        assert row.cn is not None
        batch = Batch(records, row.cn)
        parts = state_parts(self._parts.root, self._catalog, row.id, row.cn)
        there = sum(group.left for part in parts for group in part.groups)
        rows = there + sum(part.come.num_rows for part in parts if part.come is not None)
        if rows <= SMALL:
            held = [batch.schema.empty_table(), *(t for part in parts for t in part.rows())]
            found = [t.select(batch.schema.names).cast(batch.schema) for t in held]
            return write(self._store, batch, pa.concat_tables(found))
        # imported late: small views need no Spark
        from steadyview.engine.session import beside
        from steadyview.runtime.serving import rows_reaching

        spark = beside(self._parts.spark)
        return self._by_spark(rows_reaching(self._parts, spark, row, row.cn), rows, batch)

    def _by_spark(self, frame: Any, rows: int, batch: Batch) -> Written:
        target = self._target
        return write_by_spark(frame, rows, (target.name, target.settings), batch, self._parts.root)

    # --- keys --------------------------------------------------------------------------------

    def _check_unique(self, row: ViewRow, written: Written) -> None:
        """KeyNotUnique if a key had two rows at some cn."""
        if not written.twice:
            return
        listed = ", ".join(layout_of(row).key)
        raise KeyNotUnique(
            f'view "{row.name}" has several rows of one key up to cn {row.cn}',
            detail=f"key ({listed}), for example {written.twice[0][:200]}",
            hint="name columns in 'steadyview.serve.key' whose values are in one row at most;"
            f" then run: steadyview serve rebuild {row.name}",
        )
