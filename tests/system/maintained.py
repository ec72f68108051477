"""Driving an open warehouse step by step: capture alone, a batch, what the delta says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable
from pyspark.sql import DataFrame

from steadyview.algebra import Bag, Row
from steadyview.runtime.warehouse import Warehouse
from steadyview.warehouse import apply
from steadyview.warehouse.view_store import ViewStore

Admit = Callable[[str], int]
"""Return, once all that a source committed is admitted, the newest cn."""


@contextmanager
def capturing(wh: Warehouse) -> Iterator[Admit]:
    """Capture runs, no view is maintained."""
    with wh._following() as wait_for:

        def admit(source: str) -> int:
            snapshot = wh._parts.sources[source].snapshot()
            try:
                wait_for(source, snapshot.horizon)
            finally:
                snapshot.close()
            return wh._catalog.commits.last_cn()

        yield admit


@contextmanager
def rolling() -> Iterator[None]:
    """Every base is rolled that has a residual, however small."""
    usual, apply.RESIDUAL_FILES = apply.RESIDUAL_FILES, 0
    try:
        yield
    finally:
        apply.RESIDUAL_FILES = usual


def bag(frame: DataFrame) -> Bag[Row]:
    """The rows of a frame, counted."""
    return table_bag(frame.toArrow())


def table_bag(table: pa.Table) -> Bag[Row]:
    """The rows of a table, counted."""
    return Bag.of(tuple(row.values()) for row in _unnamed(table).to_pylist())


def _unnamed(table: pa.Table) -> pa.Table:
    """Columns may share a name; their places do not."""
    return table.rename_columns([str(i) for i in range(table.num_columns)])


def read(wh: Warehouse, view: str, at: Any = None) -> Bag[Row]:
    """The view's rows at a cn or time."""
    return bag(wh.view(view).read(at=at))


def stored(wh: Warehouse, view: str) -> ViewStore:
    """Where the view's rows lie."""
    plan = wh._plan(view)
    return ViewStore(wh.project.warehouse, wh._catalog.views.get(view), plan.shape)


def delta_rows(wh: Warehouse, view: str) -> list[dict[str, Any]]:
    """The whole view delta, read without Spark."""
    table = DeltaTable(stored(wh, view).delta.path).to_pyarrow_table()
    return list(table.to_pylist())


def changes(wh: Warehouse, view: str) -> dict[int, Bag[Row]]:
    """The view delta by cn."""
    found: dict[int, Bag[Row]] = {}
    for row in delta_rows(wh, view):
        count, cn = row.pop("_count"), row.pop("_cn")
        found[cn] = found.get(cn, Bag()) + Bag([(tuple(row.values()), count)])
    return found


def base_table(wh: Warehouse, view: str, version: int | None = None) -> pa.Table:
    """The view's base as any Delta reader sees it."""
    return DeltaTable(stored(wh, view).base.path, version=version).to_pyarrow_table()
