"""Which times are to be bound, for whom; and what captures may admit until they are.

The times are those that refreshes at a moment of the sources' clocks are to show: of `daily at` and
`cron` their ticks, of "end of ..." the end of the period. Each is known one tick ahead, so that its
gate is open before it comes; one that was missed while nobody captured gets its gate when capture
begins, for the sources' commit times still tell what lies before it.

Views that are due at one time have one gate, for the sources of all of them: they agree there.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta

from steadyview.catalog import Catalog, Clock, ViewRow
from steadyview.errors import ClockAhead
from steadyview.runtime.bound_times import sources_of
from steadyview.runtime.kept import is_gated, is_hidden, policy_of, schedule_of
from steadyview.timing.gates import Gate, Gates
from steadyview.timing.schedules import RefreshSchedule

LIMIT = timedelta(seconds=30)
"""How long a gate waits for a source that is silent, where the project says nothing."""


@dataclass(frozen=True)
class _Dated:
    """A view whose refreshes show moments of its sources' clocks. `served`: its last tick."""

    schedule: RefreshSchedule
    target: Callable[[int], int]
    sources: frozenset[str]
    served: int

    def times(self, now: int) -> list[int]:
        """What it is to show next, and what it should show already."""
        coming, latest = self.schedule.next(now), self.schedule.latest(now)
        ticks = [] if coming is None else [coming]
        if latest is not None and latest > self.served:
            ticks.append(latest)
        return [self.target(tick) for tick in ticks]


class Gatekeeper:
    """The gates of one warehouse, for all captures of the process that holds it. Any thread."""

    def __init__(
        self, catalog: Catalog, clock: Clock, limit: timedelta = LIMIT, zone: str = "UTC"
    ) -> None:
        self.bound: Callable[[], None] = lambda: None
        """Called when a time was bound: what was held back may go on."""
        self._catalog = catalog
        self._clock = clock
        self._zone = zone
        self._gates = Gates(int(limit.total_seconds() * 1_000_000))
        self._lock = threading.Lock()
        self._views: list[_Dated] = []
        self._over: set[int] = set()
        """Wanted times that are bound, or cannot be bound any more."""
        self._turn: int | None = None

    def follow(self) -> None:
        """Take up the views' schedules as the catalog has them now."""
        known = self._catalog.refreshes.all()
        rows = {row.id: row for row in self._catalog.views.all()}
        found = []
        for row in rows.values():
            if not (_waits_for_ticks(row) and is_gated(row, self._zone)):
                continue
            schedule, target = schedule_of(row, self._zone)
            served = known[row.id].tick if row.id in known else None
            last = max(served or 0, row.begun)
            found.append(_Dated(schedule, target, sources_of(row, rows), last))
        with self._lock, suppress(ClockAhead):
            self._views = found
            self._catalog.commits.trust()
            self._arm(self._clock.now_us())

    def tend(self) -> None:
        """Open the gates that come next, and bind the times whose gates are to be closed.

        Nothing is done by a clock that cannot be believed.
        """
        closed = False
        with self._lock, suppress(ClockAhead):
            self._catalog.commits.trust()
            now = self._clock.now_us()
            if self._turn is not None and now >= self._turn:
                self._arm(now)
            while (gate := self._gates.due(now)) is not None:
                self._catalog.gates.bind(gate.time, gate.told, now)
                self._gates.drop(gate.time)
                closed = True
        if closed:
            self.bound()

    def waiting(self) -> list[Gate]:
        """The gates of times that have come."""
        with self._lock:
            now = self._clock.now_us()
            return [gate for gate in self._gates.all() if gate.time <= now]

    def times(self, source: str) -> tuple[int, ...]:
        """Where what the source delivers is to be divided."""
        with self._lock:
            return self._gates.times(source)

    def took(self, source: str, dated: int, mixed: Collection[int]) -> None:
        """A capture has this in hand; see `Gates.took`."""
        with self._lock:
            self._gates.took(source, dated, mixed)

    def parts(self, source: str, before: int, dated: int) -> bool:
        """Whether what is dated so must not be admitted together; see `Gates.parts`."""
        with self._lock:
            return self._gates.parts(source, before, dated)

    def holds(self, source: str, dated: int) -> bool:
        """Whether it lies behind an open gate."""
        with self._lock:
            return self._gates.holds(source, dated, self._clock.now_us())

    def admits(self, source: str, dated: int) -> bool:
        """Whether it may be admitted now."""
        with self._lock:
            return self._gates.admits(source, dated, self._clock.now_us())

    def heard(self, source: str, upto: int) -> None:
        """All that the source committed up to there is admitted."""
        with self._lock:
            self._gates.heard(source, upto)

    def _arm(self, now: int) -> None:
        """Have the catalog's open gates, and ours, be those that the views want."""
        wanted: dict[int, frozenset[str]] = {}
        for view in self._views:
            for time in view.times(now):
                wanted[time] = wanted.get(time, frozenset()) | view.sources
        self._over &= wanted.keys()
        wanted = {time: names for time, names in wanted.items() if time not in self._over}
        ticks = (view.schedule.next(now) for view in self._views)
        self._turn = min((tick for tick in ticks if tick is not None), default=None)
        rows = {row.time: row for row in self._catalog.gates.keep(wanted)}
        self._over |= wanted.keys() - rows.keys()
        for gate in self._gates.all():
            if gate.time not in rows:
                self._gates.drop(gate.time)
        for time, row in rows.items():
            self._gates.open(time, row.sources, now, row.told)


def _waits_for_ticks(row: ViewRow) -> bool:
    deferred = not is_hidden(row) and policy_of(row) != "immediate"
    return deferred and row.state == "active" and row.cn is not None
