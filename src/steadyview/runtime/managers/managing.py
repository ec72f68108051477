"""The loop of a view manager: which streams it has, what has come in them, and when it ends.

Before each poll it asks which leases it has. It ends when its generation is over, after LIFE, or
when the process that started it is gone; a store that does not answer is asked again, and a view
that cannot be kept stands still and says so in the store. The others go on.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from steadyview.catalog import Catalog
from steadyview.errors import DefiniteError, SteadyviewError
from steadyview.maintenance.records.entries import LogStream
from steadyview.runtime.clock import SystemClock
from steadyview.runtime.managers.lanes import Lanes, LogPruned, LogServed
from steadyview.serving.contract import RecordStore
from steadyview.serving.stores import open_store
from steadyview.update_log import UpdateLog

if TYPE_CHECKING:
    import pyarrow as pa

LIFE = 300.0
"""Seconds after which a manager ends, to be started again."""
POLL = 0.02
"""Seconds between two looks at a log that has nothing new."""
AGAIN = 0.5
"""Seconds until a store that did not answer is asked again."""


@dataclass(frozen=True)
class Managers:
    """What the managers of a generation have to do."""

    warehouse: Path
    generation: int
    served: Sequence[LogServed]


class Managing:
    """One manager at work."""

    def __init__(self, managers: Managers, number: int) -> None:
        self._managers = managers
        self._number = number
        self._stores: dict[str, RecordStore] = {}
        self._lanes: dict[int, Lanes] = {}
        self._after: dict[int, float] = {}
        self._pause = threading.Event()

    def work(self) -> None:
        """Until it is over."""
        parent, end = os.getppid(), time.monotonic() + LIFE
        with Catalog.open(self._managers.warehouse, SystemClock()) as catalog:
            log = UpdateLog(self._managers.warehouse / "log")
            try:
                while time.monotonic() < end and os.getppid() == parent:
                    held = catalog.leases.held(self._number, self._managers.generation)
                    if held is None:
                        break
                    if not self._round(catalog, log, held):
                        self._pause.wait(POLL)
                for number in [*self._lanes]:
                    self._tried(number, self._lanes[number].finish)
            finally:
                for store in self._stores.values():
                    with suppress(SteadyviewError):
                        store.close()

    def _round(self, catalog: Catalog, log: UpdateLog, held: frozenset[str]) -> bool:
        """Poll every view of which it has streams; whether anything had come."""
        busy = False
        for number, served in enumerate(self._managers.served):
            mine = [stream for name, stream in served.streams.items() if name in held]
            if time.monotonic() < self._after.get(number, 0.0) or (
                not mine and number not in self._lanes
            ):
                continue
            busy |= self._tried(number, partial(self._poll, catalog, log, number, mine))
        return busy

    def _poll(
        self, catalog: Catalog, log: UpdateLog, number: int, mine: Sequence[LogStream]
    ) -> bool:
        served, lanes = self._managers.served[number], self._lanes.get(number)
        if lanes is None:
            lanes = self._lanes[number] = Lanes(served, self._store(served), catalog, log)
        lanes.take(mine)
        return lanes.poll()

    def _tried(self, number: int, what: Callable[[], bool | None]) -> bool:
        """Do it; where that fails, the lanes begin anew behind what is registered."""
        served = self._managers.served[number]
        try:
            return bool(what())
        except LogPruned:
            # who keeps the views begins the records anew
            self._after[number] = time.monotonic() + AGAIN
        except DefiniteError as error:
            self._after[number] = float("inf")
            with suppress(SteadyviewError):
                self._store(served).tell(served.records.view, str(error))
        except SteadyviewError:
            self._after[number] = time.monotonic() + AGAIN
            store = self._stores.pop(served.store, None)
            if store is not None:
                with suppress(SteadyviewError):
                    store.close()
            # they spoke through the same connection
            same = [n for n, s in enumerate(self._managers.served) if s.store == served.store]
            for other in same:
                self._lanes.pop(other, None)
        self._lanes.pop(number, None)
        return False

    def _store(self, served: LogServed) -> RecordStore:
        if served.store not in self._stores:
            self._stores[served.store] = open_store(served.store, served.settings)
        return self._stores[served.store]


def managing(
    managers: Managers,
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The task: a manager per row. What it needs travels inside it, so that no plan shows it."""

    def manage(numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                Managing(managers, number).work()
        return iter(())

    return manage


def assigned(served: Sequence[LogServed], managers: int) -> Mapping[str, int]:
    """Which manager has which stream: round robin, so that each view is divided."""
    names = [name for one in served for name in one.streams]
    return {name: place % managers for place, name in enumerate(names)}
