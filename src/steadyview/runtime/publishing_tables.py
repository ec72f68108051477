"""When the views' tables for other programs are written: beside the batches, each as it is due.

A table is due when its view has gone on and the time that it may trail is over, and once a minute
to see whether it is still what was left there. There are two kinds: the rows of a view, and its
changes. Everything that they take is in the catalog and in the views' own files. One thread writes
and tidies tables, or whoever called `now`; never both.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from steadyview.catalog import ViewRow
from steadyview.errors import SteadyviewError, StorageDamaged, ViewStopped
from steadyview.plans.plan import HIDDEN
from steadyview.runtime.housekeeping import EVERY, READERS
from steadyview.runtime.kept import reach_of, shape_of, trailing_of
from steadyview.runtime.parts import Parts
from steadyview.runtime.status import time_of
from steadyview.runtime.subscribing import START, begins_at
from steadyview.warehouse.change_rows import ChangeRows
from steadyview.warehouse.change_table import ChangeTable, tidy
from steadyview.warehouse.owned_table import OwnedTable, TableOwner, remove_others, vacuum
from steadyview.warehouse.table_mark import CHANGES, TABLES
from steadyview.warehouse.tables import ViewTable
from steadyview.warehouse.view_store import ViewStore

LOOK = 60.0
"""Seconds between two looks at a table whose rows do not change, and after which it gets a new cn.
"""
SHARE = 0.1
"""A table that nobody has said anything about is written for no more than this part of the time."""


@dataclass(frozen=True)
class _Wanted:
    """A table that is to be there: of this kind, of this view, which is at `cn`."""

    kind: str
    row: ViewRow
    cn: int | None

    @property
    def key(self) -> tuple[str, str]:
        return self.kind, self.row.name


@dataclass
class _Looked:
    """What we know of a table: of which view and cn it was at that time, and what writing took."""

    id: int
    cn: int
    at: float
    took: float = 0.0


class Tables:
    """Writes the tables of one warehouse; the caller holds the lease.

    While the thread that writes is alive, it alone touches what is known of the tables; `errors`
    gives a copy.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._looked: dict[tuple[str, str], _Looked] = {}
        self._names: frozenset[tuple[str, str]] | None = None
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()
        self._again = 0.0
        self._tidied = time.monotonic()
        self._errors: dict[tuple[str, str], SteadyviewError] = {}

    def beside(self) -> None:
        """Have what is due written by a thread, unless one is at it."""
        if self.writing or time.monotonic() < self._again:
            return
        wanted = [*self._wanted()]
        due = [one for one in wanted if self._due(one)]
        if due or self._gone(wanted) or self._untidy():
            self._thread = threading.Thread(target=self._tried, args=(wanted, due), name="tables")
            self._thread.start()

    @property
    def writing(self) -> bool:
        """Whether the thread is at it."""
        return self._thread is not None and self._thread.is_alive()

    def settle(self) -> None:
        """Returns when the thread has written all that it was given."""
        if self._thread is not None:
            self._thread.join()

    def now(self) -> None:
        """Write all of them."""
        self.stop()
        self._stop.clear()
        self._tidied = -EVERY
        wanted = [*self._wanted()]
        self._write(wanted, wanted)

    def stop(self) -> None:
        """Write no further one; returns when the one at hand is done."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def errors(self) -> dict[str, SteadyviewError]:
        """By view, why a table of it could not be written, though it goes on."""
        return {name: error for (_, name), error in dict(self._errors).items()}

    def _wanted(self) -> Iterator[_Wanted]:
        """What there is to be: a stopped view has the tables of its last good state."""
        reached = self._parts.catalog.refreshes.all()
        for row in self._parts.catalog.views.all():
            if row.name.startswith(HIDDEN):
                continue
            if trailing_of(row, TABLES).by is not None:
                yield _Wanted(TABLES, row, row.cn)
            if trailing_of(row, CHANGES).by is not None:
                yield _Wanted(CHANGES, row, reach_of(row, reached.get(row.id)))

    def _gone(self, wanted: Iterable[_Wanted]) -> bool:
        """Whether there may be tables of views that are no more."""
        return self._names != frozenset(one.key for one in wanted)

    def _untidy(self) -> bool:
        return time.monotonic() - self._tidied >= EVERY

    def _due(self, one: _Wanted) -> bool:
        looked, trailing = self._looked.get(one.key), trailing_of(one.row, one.kind)
        if one.cn is None or trailing.by is None:
            return False
        if looked is None or looked.id != one.row.id:
            return True
        since, wait = time.monotonic() - looked.at, trailing.by.total_seconds()
        if not trailing.stated:
            wait = max(wait, looked.took * (1 / SHARE - 1))
        return since >= (wait if one.cn != looked.cn else max(wait, LOOK))

    def _tried(self, wanted: list[_Wanted], due: list[_Wanted]) -> None:
        """Write them; what keeps us from writing any is tried again later, with the disk full say.

        The batches meet the same, and tell it.
        """
        try:
            self._write(wanted, due)
        except (OSError, SteadyviewError):
            self._again = time.monotonic() + LOOK

    def _write(self, wanted: list[_Wanted], due: list[_Wanted]) -> None:
        with self._parts.work_folder("table") as work:
            owner = TableOwner(self._parts.root, self._parts.catalog.identity(), work)
            for one in due:
                if self._stop.is_set():
                    return
                if one.cn is not None:
                    self._bring(owner, one, one.cn)
            for kind in (TABLES, CHANGES):
                remove_others(owner, kind, (o.row.name for o in wanted if o.kind == kind))
            self._names = frozenset(one.key for one in wanted)
            if self._untidy():
                self._tidied = time.monotonic()
                self._tidy(wanted)

    def _tidy(self, wanted: Iterable[_Wanted]) -> None:
        """A damaged table is not tidied: it is written anew. Stopped views stay as they are."""
        for one in wanted:
            if one.cn is not None and one.row.state not in ("stopped", "paused"):
                with suppress(StorageDamaged):
                    if one.kind == TABLES:
                        vacuum(self._parts.root, one.row.name, READERS)
                    else:
                        tidy(self._parts.root, one.row, self._oldest(one.row), READERS)

    def _bring(self, owner: TableOwner, one: _Wanted, cn: int) -> None:
        """Write one table; an error is this table's alone."""
        begun, row = time.monotonic(), one.row
        try:
            self._table(owner, one, cn).bring()
            self._errors.pop(one.key, None)
        except ViewStopped as impossible:
            # the view's own rows are wrong, not its table
            if row.state != "stopped":
                self._parts.catalog.views.stop(row.name, str(impossible), cn + 1)
        except Exception as error:  # noqa: BLE001 - told, and tried again
            # a stopped view's own files may be what it has stopped for
            if row.state != "stopped":
                self._errors[one.key] = _told(row.name, error)
        now = time.monotonic()
        self._looked[one.key] = _Looked(row.id, cn, now, now - begun)

    def _oldest(self, row: ViewRow) -> int:
        """The oldest state that changes lead from."""
        return begins_at(self._parts.catalog, row, START)

    def _table(self, owner: TableOwner, one: _Wanted, cn: int) -> OwnedTable:
        known = time_of(self._parts.catalog, cn)
        when = None if known is None else known.isoformat()
        store = ViewStore(self._parts.root, one.row, shape_of(one.row))
        if one.kind == TABLES:
            return ViewTable(owner, store, one.row, when)
        changes = ChangeRows(store, self._parts.catalog, one.row.id, cn)
        return ChangeTable(owner, one.row, changes, when, self._oldest(one.row))


def _told(view: str, error: Exception) -> SteadyviewError:
    if isinstance(error, SteadyviewError):
        return error
    first = (str(error).splitlines() or [""])[0]
    return SteadyviewError(
        f'the table of view "{view}" could not be written by a fault of steadyview',
        detail=f"{type(error).__name__}: {first}",
        hint="it is tried again; the view itself goes on",
    )
