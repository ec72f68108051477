"""A view's changes for readers that keep their own positions, such as Spark's streams.

An offset is (incarnation, cn): the id of the view's row, and the last cn whose changes were read.
Before the first state, its cn is BEFORE. Nothing is kept for such a reader beyond the retention:
one that comes too late, or over a view that was built anew, is told to begin again. What it was
given lately is not compressed, for it may ask once more (`catalog/streams.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa

from steadyview.catalog import Catalog, ViewRow
from steadyview.errors import OutsideRetention, StorageUnavailable
from steadyview.runtime.clock import SystemClock
from steadyview.runtime.file_reading import ViewPart, state_parts
from steadyview.runtime.kept import shape_of
from steadyview.runtime.project import load_project
from steadyview.runtime.state_kept import check_no_gap
from steadyview.runtime.subscribing import begins_at, named_view, reach
from steadyview.warehouse.change_rows import OWN, ChangeRows, Seen, as_changes
from steadyview.warehouse.view_store import ViewStore

BEFORE = -1
"""The cn of an offset that lies before the first state."""
PART = 100_000
"""Changed rows that one task reads, about."""


@dataclass(frozen=True)
class Offset:
    """Up to where the changes of the view with this id were read."""

    incarnation: int
    cn: int


@dataclass(frozen=True)
class StatePart:
    """Some rows of the state at a cn."""

    part: ViewPart
    cn: int
    time: int

    def tables(self) -> Iterator[pa.Table]:
        """The rows, as changes."""
        return as_changes(self.part.rows(), self.cn, self.time)


@dataclass(frozen=True)
class ChangePart:
    """The changes of (after, upto] of the view with this id, as they were `seen`.

    Several parts of one batch are read at different times: together they are its changes.
    """

    root: Path
    view: int
    after: int
    upto: int
    seen: Seen

    def tables(self) -> Iterator[pa.Table]:
        """The rows, in the order of their cns."""
        with Catalog.open(self.root, SystemClock()) as catalog:
            row = catalog.views.row(self.view)
            changes = _changes(self.root, catalog, row, self.upto, self.seen)
            yield changes.rows(self.after, self.upto)


class ReadableChanges:
    """The changes of one view of a project."""

    def __init__(self, project: str | Path, view: str) -> None:
        self._root = load_project(project).warehouse
        self._view = view

    def columns(self) -> list[tuple[str, str]]:
        """Names and types: the view's own, `_count`, `_cn` and `_time`."""
        with self._catalog() as catalog:
            return [*shape_of(self._row(catalog)).visible, *OWN]

    def before(self) -> Offset:
        """The offset before the first state."""
        with self._catalog() as catalog:
            return Offset(self._row(catalog).id, BEFORE)

    def first(self, at: int | str) -> Offset:
        """The offset of the first state, which `at` means: see `subscribing.Start`."""
        with self._catalog() as catalog:
            row = self._row(catalog)
            return Offset(row.id, begins_at(catalog, row, at))

    def reach(self) -> int:
        """How far changes are at hand."""
        with self._catalog() as catalog:
            return reach(catalog, self._row(catalog))

    def latest(self, start: Offset, upto: int | None = None) -> Offset:
        """The last change there is, up to cn `upto`; `start` where there is none after it."""
        with self._catalog() as catalog:
            row = self._of(catalog, start)
            last = reach(catalog, row) if upto is None else min(upto, reach(catalog, row))
            found = _changes(self._root, catalog, row, last).ends(start.cn, PART)
            return Offset(row.id, found[-1]) if found else start

    def parts(self, start: Offset, end: Offset) -> list[StatePart | ChangePart]:
        """What leads from one offset to another: the state of `end`, or changes."""
        if start == end:
            return []
        with self._catalog() as catalog:
            row = self._of(catalog, end)
            self._of(catalog, start)
            if start.cn == BEFORE:
                time = catalog.commits.time_of(end.cn)
                found = state_parts(self._root, catalog, row.id, end.cn)
                return [StatePart(part, end.cn, time) for part in found]
            seen = _changes(self._root, catalog, row, end.cn).seen(start.cn)
            ends = _changes(self._root, catalog, row, end.cn, seen).ends(start.cn, PART)
        cuts = pairwise([start.cn, *ends])
        return [ChangePart(self._root, row.id, after, upto, seen) for after, upto in cuts]

    def hand_out(self, reader: str, start: Offset, end: Offset) -> bool:
        """The reader is given what leads from one offset to the other, perhaps more than once.

        False: what would end there was compressed meanwhile. Who may not write to the warehouse can
        read, and is told when what it has not read yet was compressed.
        """
        after = end.cn if start.cn == BEFORE else start.cn
        with self._catalog() as catalog, suppress(StorageUnavailable):
            return catalog.streams.hand_out(reader, end.incarnation, after, end.cn)
        return True

    def _of(self, catalog: Catalog, offset: Offset) -> ViewRow:
        """The view that the offset is of, which still has what comes after it."""
        row = self._row(catalog)
        if row.id != offset.incarnation:
            raise OutsideRetention(
                f'view "{row.name}" was built anew since it was read',
                detail="its changes do not lead from the old rows to the new ones",
                hint="begin again, with a new checkpoint",
            )
        if offset.cn != BEFORE and offset.cn < row.oldest_cn:
            raise OutsideRetention(
                f'changes of view "{row.name}" after cn {offset.cn} are not all kept',
                detail=f"those after cn {row.oldest_cn} are",
                hint="begin again, with a new checkpoint; a longer retention keeps more",
            )
        if offset.cn != BEFORE:
            check_no_gap(catalog, row, offset.cn, reach(catalog, row))
        return row

    def _row(self, catalog: Catalog) -> ViewRow:
        return named_view(catalog, self._view)

    def _catalog(self) -> Catalog:
        return Catalog.open(self._root, SystemClock())


def _changes(
    root: Path, catalog: Catalog, row: ViewRow, upto: int, seen: Seen | None = None
) -> ChangeRows:
    return ChangeRows(ViewStore(root, row, shape_of(row)), catalog, row.id, upto, seen)


def offset_of(told: dict[str, Any]) -> Offset:
    """An offset as it was written down."""
    return Offset(int(told["incarnation"]), int(told["cn"]))
