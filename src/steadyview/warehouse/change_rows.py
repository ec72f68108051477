"""A view's change table by Arrow: visible rows with `_count`, `_cn` and `_time`, in order of cn.

    rows (p, m]      the view delta of these cns, each whole: what leads from the state at p to m's

A row that a commit took away has a negative `_count`, and stands before those that it brought. No
Spark, no source: what reads changes may be a process of its own. A range that is compressed is one
change at its last cn, whether its files have been replaced yet or not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from steadyview.catalog import Catalog
from steadyview.changes import arrow_type
from steadyview.delta import FileEntry
from steadyview.delta.files import check_whole
from steadyview.delta.parquet import CHECKED, reading
from steadyview.plans.versions import Step, step_ends
from steadyview.warehouse.row_files import netted
from steadyview.warehouse.view_store import CN, COUNT, ViewStore

TIME = "_time"
OWN = ((COUNT, "BIGINT"), (CN, "BIGINT"), (TIME, "TIMESTAMP"))
"""The columns behind those of the view, with their types."""
_TIME_TYPE = pa.timestamp("us", tz="UTC")


@dataclass(frozen=True)
class Seen:
    """The changes of a view as they were at a time: a version of its delta, and its ranges."""

    version: int
    ranges: tuple[Step, ...]


class ChangeRows:
    """The changes of one view up to a cn that it has reached.

    Asked again, it looks at the files as they are by then, unless it is told to go by what was
    `seen`: merged ones hold the same rows, but ranges may have been compressed between two looks.
    """

    def __init__(
        self, store: ViewStore, catalog: Catalog, view: int, upto: int, seen: Seen | None = None
    ) -> None:
        self.upto = upto
        self._seen = seen
        self._store = store
        self._view = view
        self._gaps = catalog.gaps
        self._commits = catalog.commits
        self.schema = pa.schema([(n, arrow_type(t)) for n, t in (*store.shape.visible, *OWN)])

    def ends(self, after: int, most: int, commits: int | None = None) -> list[int]:
        """Where to cut (after, upto]: behind about `most` rows each; or the first of its commits.

        Each is a cn that changed the view, the last one the last of these.
        """
        files = self._files(after, self.upto)
        if not files:
            return []
        read = self._read(files, after, self.upto, [CN])[CN].to_numpy()
        cns = step_ends(read, self._ranges(after))
        changed, rows = (part[:commits] for part in np.unique(cns, return_counts=True))
        before = np.cumsum(rows) - rows
        last = np.append(before[1:] // most != before[:-1] // most, True)
        return [int(cn) for cn in changed[last]] if len(changed) else []

    def rows(self, after: int, upto: int) -> pa.Table:
        """The changes of (after, upto]: the view's own columns, then `_count`, `_cn`, `_time`."""
        delta = self._store.shape.delta
        found = self._read(self._files(after, upto), after, upto, [name for name, _ in delta])
        found = _together(found, self._ranges(after))
        found = found.sort_by([(CN, "ascending"), (COUNT, "ascending")])
        cns, places = np.unique(found[CN].to_numpy(), return_inverse=True)
        times = pa.array(self._commits.times_of(cns)[places]).cast(_TIME_TYPE)
        named = found.rename_columns([*(n for n, _ in self._store.shape.visible), COUNT, CN])
        return named.append_column(TIME, times)

    def seen(self, after: int) -> Seen:
        """The changes behind a cn as they are now."""
        if self.upto <= after:
            return Seen(0, ())  # of a view from before there were changes not even a table
        version = self._store.delta.version()
        return Seen(version, tuple(self._ranges(after)))

    def _ranges(self, after: int) -> list[Step]:
        """What is compressed behind a cn; asked once the files are known, which may say less."""
        if self._seen is not None:
            return list(self._seen.ranges)
        found = self._gaps.of([self._view], after)
        return [(gap.low, gap.high) for gap in found if gap.compressed]

    def _files(self, after: int, upto: int) -> list[FileEntry]:
        if upto <= after:
            return []
        version = self._store.delta.version() if self._seen is None else self._seen.version
        files = self._store.delta_files(version, after, upto)
        check_whole(files)
        return files

    def _read(
        self, files: Sequence[FileEntry], after: int, upto: int, columns: list[str]
    ) -> pa.Table:
        schema = pa.schema([(n, arrow_type(t)) for n, t in self._store.shape.delta])
        if not files:
            return schema.empty_table().select(columns)
        within = (pc.field(CN) > after) & (pc.field(CN) <= upto)
        paths = [file.path for file in files]
        with reading(self._store.delta.path, paths):
            delta = ds.dataset(paths, schema=schema, format=CHECKED)
            return delta.to_table(columns=columns, filter=within)


def _together(rows: pa.Table, ranges: Sequence[Step]) -> pa.Table:
    """The rows, with the net effect of each range at its end."""
    cns = rows[CN].to_numpy()
    ends = step_ends(cns, ranges)
    if (ends == cns).all():
        return rows
    place = rows.schema.get_field_index(CN)
    moved = rows.set_column(place, CN, pa.array(ends, pa.int64()))
    keys = [name for name in moved.column_names if name != COUNT]
    return netted(moved, keys).select(rows.column_names)


def as_changes(rows: Iterator[pa.Table], cn: int, time: int) -> Iterator[pa.Table]:
    """A state's rows in the same form: each is there once more, at its cn."""
    for piece in rows:
        ones = pa.array(np.ones(piece.num_rows, dtype=np.int64))
        cns = pa.array(np.full(piece.num_rows, cn, dtype=np.int64))
        times = pa.array(np.full(piece.num_rows, time, dtype=np.int64)).cast(_TIME_TYPE)
        yield piece.append_column(COUNT, ones).append_column(CN, cns).append_column(TIME, times)


def changed_near(
    store: ViewStore, oldest: int, cn: int, upto: int
) -> tuple[int | None, int | None]:
    """The view's last change in (oldest, cn], and its first in (cn, upto]; None: there is none."""
    before = sorted(store.newest_delta_files(oldest, cn), key=lambda f: -f.ranges[CN][1])
    last: int | None = None
    for file in before:
        if last is None or min(file.ranges[CN][1], cn) > last:
            found = [int(c) for c in cns_of(store, file) if oldest < c <= cn]
            last = max([*found, *([] if last is None else [last])], default=None)
    after = sorted(store.newest_delta_files(cn, upto), key=lambda f: f.ranges[CN][0])
    first: int | None = None
    for file in after:
        if first is None or max(file.ranges[CN][0], cn + 1) < first:
            found = [int(c) for c in cns_of(store, file) if cn < c <= upto]
            first = min([*found, *([] if first is None else [first])], default=None)
    return last, first


def cns_of(store: ViewStore, file: FileEntry) -> np.ndarray:
    """The cns of a file of the view delta, ascending."""
    with reading(store.delta.path, [file.path]):
        rows = ds.dataset(file.path, format=CHECKED).to_table(columns=[CN])
    return np.unique(rows[CN].to_numpy())
