"""A view's table for other programs: a plain Delta table of exactly the SELECT's columns.

    views/<name>     the rows at one published cn, one per copy; the cn is in each commit's mark

One commit leads from a cn to a later one: files that hold rows which went are written again without
them, rows that came are new files, all others stay. See `owned_table` for how a table is ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from steadyview.catalog.views import ViewRow
from steadyview.changes import arrow_type
from steadyview.delta import FileEntry
from steadyview.warehouse.owned_table import OwnedTable, TableOwner
from steadyview.warehouse.row_files import (
    RowGroup,
    below_zero,
    copies,
    net_change,
    row_groups,
    rows_of,
    without,
)
from steadyview.warehouse.table_mark import TABLES, TableMark, table_folder
from steadyview.warehouse.view_store import ViewStore

_SMALL = 50_000
_MANY = 8
"""More files than these with fewer rows than those are written as one."""
_MOST = 1_000_000
"""With more changed rows the table is written whole."""


class ViewTable(OwnedTable):
    """The table of one view."""

    def __init__(self, owner: TableOwner, store: ViewStore, row: ViewRow, time: str | None) -> None:
        assert row.cn is not None
        mark = TableMark(row.name, row.cn, time, row.id)
        columns = store.shape.visible
        schema = pa.schema([(n, arrow_type(t)) for n, t in columns])
        super().__init__(owner, table_folder(owner.root, TABLES, row.name), mark, schema)
        self._store = store
        self._row = row
        self._columns = columns

    def _moved(self, before: TableMark) -> bool:
        """Write what has changed since; False where that cannot be told, or is too much."""
        if not self._row.oldest_cn <= before.cn <= self._mark.cn:
            return False
        delta = self._row.delta_version or 0
        files = self._store.delta_files(delta, before.cn, self._mark.cn)
        if sum(f.rows for f in files) > _MOST:
            return False
        change = net_change(self._store, delta, before.cn, self._mark.cn)
        if change.empty:
            return self._commit([], [])
        listed = self._table.files(self._version)
        groups, missing = without(row_groups(listed), change.gone, self._columns)
        if missing.num_rows:
            return False
        anew = _to_write(listed, groups)
        kept = [g for g in groups if g.path in anew]
        rows = _both(kept, copies(change.come, self._columns), self._columns)
        added = self._written(rows, self._table)
        return self._commit(added, [f.relative for f in listed if f.path in anew])

    def _all_rows(self) -> Iterator[pa.Table]:
        row, base = self._row, self._store.base.files(self._row.base_version)
        assert row.base_cn is not None
        groups, come = row_groups(base), None
        if row.base_cn != self._mark.cn:
            change = net_change(
                self._store, row.delta_version or 0, row.base_cn, self._mark.cn
            )
            groups, missing = without(groups, change.gone, self._columns)
            if missing.num_rows:
                raise below_zero(row.name, self._columns, self._mark.cn, missing)
            come = copies(change.come, self._columns)
        return _both(groups, come, self._columns)


def _both(
    groups: Sequence[RowGroup], come: pa.Table | None, columns: Sequence[tuple[str, str]]
) -> Iterator[pa.Table]:
    """The rows of these row groups, then those that came."""
    for group in groups:
        yield from rows_of(group, columns)
    if come is not None:
        yield come


def _to_write(listed: Sequence[FileEntry], groups: Sequence[RowGroup]) -> set[str]:
    """The files that hold rows which go, and the small ones if there are many."""
    touched = {g.path for g in groups if len(g.gone)}
    small = {f.path for f in listed if f.rows < _SMALL}
    return touched | small if len(small) > _MANY else touched
