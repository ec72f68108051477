"""The files of a table: what a commit adds, what a version lists.

Relative paths hold only `A-Z a-z 0-9 . _ = -` and slashes: Delta percent-encodes everything else,
and readers disagree on who decodes it. Where the table itself lies is free (spaces, non-ASCII
letters).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from steadyview.delta.failures import file_damaged, told
from steadyview.errors import StorageDamaged

Ranges = Mapping[str, tuple[int, int]]
"""Smallest and largest value per bigint column, for leaving out files that cannot matter."""

_SAFE = re.compile(r"[A-Za-z0-9._=/-]+")


@dataclass(frozen=True)
class AddedFile:
    """A Parquet file to be added; `path` is relative to the table's root, `size` in bytes."""

    path: str
    size: int
    rows: int
    ranges: Ranges = field(default_factory=dict)

    def stats(self) -> str:
        """Delta's statistics as JSON."""
        return json.dumps(
            {
                "numRecords": self.rows,
                "minValues": {c: low for c, (low, _) in self.ranges.items()},
                "maxValues": {c: high for c, (_, high) in self.ranges.items()},
                "nullCount": dict.fromkeys(self.ranges, 0),
            }
        )


@dataclass(frozen=True)
class FileEntry:
    """A file that a version of the table lists. `path` is absolute and unescaped."""

    path: str
    relative: str
    size: int
    rows: int
    ranges: Ranges

    def may_hold(self, column: str, low: int, high: int) -> bool:
        """False only if no row has `column` within [low, high]; True where nothing is known."""
        if column not in self.ranges:
            return True
        smallest, largest = self.ranges[column]
        return smallest <= high and largest >= low

    def holds_only(self, column: str, low: int, high: int) -> bool:
        """Whether every row is known to have `column` within [low, high]."""
        smallest, largest = self.ranges.get(column, (low - 1, high + 1))
        return low <= smallest and largest <= high


def check_addable(root: Path, file: AddedFile) -> None:
    """Refuse a file that is not there, is not the one described, or has an unsafe name."""
    if not _SAFE.fullmatch(file.path):
        raise ValueError(f'file name "{file.path}" is not safe in a Delta log')
    path = root / file.path
    if not path.is_file():
        raise StorageDamaged(
            f'file "{path}" is missing', hint="the step that wrote it has to be redone"
        )
    found = path.stat().st_size
    if found != file.size:
        raise StorageDamaged(f'file "{path}" has {found} bytes, expected {file.size}')


def check_whole(files: Iterable[FileEntry]) -> None:
    """StorageDamaged unless every listed file is there in its whole length.

    Asked before Spark reads them: it takes an empty file for one without rows.
    """
    for file in files:
        path = Path(file.path)
        with told(Path(file.path.removesuffix(file.relative))):
            found = path.stat().st_size
        if found != file.size:
            raise file_damaged(path, f"it has {found} bytes, {file.size} were written")


def entries(root: Path, actions: pa.Table) -> list[FileEntry]:
    """What `get_add_actions` told, as values, in path order."""
    ranges = _ranges(actions)
    columns = (actions.column(c).to_pylist() for c in ("path", "size_bytes", "num_records"))
    found = [
        FileEntry(str(root / path), path, size, rows or 0, r)
        for path, size, rows, r in zip(*columns, ranges, strict=True)
    ]
    return sorted(found, key=lambda e: e.relative)


def collect(
    root: Path, folder: Path, ranges: Ranges | None = None, ranged: Sequence[str] = ()
) -> list[AddedFile]:
    """The Parquet files that Spark finished writing below `folder` (also in sub-folders).

    Requires Spark's `_SUCCESS`; rows come from the footers; files without rows are left out.
    `ranges` is what the caller knows to hold for all of them; those of the columns `ranged` are
    each file's own.
    """
    if not (folder / "_SUCCESS").is_file():
        raise StorageDamaged(f'folder "{folder}" is incomplete', detail="it has no file _SUCCESS")
    paths = sorted(folder.rglob("*.parquet"))
    found = (_described(root, path, ranges or {}, ranged) for path in paths)
    return [file for file in found if file.rows]


def _described(root: Path, path: Path, ranges: Ranges, ranged: Sequence[str]) -> AddedFile:
    with told(path):
        footer = pq.read_metadata(path)
        own = {name: _own_range(footer, name) for name in ranged if footer.num_rows}
        relative = path.relative_to(root).as_posix()
        return AddedFile(relative, path.stat().st_size, footer.num_rows, {**ranges, **own})


def _own_range(footer: pq.FileMetaData, column: str) -> tuple[int, int]:
    """The smallest and the largest value of a bigint column without NULLs, by its row groups."""
    groups = [footer.row_group(i) for i in range(footer.num_row_groups)]
    parts = (group.column(i) for group in groups for i in range(group.num_columns))
    known = [part.statistics for part in parts if part.path_in_schema == column]
    return min(found.min for found in known), max(found.max for found in known)


def _ranges(actions: pa.Table) -> Iterable[dict[str, tuple[int, int]]]:
    if "min" not in actions.column_names or "max" not in actions.column_names:
        return [{} for _ in range(actions.num_rows)]
    pairs = zip(actions.column("min").to_pylist(), actions.column("max").to_pylist(), strict=True)
    return [_known(low, high) for low, high in pairs]


def _known(low: dict[str, Any] | None, high: dict[str, Any] | None) -> dict[str, tuple[int, int]]:
    lows, highs = low or {}, high or {}
    return {
        c: (v, highs[c]) for c, v in lows.items() if isinstance(v, int) and highs.get(c) is not None
    }
