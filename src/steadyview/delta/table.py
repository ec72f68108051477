"""A Delta table whose log is kept by `deltalake` alone; its files come from Arrow or from Spark.

Assumes: only this package writes these tables, and only under the warehouse's lease.
Invariant (law 7): a write is named (app, version), version growing per app; a write whose name, or
a later one of its app, is in the table's log changes nothing. Each commit is a compare-and-swap on
one fresh handle, so that a writer with an old picture of the table is refused.
A reader may not rely on `file_uris()` (percent-encoded) nor on partition columns (there are none).
"""

from __future__ import annotations

import re
import shutil
import threading
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import timedelta
from itertools import chain, count
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, Schema, TableFeatures
from deltalake.transaction import AddAction, CommitProperties, RemoveAction, Transaction

from steadyview.crash_points import crash_point
from steadyview.delta.durability import make_folder, sync_file, sync_folder
from steadyview.delta.failures import told
from steadyview.delta.files import AddedFile, FileEntry, Ranges, check_addable, collect, entries
from steadyview.delta.handles import Handles, Opened
from steadyview.delta.names import slug
from steadyview.errors import ConfigError, StorageDamaged
from steadyview.fencing import check_fence

_READABLE = frozenset({"timestampNtz"})
_UNUSABLE = re.compile(r"%[0-9A-Fa-f]{2}|[\\*?{}\[\]\x00-\x1f\x7f]")
_locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
_handles = Handles()


class Table:
    """One table, by its folder. Every call sees the newest version on disk (see `handles`).

    Usable from several threads; commits to the same table wait for each other within a process.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()

    @staticmethod
    def create(
        path: Path,
        schema: pa.Schema,
        *,
        ranged: Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
    ) -> Table:
        """The table at `path`, created empty unless it is there (then it stays as it is).

        All columns are nullable. `ranged`: bigint columns whose ranges will be given per file.
        """
        table = Table(path)
        _check_place(table.path)
        if not table.exists():
            with told(table.path):
                make_folder(table.path)
                _create(table.path, schema, ranged, properties or {})
                _sync_log(table.path, 0)
        return table

    def exists(self) -> bool:
        """Whether there is a table here that can be opened; damage counts as there."""
        log = self.path / "_delta_log"
        return log.is_dir() and any(log.glob("*.json"))

    def version(self) -> int:
        """The newest version."""
        return int(self._open().version())

    def schema(self) -> pa.Schema:
        """The declared columns."""
        return pa.schema(self._open().schema())

    def property(self, name: str) -> str | None:
        """A property of the table, None where it has not got it."""
        found = self._open().metadata().configuration.get(name)
        return None if found is None else str(found)

    def done(self, app: str, version: int) -> bool:
        """Whether the write (app, version), or a later one of that app, is in the table."""
        return self.app_version(app) >= version

    def app_version(self, app: str) -> int:
        """The version of the app's last write, -1 if it never wrote."""
        return _app_version(self._open(), app)

    def files(self, at_version: int | None = None) -> list[FileEntry]:
        """The files of a version (the newest by default), in path order."""
        newest = self._newest()
        if at_version is not None and at_version != newest.version:
            return self._listed(self._at(at_version))
        if newest.files is None:
            newest.files = self._listed(newest.handle)
        return list(newest.files)

    def folder_for(self, app: str, version: int) -> Path:
        """Where the files of the write (app, version) belong; see `clear_folder`."""
        return self.path / "data" / f"{slug(app)}-{version}"

    def clear_folder(self, app: str, version: int) -> Path:
        """The same folder, surely not existing; refuses if that write is committed already."""
        if self.done(app, version):
            raise ValueError(f'write "{app}" {version} of table "{self.path}" is committed')
        folder = self.folder_for(app, version)
        with told(folder):
            shutil.rmtree(folder, ignore_errors=not folder.exists())
        return folder

    def unused_folder(self, app: str, version: int) -> Path:
        """A folder for Spark's files of the write (app, version) that nobody ever wrote into.

        Spark outlives a killed driver for a while: an earlier attempt may still be writing where it
        began. What it leaves is unlisted, and goes with the next vacuum.
        """
        first = self.folder_for(app, version)
        later = (first.with_name(f"{first.name}-{attempt}") for attempt in count(2))
        return next(folder for folder in chain([first], later) if not folder.exists())

    def collect(
        self, folder: Path, ranges: Ranges | None = None, ranged: Sequence[str] = ()
    ) -> list[AddedFile]:
        """What Spark wrote into `folder`; see `files.collect`."""
        return collect(self.path, folder, ranges, ranged)

    def commit(
        self,
        app: str,
        version: int,
        adds: Sequence[AddedFile] = (),
        removes: Sequence[str] = (),
        metadata: Mapping[str, str] | None = None,
    ) -> int:
        """Add and remove files in one step, exactly once; the table's version that holds the write.

        `removes` are relative paths. If (app, version) is done already, nothing is written. Raises
        StorageUnavailable if somebody else committed in between: the same call may succeed then.
        """
        with _locks[str(self.path)]:
            handle = self._open()
            if _app_version(handle, app) >= version:
                return int(handle.version())
            return self._write(handle, Transaction(app, version), adds, removes, metadata or {})

    def overwrite(
        self,
        app: str,
        version: int,
        adds: Sequence[AddedFile],
        schema: pa.Schema,
        metadata: Mapping[str, str],
    ) -> int:
        """Make these files, of whichever columns, all that the table lists, in one step."""
        with _locks[str(self.path)], told(self.path):
            handle = self._at()
            if _lacks_feature(handle, schema):
                handle.alter.add_feature(
                    TableFeatures.TimestampWithoutTimezone, allow_protocol_versions_increase=True
                )
                handle = self._at()
            self._check(handle, adds, ())
            check_fence(self.path)
            handle.create_write_transaction(
                [*_added(adds, int(time.time() * 1000))],
                mode="overwrite",
                schema=_nullable(schema),
                commit_properties=_properties(Transaction(app, version), metadata),
            )
            return self._written(handle)

    def add_columns(self, fields: Sequence[pa.Field]) -> None:
        """Append nullable columns; those that are there are left alone. Old files read as NULL."""
        with _locks[str(self.path)]:
            handle = self._at()
            known = set(pa.schema(handle.schema()).names)
            new = [f.with_nullable(True) for f in fields if f.name not in known]
            if new:
                self._alter(handle, pa.schema(new))

    def vacuum(self, retention: timedelta, metadata: Mapping[str, str] | None = None) -> int:
        """Delete files unlisted for longer than `retention`; how many. Only under the lease.

        `metadata` is what the commits that tell of it carry.
        """
        hours = int(retention.total_seconds() // 3600)
        with _locks[str(self.path)], told(self.path):
            gone = self._at().vacuum(
                hours,
                dry_run=False,
                enforce_retention_duration=False,
                full=True,
                commit_properties=CommitProperties(custom_metadata=dict(metadata or {})),
            )
        crash_point("vacuumed")
        return len(gone)

    def _listed(self, handle: DeltaTable) -> list[FileEntry]:
        with told(self.path):
            return entries(self.path, pa.table(handle.get_add_actions()))

    def _open(self) -> DeltaTable:
        """The newest version. Others use the handle too: it is only read, or committed with."""
        return self._newest().handle

    def _newest(self) -> Opened:
        return _handles.newest(self.path, self._at)

    def _at(self, version: int | None = None) -> DeltaTable:
        """A handle of one's own of a version, the newest by default."""
        with told(self.path):
            handle = DeltaTable(str(self.path), version=version)
            features = set(handle.protocol().reader_features or ())
        if features - _READABLE or handle.protocol().min_reader_version not in (1, 3):
            raise StorageDamaged(
                f'table "{self.path}" has features that we would misread',
                detail=", ".join(sorted(features - _READABLE)) or "column mapping",
                hint="another program changed the table: restore it, or build it anew",
            )
        return handle

    def _write(
        self,
        handle: DeltaTable,
        name: Transaction,
        adds: Sequence[AddedFile],
        removes: Sequence[str],
        metadata: Mapping[str, str],
    ) -> int:
        now = int(time.time() * 1000)
        with told(self.path):
            self._check(handle, adds, removes)
            gone = [RemoveAction(path, True, now, None, {}) for path in removes]
            check_fence(self.path)
            handle.create_write_transaction(
                [*gone, *_added(adds, now)],
                mode="append",
                schema=handle.schema(),
                commit_properties=_properties(name, metadata),
            )
            return self._written(handle)

    def _written(self, handle: DeltaTable) -> int:
        """The version that a handle's write has made, on the disk."""
        # The handle itself keeps the version it read; compare-and-swap wrote the next one.
        written = int(handle.version()) + 1
        _sync_log(self.path, written)
        return written

    def _check(self, handle: DeltaTable, adds: Sequence[AddedFile], removes: Sequence[str]) -> None:
        """Delta accepts an added file that is missing, and a removed one that is not listed."""
        for file in adds:
            check_addable(self.path, file)
        if not removes:
            return
        listed = {file.relative for file in self._listed(handle)}
        absent = [path for path in removes if path not in listed]
        if absent:
            raise ValueError(f'table "{self.path}" does not list file "{absent[0]}"')

    def _alter(self, handle: DeltaTable, fields: pa.Schema) -> None:
        with told(self.path):
            handle.alter.add_columns(
                Schema.from_arrow(fields).fields,
                commit_properties=CommitProperties(max_commit_retries=0),
            )
            _sync_log(self.path, self.version())


def _check_place(path: Path) -> None:
    """Delta takes such names for escapes, Spark for patterns: the table would not be found."""
    if _UNUSABLE.search(str(path)):
        raise ConfigError(
            f'folder "{path}" cannot hold tables',
            detail="its name holds one of \\ * ? { } [ ], a control or a percent-encoded character",
            hint="choose another folder for the warehouse",
        )


def _create(
    path: Path, schema: pa.Schema, ranged: Sequence[str], properties: Mapping[str, str]
) -> None:
    """Checkpoints every 10 commits keep a commit's time flat however long the history is."""
    settings: dict[str, str | None] = {"delta.checkpointInterval": "10", **properties}
    # Otherwise only the first 32 columns have ranges; with none wanted, none are kept.
    if ranged:
        settings["delta.dataSkippingStatsColumns"] = ",".join(ranged)
    else:
        settings["delta.dataSkippingNumIndexedCols"] = "0"
    DeltaTable.create(
        str(path),
        _nullable(schema),
        mode="ignore",
        configuration=settings,
        raise_if_key_not_exists=False,
    )


def _nullable(schema: pa.Schema) -> Schema:
    return Schema.from_arrow(pa.schema([field.with_nullable(True) for field in schema]))


def _added(files: Sequence[AddedFile], now: int) -> list[AddAction]:
    return [AddAction(f.path, f.size, {}, now, True, f.stats()) for f in files]


def _lacks_feature(handle: DeltaTable, schema: pa.Schema) -> bool:
    """Whether columns of these types need one: times without a zone do."""
    without_zone = any(pa.types.is_timestamp(f.type) and f.type.tz is None for f in schema)
    return without_zone and not handle.protocol().reader_features


def _app_version(handle: DeltaTable, app: str) -> int:
    found = handle.transaction_version(app)
    return -1 if found is None else int(found)


def _properties(name: Transaction, metadata: Mapping[str, str]) -> CommitProperties:
    return CommitProperties(
        custom_metadata=dict(metadata), max_commit_retries=0, app_transactions=[name]
    )


def _sync_log(path: Path, version: int) -> None:
    """`deltalake` does not sync its log; a catalog row may only follow what is durable."""
    log = path / "_delta_log"
    commit, checkpoint = log / f"{version:020}.json", log / f"{version:020}.checkpoint.parquet"
    sync_file(commit)
    if checkpoint.exists():
        sync_file(checkpoint)
        sync_file(log / "_last_checkpoint")
    sync_folder(log)
