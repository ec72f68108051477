"""How fast managers are over storage units that take time: the model behind Figures 2 to 8.

An operation on a record takes a way there, a service, and a way back. A unit serves one operation
at a time, first come first served, and does it when the service ends: so a test-and-set fails if
another one was served between its read and it. A scan of the base table is served by every unit.
The update programs are those of `maintenance/records`; the store is the simulator's.
Shape only: with waiting but no queue no curve would ever bend down.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from typing import Any, Final

from steadyview.maintenance.records.entries import LogEntry
from steadyview.maintenance.records.program import UpdateProgram
from steadyview.maintenance.records.requests import GroupScan, ScanGroup, Steps
from steadyview.simulation.records.store import SimulatedStore

UNITS: Final = 20
_APART: Final = 0.37
"""Managers begin one after the other, so many milliseconds."""
Entries = Iterator[LogEntry]
Scanning = Callable[[Any], GroupScan]


@dataclass(frozen=True)
class ServiceTimes:
    """In milliseconds: both ways together, the service of an operation, of a scan on each unit."""

    ways: float = 1.0
    operation: float = 1.0
    scan: float = 2.0


@dataclass(frozen=True)
class Throughput:
    """Per second: entries done, and tests that failed."""

    updates: float
    contentions: float


@dataclass(slots=True)
class _Client:
    """A manager: its entries, the program that is under way, and the request that is out."""

    entries: Entries
    steps: Steps | None = None
    request: Any = None


class Queues:
    """Managers, one request of each at a time, over units with queues."""

    def __init__(
        self, store: SimulatedStore, program: UpdateProgram, times: ServiceTimes, scan: Scanning
    ) -> None:
        self._store, self._program, self._times, self._scan = store, program, times, scan
        self._free = [0.0] * UNITS
        self._agenda: list[tuple[float, int, bool, _Client]] = []
        self._tie = count()
        self._done = 0

    def run(self, managers: list[Entries], upto: float = float("inf")) -> Throughput:
        """To a moment, in milliseconds, or until all entries are done."""
        now = 0.0
        for number, entries in enumerate(managers):
            self._sends(_Client(entries), None, number * _APART)
        while self._agenda:
            when, _, is_served, client = heappop(self._agenda)
            if when > upto:
                now = upto
                break
            now = when
            if is_served:
                self._sends(client, self._answer(client.request), now + self._times.ways / 2)
            else:
                self._at(self._served(client.request, now), True, client)
        return Throughput(self._done / now * 1000, self._store.contentions / now * 1000)

    def _at(self, when: float, is_served: bool, client: _Client) -> None:
        heappush(self._agenda, (when, next(self._tie), is_served, client))

    def _sends(self, client: _Client, answer: Any, now: float) -> None:
        """The next request of the entry, or of the next entry that asks for anything."""
        while True:
            if client.steps is None:
                entry = next(client.entries, None)
                if entry is None:
                    return
                client.steps, answer = self._program.propagate(entry), None
            try:
                client.request = client.steps.send(answer)
            except StopIteration:
                client.steps = None
                self._done += 1
                continue
            self._at(now + self._times.ways / 2, False, client)
            return

    def _served(self, request: Any, now: float) -> float:
        """When the service ends; units are busy until then."""
        if type(request) is ScanGroup:
            self._free = [max(free, now) + self._times.scan for free in self._free]
            return max(self._free)
        unit = hash(request.key) % UNITS
        self._free[unit] = max(self._free[unit], now) + self._times.operation
        return self._free[unit]

    def _answer(self, request: Any) -> Any:
        return self._scan(request.key) if type(request) is ScanGroup else self._store.asked(request)
