"""When the views' tables for other programs are written: beside the batches, each as it is due.

A table is due when its view has gone on and the time that it may trail is over, and once a minute
to see whether it is still what was left there. Everything that it takes is in the catalog and in
the views' own files. One thread writes tables, or whoever called `now`; never both.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass

from steadyview.catalog import ViewRow
from steadyview.errors import SteadyviewError, ViewStopped
from steadyview.plans.plan import HIDDEN
from steadyview.runtime.kept import shape_of, trailing_of
from steadyview.runtime.parts import Parts
from steadyview.runtime.status import time_of
from steadyview.warehouse.tables import TableOwner, ViewTable, remove_others
from steadyview.warehouse.view_store import ViewStore

LOOK = 60.0
"""Seconds between two looks at a table whose rows do not change, and after which it gets a new cn.
"""
SHARE = 0.1
"""A table that nobody has said anything about is written for no more than this part of the time."""


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
        self._looked: dict[str, _Looked] = {}
        self._names: frozenset[str] | None = None
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()
        self._again = 0.0
        self._errors: dict[str, SteadyviewError] = {}

    def beside(self) -> None:
        """Have what is due written by a thread, unless one is at it."""
        busy = self._thread is not None and self._thread.is_alive()
        if busy or time.monotonic() < self._again:
            return
        views = self._wanted()
        due = [row for row in views if self._due(row)]
        if due or self._gone(views):
            self._thread = threading.Thread(target=self._tried, args=(views, due), name="tables")
            self._thread.start()

    def now(self) -> None:
        """Write all of them."""
        self.stop()
        self._stop.clear()
        views = self._wanted()
        self._write(views, views)

    def stop(self) -> None:
        """Write no further one; returns when the one at hand is done."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def errors(self) -> dict[str, SteadyviewError]:
        """By view, why its table could not be written, though it goes on."""
        return dict(self._errors)

    def _wanted(self) -> list[ViewRow]:
        """The views that have a table: a stopped one has that of its last good state."""
        rows = (r for r in self._parts.catalog.views.all() if not r.name.startswith(HIDDEN))
        return [row for row in rows if trailing_of(row).by is not None]

    def _gone(self, views: Iterable[ViewRow]) -> bool:
        """Whether there may be tables of views that are no more."""
        return self._names != frozenset(row.name for row in views)

    def _due(self, row: ViewRow) -> bool:
        looked, trailing = self._looked.get(row.name), trailing_of(row)
        if row.cn is None or trailing.by is None:
            return False
        if looked is None or looked.id != row.id:
            return True
        since, wait = time.monotonic() - looked.at, trailing.by.total_seconds()
        if not trailing.stated:
            wait = max(wait, looked.took * (1 / SHARE - 1))
        return since >= (wait if row.cn != looked.cn else max(wait, LOOK))

    def _tried(self, views: list[ViewRow], due: list[ViewRow]) -> None:
        """Write them; what keeps us from writing any is tried again later, with the disk full say.

        The batches meet the same, and tell it.
        """
        try:
            self._write(views, due)
        except (OSError, SteadyviewError):
            self._again = time.monotonic() + LOOK

    def _write(self, views: list[ViewRow], due: list[ViewRow]) -> None:
        with self._parts.work_folder("table") as work:
            owner = TableOwner(self._parts.root, self._parts.catalog.identity(), work)
            for row in due:
                if self._stop.is_set():
                    return
                if row.cn is not None:
                    self._bring(owner, row)
            remove_others(owner, (row.name for row in views))
            self._names = frozenset(row.name for row in views)

    def _bring(self, owner: TableOwner, row: ViewRow) -> None:
        """Write one table; an error is this table's alone."""
        assert row.cn is not None
        begun = time.monotonic()
        when = time_of(self._parts.catalog, row.cn)
        store = ViewStore(self._parts.root, row, shape_of(row))
        table = ViewTable(owner, store, row, None if when is None else when.isoformat())
        try:
            table.bring()
            self._errors.pop(row.name, None)
        except ViewStopped as impossible:
            # the view's own rows are wrong, not its table
            if row.state != "stopped":
                self._parts.catalog.views.stop(row.name, str(impossible), row.cn + 1)
        except Exception as error:  # noqa: BLE001 - told, and tried again
            # a stopped view's own files may be what it has stopped for
            if row.state != "stopped":
                self._errors[row.name] = _told(row.name, error)
        now = time.monotonic()
        self._looked[row.name] = _Looked(row.id, row.cn, now, now - begun)


def _told(view: str, error: Exception) -> SteadyviewError:
    if isinstance(error, SteadyviewError):
        return error
    first = (str(error).splitlines() or [""])[0]
    return SteadyviewError(
        f'the table of view "{view}" could not be written by a fault of steadyview',
        detail=f"{type(error).__name__}: {first}",
        hint="it is tried again; the view itself goes on",
    )
