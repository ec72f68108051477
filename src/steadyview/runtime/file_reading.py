"""A view's rows at a cn from catalog and files alone: no source, no secret, no planning, no JVM.

For readers in processes of their own, such as Spark's Python data source.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from steadyview.catalog import Base, Catalog, ViewRow
from steadyview.errors import ConfigError, OutsideRetention
from steadyview.nearest import nearest_or_all
from steadyview.plans.plan import HIDDEN
from steadyview.runtime.clock import SystemClock
from steadyview.runtime.kept import shape_of
from steadyview.runtime.project import load_project
from steadyview.runtime.serving import At, resolve
from steadyview.runtime.state_kept import check_kept
from steadyview.warehouse.row_files import (
    Columns,
    RowGroup,
    below_zero,
    copies,
    may_hold,
    net_change,
    row_groups,
    rows_of,
    without,
)
from steadyview.warehouse.states import check_readable, nearest
from steadyview.warehouse.view_store import ViewStore

PART = 32 * 1024 * 1024
"""Bytes of rows that are read together, before compression."""


@dataclass(frozen=True)
class ViewPart:
    """Some rows of a view: those of row groups, and those that came later than these."""

    columns: Columns
    groups: tuple[RowGroup, ...] = ()
    come: pa.Table | None = None

    def rows(self, wanted: pc.Expression | None = None) -> Iterator[pa.Table]:
        """In pieces, under the view's own column names; only the wanted ones."""
        pieces = (rows_of(group, self.columns) for group in self.groups)
        for piece in chain(*pieces, [] if self.come is None else [self.come]):
            yield piece if wanted is None else piece.filter(wanted)


class ReadableView:
    """One view of a project, for reading."""

    def __init__(self, project: str | Path, view: str) -> None:
        self._root = load_project(project).warehouse
        self._view = view

    def columns(self) -> Columns:
        """Names and types, as they are kept now."""
        with self._catalog() as catalog:
            return shape_of(self._row(catalog)).visible

    def parts(self, at: At = None, wanted: pc.Expression | None = None) -> list[ViewPart]:
        """The view's rows at a cn or time (the newest by default), cut for several readers.

        Those that are not `wanted` may be left out.
        """
        with self._catalog() as catalog:
            found = self._row(catalog)
            check_readable(found, found.cn or 0)
            bases = catalog.views.bases(found.id)
            # after the bases: a view delta that reaches as far as the newest of them
            row = self._row(catalog)
            if row.id != found.id:
                # another one took its place just now
                bases, row = catalog.views.bases(row.id), self._row(catalog)
            cn = row.cn if at is None else resolve(catalog, at)
            assert cn is not None
            store = ViewStore(self._root, row, shape_of(row))
            check_kept(catalog, store, row, cn)
        return _parts(store, row, nearest(bases, cn), cn, wanted)

    def _catalog(self) -> Catalog:
        return Catalog.open(self._root, SystemClock())

    def _row(self, catalog: Catalog) -> ViewRow:
        rows = [r for r in catalog.views.all() if not r.name.startswith(HIDDEN)]
        row = next((r for r in rows if r.name.lower() == self._view.lower()), None)
        if row is None:
            raise ConfigError(
                f'there is no view "{self._view}" in the warehouse',
                hint=nearest_or_all(self._view, [r.name for r in rows])
                or "steadyview run builds the project's views",
            )
        if row.state == "refused":
            raise ConfigError(f'view "{row.name}" is refused, so it has no rows', detail=row.error)
        if row.cn is None:
            raise OutsideRetention(
                f'view "{row.name}" has no state yet', hint="steadyview run builds its first state"
            )
        return row


def state_parts(root: Path, catalog: Catalog, view: int, cn: int) -> list[ViewPart]:
    """The rows at a cn of the very view with this id."""
    bases = catalog.views.bases(view)
    # after the bases: a view delta that reaches as far as the newest of them
    row = catalog.views.row(view)
    store = ViewStore(root, row, shape_of(row))
    check_kept(catalog, store, row, cn)
    return _parts(store, row, nearest(bases, cn), cn, None)


def _parts(
    store: ViewStore, row: ViewRow, base: Base, cn: int, wanted: pc.Expression | None
) -> list[ViewPart]:
    """What the base and the view delta between give, cut for several readers."""
    columns = store.shape.visible
    groups = may_hold(row_groups(store.base.files(base.version)), wanted)
    if base.cn == cn:
        return _cut(columns, groups, None)
    change = net_change(store, row.delta_version or 0, base.cn, cn).only(columns, wanted)
    groups, missing = without(groups, change.gone, columns)
    if missing.num_rows:
        raise below_zero(row.name, columns, cn, missing)
    return _cut(columns, groups, copies(change.come, columns))


def _cut(columns: Columns, groups: Sequence[RowGroup], come: pa.Table | None) -> list[ViewPart]:
    """Parts of about the same size, at least one."""
    found: list[list[RowGroup]] = [[]]
    for group in groups:
        if found[-1] and sum(g.size for g in found[-1]) + group.size > PART:
            found.append([])
        found[-1].append(group)
    first, *others = (ViewPart(columns, tuple(some)) for some in found)
    return [ViewPart(columns, first.groups, come), *others]
