"""Few large files instead of many small ones, and none that nobody needs. Both only when asked.

Files are ordered by one ranged column (`_seq` of a log, `_cn` of a view delta).
Compaction merges neighbouring files into one: the rows stay the same, so a reader
may use the old or the new list. Old files stay on disk until `Table.vacuum` finds them old enough.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow.parquet as pq

from steadyview.crash_points import crash_point
from steadyview.delta.files import AddedFile, FileEntry
from steadyview.delta.parquet import ParquetSink, reading
from steadyview.delta.table import Table

MANY_FILES = 50
TARGET_BYTES = 128 * 1024 * 1024


def compact(
    table: Table, ranged: str, upto: int, many: int, metadata: Mapping[str, str] | None = None
) -> int:
    """Merge files whose `ranged` values are up to `upto` if there are more than `many`; how many.

    `upto` must be known to the catalog: a write it does not know yet must stay as it is.
    `metadata` is what the commit carries.
    """
    version = table.version()
    files = [f for f in table.files(version) if f.ranges[ranged][1] <= upto]
    small = _small(files)
    if len(small) <= many:
        return 0
    groups = list(_groups(sorted(small, key=lambda f: f.ranges[ranged])))
    return _replace(table, ranged, version + 1, groups, metadata) if groups else 0


def small_files(table: Table) -> int:
    """How many files of the table could be merged."""
    return len(_small(table.files())) if table.exists() else 0


def prune(
    table: Table, ranged: str, before: int, metadata: Mapping[str, str] | None = None
) -> int:
    """Unlist whole files whose `ranged` values are all before `before`; how many."""
    version = table.version()
    old = [f.relative for f in table.files(version) if f.ranges[ranged][1] < before]
    if old:
        table.commit("prune", version + 1, removes=old, metadata=metadata)
        crash_point("pruned")
    return len(old)


def _small(files: Sequence[FileEntry]) -> list[FileEntry]:
    return [f for f in files if f.size < TARGET_BYTES // 2]


def _groups(files: Sequence[FileEntry]) -> Iterator[list[FileEntry]]:
    """Neighbours of together about TARGET_BYTES, at least two of them."""
    group: list[FileEntry] = []
    for file in files:
        if group and sum(f.size for f in group) + file.size > TARGET_BYTES:
            yield from [group] if len(group) > 1 else []
            group = []
        group.append(file)
    yield from [group] if len(group) > 1 else []


def _replace(
    table: Table,
    ranged: str,
    version: int,
    groups: Sequence[Sequence[FileEntry]],
    metadata: Mapping[str, str] | None,
) -> int:
    """The version is the table's next one, so that repeating it after a crash is the same write."""
    folder = table.clear_folder("compact", version)
    adds = [
        _merged(
            table,
            ParquetSink(table.path, folder / f"part-{i}.parquet", table.schema(), (ranged,)),
            group,
        )
        for i, group in enumerate(groups)
    ]
    crash_point("compaction-written")
    removes = [file.relative for group in groups for file in group]
    table.commit("compact", version, adds, removes, metadata)
    crash_point("compacted")
    return len(removes)


def _merged(table: Table, sink: ParquetSink, group: Sequence[FileEntry]) -> AddedFile:
    with reading(table.path, [file.path for file in group]):
        for file in group:
            with pq.ParquetFile(file.path, page_checksum_verification=True) as parquet:
                for number in range(parquet.num_row_groups):
                    sink.write(parquet.read_row_group(number))
    return sink.close()
