"""Reading one record again and again while the views are kept: how long, and how fresh."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Any

import steadyview
from steadyview.errors import SteadyviewError

_VIEW, _STORE = "revenue_by_region", "shop_cache"
_KEYS = ("north", "south", "east", "west", None)
_PAUSE = 0.02


class LiveGets:
    """An application of its own thread that reads from the store, and nothing else."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._read, name="gets")
        self._seconds: list[float] = []
        self._versions: set[tuple[Any, int]] = set()
        self._together: set[int] = set()

    def __enter__(self) -> LiveGets:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _read(self) -> None:
        with steadyview.open(self._folder) as warehouse:
            store = warehouse.store(_STORE)
            while not self._stop.wait(_PAUSE):
                try:
                    self._once(store)
                except SteadyviewError:
                    # nothing is served yet
                    self._stop.wait(0.5)

    def _once(self, store: Any) -> None:
        for key in _KEYS:
            begun = time.perf_counter()
            record = store.get(_VIEW, key)
            self._seconds.append(time.perf_counter() - begun)
            if record is not None:
                self._versions.add((key, record.cn))
        self._together.add(store.get_many(_VIEW, _KEYS).cn)

    def told(self, warehouse: Any) -> list[str]:
        """What it read, and whether the store now has what the view has."""
        found = sorted(self._seconds)
        if not found:
            return ["Nothing was read from the store."]
        middle, late = found[len(found) // 2] * 1e3, found[int(len(found) * 0.99)] * 1e3
        record = warehouse.store(_STORE).get(_VIEW, "north")
        (verdict,) = warehouse.verify_served([_VIEW])
        word = "equal" if verdict.equal else "differs"
        return [
            f"Served from cache.db while it was kept: {len(found):,} gets, median {middle:.2f} ms,"
            f" 99 of 100 within {late:.2f} ms; {len(self._versions):,} versions of"
            f" {len(_KEYS)} records seen, all of them together as of {len(self._together):,} cns.",
            f'get("{_VIEW}", "north"): revenue {record.values["revenue"]}, changed at cn'
            f" {record.cn:,}, the store at cn {record.as_of:,}; store against view at cn"
            f" {verdict.cn:,}: {word}.\n",
        ]
