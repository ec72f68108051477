"""A view's change table for other programs: a plain Delta table that only grows at its end.

    changes/<name>     the SELECT's columns, `_count` (signed), `_cn` and `_time`; whole commits

Its mark says up to which cn it reaches, and after which it begins: what lies behind the retention
is taken away, file by file. A view that was built anew has a table that begins anew, and an `id` of
its own in the mark. What is in it stays when the view's own changes are compressed: its readers'
positions are known to nobody.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pyarrow as pa

from steadyview.catalog.views import ViewRow
from steadyview.delta import Table, compaction
from steadyview.warehouse.change_rows import ChangeRows
from steadyview.warehouse.owned_table import OwnedTable, TableOwner
from steadyview.warehouse.table_mark import CHANGES, TableMark, read_mark, table_folder
from steadyview.warehouse.view_store import CN

_PIECE = 100_000
"""Rows that are at hand at a time, about."""


class ChangeTable(OwnedTable):
    """The change table of one view."""

    ranged = (CN,)

    def __init__(
        self, owner: TableOwner, row: ViewRow, changes: ChangeRows, time: str | None, oldest: int
    ) -> None:
        """`oldest`: the state that its first changes lead from, if it begins anew."""
        mark = TableMark(row.name, changes.upto, time, row.id, oldest)
        folder = table_folder(owner.root, CHANGES, row.name)
        super().__init__(owner, folder, mark, changes.schema)
        self._changes = changes

    def _moved(self, before: TableMark) -> bool:
        oldest = self._mark.base
        if before.base is None or oldest is None or not oldest <= before.cn <= self._mark.cn:
            return False
        ends = self._changes.ends(before.cn, _PIECE)
        if not ends:
            return True
        self._mark = replace(self._mark, base=before.base)
        return self._commit(self._written(self._rows(before.cn, ends), self._table), [])

    def _all_rows(self) -> Iterator[pa.Table]:
        assert self._mark.base is not None
        return self._rows(self._mark.base, self._changes.ends(self._mark.base, _PIECE))

    def _rows(self, after: int, ends: list[int]) -> Iterator[pa.Table]:
        for start, end in pairwise([after, *ends]):
            yield self._changes.rows(start, end)


def tidy(root: Path, row: ViewRow, oldest: int, retention: timedelta) -> None:
    """Few files, none behind the oldest state, and none that nobody lists for so long."""
    folder = table_folder(root, CHANGES, row.name)
    mark = read_mark(folder)
    if mark is None or mark.id != row.id or mark.base is None:
        return
    table, oldest = Table(folder), min(max(mark.base, oldest), mark.cn)
    compaction.compact(table, CN, mark.cn, compaction.MANY_FILES, mark.metadata())
    kept = replace(mark, base=oldest).metadata()
    compaction.prune(table, CN, oldest + 1, kept)
    table.vacuum(retention, kept)
