"""A table of ours for other programs: complete before anybody sees it, and known again by its mark.

What is there is ours if its newest commit has our mark, for this very view, and its files are those
listed. A table that is missing, foreign, damaged, or of a view that was built anew, is written
whole, in one commit: nobody ever sees half. What was not committed when a process was killed is
litter, and goes with the next vacuum. No Spark.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pyarrow as pa

from steadyview.crash_points import crash_point
from steadyview.delta import AddedFile, ParquetSink, Table
from steadyview.delta.durability import make_folder, sync_folder
from steadyview.delta.failures import told
from steadyview.delta.files import check_whole
from steadyview.errors import StorageDamaged
from steadyview.warehouse.table_mark import TABLES, TableMark, read_mark, table_folder

_APP = "table"
_ROWS = 250_000
"""Rows of a file, at most about so many."""
_WAREHOUSE = "steadyview.warehouse"


@dataclass(frozen=True)
class TableOwner:
    """The warehouse that a table belongs to: its folder, its identity, and a folder for work."""

    root: Path
    identity: str
    work: Path


class OwnedTable:
    """One table; who inherits says what goes on from a mark, and what is written anew."""

    ranged: tuple[str, ...] = ()
    """Columns whose ranges are told for each file."""

    def __init__(self, owner: TableOwner, folder: Path, mark: TableMark, schema: pa.Schema) -> None:
        self._owner = owner
        self._mark = mark
        self._schema = schema
        self._table = Table(folder)
        self._version = -1
        """Of the table, when it was looked at."""

    def bring(self) -> bool:
        """Make the table that of its mark; whether anything had to be written."""
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

    def _moved(self, before: TableMark) -> bool:
        """Write what has changed since; False where that cannot be told, or is too much."""
        raise NotImplementedError

    def _all_rows(self) -> Iterable[pa.Table]:
        """What the table holds if it is written anew, in pieces."""
        raise NotImplementedError

    def _known(self) -> TableMark | None:
        """What the table holds; None if that is not what we left there."""
        mark = read_mark(self._table.path)
        if mark is None or mark.id != self._mark.id or mark.view != self._mark.view:
            return None
        self._version = self._table.version()
        check_whole(self._table.files(self._version))
        return mark

    def _commit(self, added: Sequence[AddedFile], removed: Sequence[str]) -> bool:
        """Whether nobody else has committed since the table was looked at."""
        version = self._version + 1
        written = self._table.commit(_APP, version, added, removed, self._mark.metadata())
        crash_point("table-committed")
        return written == version

    def _whole(self) -> None:
        """All rows anew, in one step: over what is there, or else beside it and then moved."""
        if self._opens():
            self._overwrite(self._table)
        else:
            self._place()

    def _opens(self) -> bool:
        try:
            return self._table.exists() and self._table.version() >= 0
        except StorageDamaged:
            return False

    def _overwrite(self, table: Table) -> None:
        version = table.version() + 1
        added = self._written(self._all_rows(), table)
        table.overwrite(_APP, version, added, self._schema, self._mark.metadata())
        crash_point("table-committed")

    def _place(self) -> None:
        """A new table, complete before it is where people look for it."""
        made = Table.create(
            self._owner.work / "table",
            self._schema,
            ranged=self.ranged,
            properties=_properties(self._owner.identity),
        )
        self._overwrite(made)
        target = self._table.path
        with told(target):
            make_folder(target.parent)
            remove_folder(target, self._owner.work)
            made.path.rename(target)
            sync_folder(target.parent)
        crash_point("table-placed")

    def _written(self, rows: Iterable[pa.Table], table: Table) -> list[AddedFile]:
        version = table.version() + 1
        folder = table.unused_folder(_APP, version)
        files = _Files(table, folder, self._schema, self.ranged)
        try:
            for piece in rows:
                files.write(piece)
            added = files.close()
        except BaseException:
            files.abandon()
            raise
        crash_point("table-written")
        return added


class _Files:
    """Files of a write, none of them much larger than others."""

    def __init__(
        self, table: Table, folder: Path, schema: pa.Schema, ranged: tuple[str, ...]
    ) -> None:
        self._root = table.path
        self._folder = folder
        self._schema = schema
        self._ranged = ranged
        self._sink: ParquetSink | None = None
        self._done: list[AddedFile] = []

    def write(self, rows: pa.Table) -> None:
        if not rows.num_rows:
            return
        if self._sink is None:
            path = self._folder / f"part-{len(self._done)}.parquet"
            self._sink = ParquetSink(self._root, path, self._schema, self._ranged)
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
    """Delete what the view's table has not listed for so long."""
    folder = table_folder(root, TABLES, view)
    mark = read_mark(folder)
    if mark is not None:
        Table(folder).vacuum(retention, mark.metadata())


def remove_others(owner: TableOwner, kind: str, views: Iterable[str]) -> list[str]:
    """Remove the tables of this warehouse that are none of these views'; their names.

    `kind`: the folder of such tables, TABLES or CHANGES.
    """
    wanted = [table_folder(owner.root, kind, view) for view in views]
    names = {folder.name for folder in wanted}
    parent = owner.root / kind
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


