"""All rows of a store at its watermark, as Arrow tables: what `serve verify` compares."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa

from steadyview.changes import arrow_type
from steadyview.serving.contract import Position
from steadyview.serving.layout import CHANGES, Columns, Records

if TYPE_CHECKING:
    from steadyview.serving.sql_store import SqlStore


@contextmanager
def rows_at_watermark(
    store: SqlStore, records: Records
) -> Iterator[tuple[int, Iterator[pa.Table]]]:
    """The watermark and the rows at it, all of one moment."""
    columns = records.layout.columns
    with store.reading():
        position = store.position(records, CHANGES)
        pieces = store.streamed(store.shown_sql(records), ())
        yield position.entry, (as_table(store, piece, columns) for piece in pieces)


@contextmanager
def settled_rows(
    store: SqlStore, records: Records
) -> Iterator[tuple[dict[str, Position] | None, Iterator[pa.Table]]]:
    """The positions of records from the update log and the rows at them, all of one moment."""
    columns = records.layout.columns
    with store.reading():
        positions = store.positions(records) if store.is_settled(records) else None
        pieces = store.streamed(store.shown_sql(records), ())
        yield positions, (as_table(store, piece, columns) for piece in pieces)


def as_table(store: SqlStore, rows: list[tuple[object, ...]], columns: Columns) -> pa.Table:
    """Stored rows under the view's columns."""
    stored = list(zip(*rows, strict=True)) if rows else [()] * len(columns)
    arrays = [
        pa.array([store.decoded(v, t) for v in values], arrow_type(t))
        for values, (_, t) in zip(stored, columns, strict=True)
    ]
    return pa.table(arrays, names=[name for name, _ in columns])
