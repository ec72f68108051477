"""A view's table for other programs: a plain Delta table of exactly the SELECT's columns.

    views/<name>     the rows at one published cn, one per copy; the cn is in each commit's mark

One commit leads from a cn to a later one: files that hold rows which went are written again without
them, rows that came are new files, all others stay. A table that is missing, foreign, damaged, or
of a view that was built anew, is written whole, in one commit as well: nobody ever sees half. What
was not committed when a process was killed is litter, and goes with the next vacuum. No Spark.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pyarrow as pa

from steadyview.catalog.views import ViewRow
from steadyview.changes import arrow_type
from steadyview.crash_points import crash_point
from steadyview.delta import AddedFile, FileEntry, ParquetSink, Table
from steadyview.delta.durability import make_folder, sync_folder
from steadyview.delta.failures import told
from steadyview.delta.files import check_whole
from steadyview.errors import StorageDamaged
from steadyview.warehouse.row_files import (
    RowGroup,
    below_zero,
    copies,
    net_change,
    row_groups,
    rows_of,
    without,
)
from steadyview.warehouse.table_mark import TableMark, read_mark, table_folder
from steadyview.warehouse.view_store import ViewStore

_APP = "table"
_ROWS = 250_000
"""Rows of a file, at most about so many."""
_SMALL = 50_000
_MANY = 8
"""More files than these with fewer rows than those are written as one."""
_MOST = 1_000_000
"""With more changed rows the table is written whole."""
_WAREHOUSE = "steadyview.warehouse"


@dataclass(frozen=True)
class TableOwner:
    """The warehouse that a table belongs to: its folder, its identity, and a folder for work."""

    root: Path
    identity: str
    work: Path


class ViewTable:
    """The table of one view."""

    def __init__(self, owner: TableOwner, store: ViewStore, row: ViewRow, time: str | None) -> None:
        assert row.cn is not None
        base = row.base_version if row.kind == "recomputed" else None
        self._owner = owner
        self._store = store
        self._row = row
        self._mark = TableMark(row.name, row.cn, time, row.id, base)
        self._columns = store.shape.visible
        self._schema = pa.schema([(n, arrow_type(t)) for n, t in self._columns])
        self._table = Table(table_folder(owner.root, row.name))
        self._version = -1
        """Of the table, when it was looked at."""

    def bring(self) -> bool:
        """Make the table that of the row's cn; whether anything had to be written."""
        try:
            before = self._known()
            if before is not None and before.same(self._mark):
                return False
            if before is not None and self._moved(before):
                return True
        except StorageDamaged:
            # somebody else's doing: what is kept of the view is elsewhere
            pass
        self._whole()
        return True

    def _known(self) -> TableMark | None:
        """What the table holds; None if that is not what we left there."""
        mark = read_mark(self._table.path)
        if mark is None or mark.id != self._row.id or mark.view != self._row.name:
            return None
        self._version = self._table.version()
        check_whole(self._table.files(self._version))
        return mark

    def _moved(self, before: TableMark) -> bool:
        """Write what has changed since; False where that cannot be told, or is too much."""
        if self._row.kind == "recomputed":
            return before.base == self._mark.base and self._commit([], [])
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
        added = self._written(kept, copies(change.come, self._columns), self._table)
        return self._commit(added, [f.relative for f in listed if f.path in anew])

    def _commit(self, added: Sequence[AddedFile], removed: Sequence[str]) -> bool:
        """Whether nobody else has committed since the table was looked at."""
        version = self._version + 1
        written = self._table.commit(_APP, version, added, removed, self._mark.metadata())
        crash_point("table-committed")
        return written == version

    def _whole(self) -> None:
        """All rows anew, in one step: over what is there, or else beside it and then moved."""
        row, base = self._row, self._store.base.files(self._row.base_version)
        assert row.base_cn is not None
        groups, come = row_groups(base), None
        if row.kind != "recomputed" and row.base_cn != self._mark.cn:
            change = net_change(
                self._store, row.delta_version or 0, row.base_cn, self._mark.cn
            )
            groups, missing = without(groups, change.gone, self._columns)
            if missing.num_rows:
                raise below_zero(row.name, self._columns, self._mark.cn, missing)
            come = copies(change.come, self._columns)
        if self._opens():
            self._overwrite(self._table, groups, come)
        else:
            self._place(groups, come)

    def _opens(self) -> bool:
        try:
            return self._table.exists() and self._table.version() >= 0
        except StorageDamaged:
            return False

    def _overwrite(
        self, table: Table, groups: Sequence[RowGroup], come: pa.Table | None
    ) -> None:
        version = table.version() + 1
        added = self._written(groups, come, table)
        table.overwrite(_APP, version, added, self._schema, self._mark.metadata())
        crash_point("table-committed")

    def _place(self, groups: Sequence[RowGroup], come: pa.Table | None) -> None:
        """A new table, complete before it is where people look for it."""
        made = Table.create(
            self._owner.work / "table", self._schema, properties=_properties(self._owner.identity)
        )
        self._overwrite(made, groups, come)
        target = self._table.path
        with told(target):
            make_folder(target.parent)
            remove_folder(target, self._owner.work)
            made.path.rename(target)
            sync_folder(target.parent)
        crash_point("table-placed")

    def _written(
        self, groups: Sequence[RowGroup], come: pa.Table | None, table: Table
    ) -> list[AddedFile]:
        version = table.version() + 1
        files = _Files(table, table.unused_folder(_APP, version), self._schema)
        try:
            for group in groups:
                for piece in rows_of(group, self._columns):
                    files.write(piece)
            if come is not None:
                files.write(come)
            added = files.close()
        except BaseException:
            files.abandon()
            raise
        crash_point("table-written")
        return added


class _Files:
    """Files of a write, none of them much larger than others."""

    def __init__(self, table: Table, folder: Path, schema: pa.Schema) -> None:
        self._root = table.path
        self._folder = folder
        self._schema = schema
        self._sink: ParquetSink | None = None
        self._done: list[AddedFile] = []

    def write(self, rows: pa.Table) -> None:
        if not rows.num_rows:
            return
        if self._sink is None:
            path = self._folder / f"part-{len(self._done)}.parquet"
            self._sink = ParquetSink(self._root, path, self._schema)
        self._sink.write(rows)
        if self._sink.rows >= _ROWS:
            self._close()

    def close(self) -> list[AddedFile]:
        self._close()
        return self._done

    def abandon(self) -> None:
        """Leave nothing: on a full disk every byte counts."""
        if self._sink is not None:
            self._sink.abandon()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _close(self) -> None:
        if self._sink is not None:
            self._done.append(self._sink.close())
            self._sink = None


def vacuum(root: Path, view: str, retention: timedelta) -> None:
    """Delete what the table has not listed for so long."""
    folder = table_folder(root, view)
    mark = read_mark(folder)
    if mark is not None:
        Table(folder).vacuum(retention, mark.metadata())


def remove_others(owner: TableOwner, views: Iterable[str]) -> list[str]:
    """Remove the tables of this warehouse that are none of these views'; their names."""
    wanted = [table_folder(owner.root, view) for view in views]
    names = {folder.name for folder in wanted}
    parent = table_folder(owner.root, "x").parent
    removed = []
    for folder in sorted(parent.iterdir()) if parent.is_dir() else ():
        if folder.name in names or not _ours(folder, owner.identity):
            continue
        # where case does not count, it may be one of them
        if not any(other.exists() and other.samefile(folder) for other in wanted):
            with told(folder):
                remove_folder(folder, owner.work)
            removed.append(folder.name)
    return removed


def remove_folder(folder: Path, work: Path) -> None:
    """Delete it, or only the link where it is one. It is gone at once, or still whole."""
    if folder.is_symlink() or folder.is_file():
        folder.unlink()
    elif folder.exists():
        folder.rename(work / "removed")
        shutil.rmtree(work / "removed")


def _ours(folder: Path, identity: str) -> bool:
    """Whether the folder is a table of this warehouse."""
    try:
        return Table(folder).property(_WAREHOUSE) == identity
    except StorageDamaged:
        return False


def _properties(identity: str) -> dict[str, str]:
    return {
        _WAREHOUSE: identity,
        "delta.logRetentionDuration": "interval 1 days",
        "delta.deletedFileRetentionDuration": "interval 1 hours",
    }


def _to_write(listed: Sequence[FileEntry], groups: Sequence[RowGroup]) -> set[str]:
    """The files that hold rows which go, and the small ones if there are many."""
    touched = {g.path for g in groups if len(g.gone)}
    small = {f.path for f in listed if f.rows < _SMALL}
    return touched | small if len(small) > _MANY else touched
