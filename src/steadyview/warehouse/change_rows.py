"""A view's change table by Arrow: visible rows with `_count`, `_cn` and `_time`, in order of cn.

    rows (p, m]      the view delta of these cns, each whole: what leads from the state at p to m's

A row that a commit took away has a negative `_count`, and stands before those that it brought. No
Spark, no source: what reads changes may be a process of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from steadyview.catalog.commits import Commits
from steadyview.changes import arrow_type
from steadyview.delta import FileEntry
from steadyview.delta.files import check_whole
from steadyview.delta.parquet import CHECKED, reading
from steadyview.warehouse.view_store import CN, COUNT, ViewStore

TIME = "_time"
OWN = ((COUNT, "BIGINT"), (CN, "BIGINT"), (TIME, "TIMESTAMP"))
"""The columns behind those of the view, with their types."""
_TIME_TYPE = pa.timestamp("us", tz="UTC")


class ChangeRows:
    """The changes of one view up to a cn that it has reached.

    Asked again, it looks at the files as they are by then: merged ones hold the same rows.
    """

    def __init__(self, store: ViewStore, commits: Commits, upto: int) -> None:
        self.upto = upto
        self._store = store
        self._commits = commits
        self.schema = pa.schema([(n, arrow_type(t)) for n, t in (*store.shape.visible, *OWN)])

    def ends(self, after: int, most: int, commits: int | None = None) -> list[int]:
        """Where to cut (after, upto]: behind about `most` rows each; or the first of its commits.

        Each is a cn that changed the view, the last one the last of these.
        """
        files = self._files(after, self.upto)
        if not files:
            return []
        cns = self._read(files, after, self.upto, [CN])[CN].to_numpy()
        changed, rows = (part[:commits] for part in np.unique(cns, return_counts=True))
        before = np.cumsum(rows) - rows
        last = np.append(before[1:] // most != before[:-1] // most, True)
        return [int(cn) for cn in changed[last]] if len(changed) else []

    def rows(self, after: int, upto: int) -> pa.Table:
        """The changes of (after, upto]: the view's own columns, then `_count`, `_cn`, `_time`."""
        delta = self._store.shape.delta
        found = self._read(self._files(after, upto), after, upto, [name for name, _ in delta])
        found = found.sort_by([(CN, "ascending"), (COUNT, "ascending")])
        cns, places = np.unique(found[CN].to_numpy(), return_inverse=True)
        times = pa.array(self._commits.times_of(cns)[places]).cast(_TIME_TYPE)
        named = found.rename_columns([*(n for n, _ in self._store.shape.visible), COUNT, CN])
        return named.append_column(TIME, times)

    def _files(self, after: int, upto: int) -> list[FileEntry]:
        files = self._store.newest_delta_files(after, upto)
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
            found = [c for c in _cns(store, file) if oldest < c <= cn]
            last = max([*found, *([] if last is None else [last])], default=None)
    after = sorted(store.newest_delta_files(cn, upto), key=lambda f: f.ranges[CN][0])
    first: int | None = None
    for file in after:
        if first is None or max(file.ranges[CN][0], cn + 1) < first:
            found = [c for c in _cns(store, file) if cn < c <= upto]
            first = min([*found, *([] if first is None else [first])], default=None)
    return last, first


def _cns(store: ViewStore, file: FileEntry) -> list[int]:
    with reading(store.delta.path, [file.path]):
        rows = ds.dataset(file.path, format=CHECKED).to_table(columns=[CN])
    return [int(cn) for cn in np.unique(rows[CN].to_numpy())]
