"""The stores of a project, kept up beside the batches: a thread each, so that none waits.

After every publication a store's thread is woken; it looks at the catalog and brings each view that
is served there to the cn that readers of the warehouse see. A store that does not answer is asked
again, later each time; a view that cannot be served stands still and says why, in the store itself,
and the others go on.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from steadyview.errors import DefiniteError, SteadyviewError, StoreUnavailable
from steadyview.runtime.managers.lanes import LogServed
from steadyview.runtime.managers.log_records import LogRecords
from steadyview.runtime.managers.log_views import log_view_of
from steadyview.runtime.managers.manager_job import ManagerJob, check_slots
from steadyview.runtime.parts import Parts
from steadyview.runtime.record_batches import RecordBatches, Target
from steadyview.runtime.served_rows import served_views, settings_of
from steadyview.serving.stores import open_store

LOOK = 1.0
"""Seconds after which a thread looks by itself."""
LONGEST = 30.0
"""Seconds between two tries of a store that does not answer, at most."""


@dataclass(frozen=True)
class Trouble:
    """What is wrong: with one view in the store, or (None) with the store."""

    view: str | None
    error: SteadyviewError


class StoreKeeper:
    """Keeps one store up."""

    def __init__(self, parts: Parts, name: str, managers: ManagerJob | None = None) -> None:
        """`managers`: who keep views that are served from the log; None: that is done here."""
        self.name = name
        self._managers = managers
        self._log_records = LogRecords(parts)
        self.told: list[Trouble] = []
        self._parts = parts
        self._target: Target | None = None
        self._woken = threading.Event()
        self._stop = threading.Event()
        self._wait = LOOK
        self._unused = False
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Keep it up by a thread of its own."""
        self._thread = threading.Thread(target=self._keep, name=f"store {self.name}", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Something was published."""
        self._woken.set()

    def stop(self) -> None:
        """Returns when the batch at hand is written."""
        self._stop.set()
        self._woken.set()
        if self._thread is not None:
            self._thread.join()
        self._close()

    def _keep(self) -> None:
        while not self._stop.is_set():
            self._woken.clear()
            down = any(trouble.view is None for trouble in self.round())
            self._wait = min(self._wait * 2, LONGEST) if down else LOOK
            if down:
                self._stop.wait(self._wait)
            else:
                self._woken.wait(self._wait)

    def round(self, only: str | None = None) -> list[Trouble]:
        """Bring every view to where it is to be; what is wrong, by view."""
        found: list[Trouble] = []
        try:
            self._brought(found, only)
        except SteadyviewError as error:
            self._close()
            found.append(Trouble(None, error))
        except Exception as error:  # noqa: BLE001 - told, and tried again
            self._close()
            found.append(Trouble(None, _fault(self.name, error)))
        self.told = found
        return found

    def _brought(self, found: list[Trouble], only: str | None) -> None:
        rows = served_views(self._parts.catalog, self.name)
        if not rows and self._unused:
            return
        target = self._opened(make=bool(rows))
        known = {view.view: view for view in target.store.views()}
        batches = RecordBatches(self._parts, target)
        from_log: list[LogServed] = []
        for row in rows:
            if self._stop.is_set():
                return
            if row.cn is None or only not in (None, row.name):
                continue
            try:
                view = log_view_of(row, self._parts.project)
                if view is None:
                    batches.bring(row, known.get(row.name))
                else:
                    served = self._log_records.bring(target, row, known.get(row.name), view)
                    from_log += [] if served is None else [served]
            except StoreUnavailable:
                raise
            except SteadyviewError as error:
                found.append(Trouble(row.name, error))
                _tell(target, row.name, error, self._parts.catalog.identity())
        self._keep_from_log(target, from_log, only)
        self._forget(target, {row.name for row in rows}, known.values())
        self._unused = not rows

    def _keep_from_log(
        self, target: Target, served: Sequence[LogServed], only: str | None
    ) -> None:
        if self._managers is None:
            for one in served:
                self._log_records.catch_up(target, one)
        elif only is None:
            if served:
                check_slots(self._parts)
            self._managers.keep(self.name, served)

    def _forget(self, target: Target, wanted: set[str], known: Iterable[Any]) -> None:
        """Take out what we do not serve any more."""
        identity = self._parts.catalog.identity()
        for view in known:
            if view.warehouse == identity and view.view not in wanted:
                target.store.forget(view.view)

    def _opened(self, *, make: bool) -> Target:
        if self._target is None:
            settings = settings_of(self._parts.project, self.name)
            self._target = Target(self.name, settings, open_store(self.name, settings))
            if make:
                self._target.store.prepare()
        return self._target

    def _close(self) -> None:
        target, self._target = self._target, None
        if target is not None:
            with suppress(SteadyviewError):
                target.store.close()


class StoreKeepers:
    """The keepers of all stores."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._managers: ManagerJob | None = None
        self._keepers = [StoreKeeper(parts, name) for name in parts.project.stores]

    def start(self) -> None:
        """Keep them up from now on."""
        self._managers = ManagerJob(self._parts)
        stores = self._parts.project.stores
        self._keepers = [StoreKeeper(self._parts, name, self._managers) for name in stores]
        for keeper in self._keepers:
            keeper.start()

    def have_managers(self) -> bool:
        """Whether view managers are at work."""
        return self._managers is not None and self._managers.at_work()

    def wake(self) -> None:
        """Something was published."""
        for keeper in self._keepers:
            keeper.wake()

    def now(self, only: str | None = None) -> list[Trouble]:
        """Bring all records to what is published, one store after the other; what is wrong."""
        return [trouble for keeper in self._keepers for trouble in keeper.round(only)]

    def troubles(self) -> list[Trouble]:
        """What is wrong now."""
        found = [trouble for keeper in self._keepers for trouble in keeper.told]
        job = None if self._managers is None else self._managers.error
        return found if job is None else [*found, Trouble(None, job)]

    def stop(self) -> None:
        """Returns when no record is written any more."""
        for keeper in self._keepers:
            keeper.stop()
        if self._managers is not None:
            self._managers.stop()


def _tell(target: Target, view: str, error: SteadyviewError, identity: str) -> None:
    """Have a view stand still where trying again cannot help, and say why in the store."""
    known = target.store.find(view) if isinstance(error, DefiniteError) else None
    if known is not None and known.warehouse == identity and known.error is None:
        target.store.tell(view, str(error))


def _fault(store: str, error: Exception) -> SteadyviewError:
    first = (str(error).splitlines() or [""])[0]
    return SteadyviewError(
        f'store "{store}" could not be kept up by a fault of steadyview',
        detail=f"{type(error).__name__}: {first}",
        hint="it is tried again; the views themselves go on",
    )
