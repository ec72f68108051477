"""One run: base tables change, managers ask one request at a time, in an order that dice choose.

One manager is held still somewhere between two requests in most runs, until nobody else has
anything to do: that is where lost updates come from. When the base tables are done, every manager
goes on to the end of its lanes; requests that are late come then at the latest.
"""

from __future__ import annotations

from collections.abc import Hashable
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from steadyview.checking.records import RecordHistory
from steadyview.maintenance.records.entries import LogEntry
from steadyview.maintenance.records.requests import (
    ReadBaseRecord,
    ReadLogEnd,
    ScanGroup,
    Stamp,
    StoredRecord,
)
from steadyview.maintenance.records.signatures import Superseded
from steadyview.maintenance.records.view_manager import NumberedRequest, ViewManager
from steadyview.simulation.records.backups import StoreHistory
from steadyview.simulation.records.base_tables import BaseTables, stream_of
from steadyview.simulation.records.faults import RunFaults
from steadyview.simulation.records.telling import told_change, told_lane, told_request
from steadyview.simulation.records.ways import ANY, STREAM, RecordWay
from steadyview.simulation.records.worlds import RecordWorld, record_world

_CRASH, _LATE, _COPY, _DIES, _RECLAIMS, _ARRIVES = 0.12, 0.12, 0.1, 0.06, 0.15, 0.15
_CUT: Final = 0.06
_MOST_FAULTS: Final = 3
_HELD, _RELEASED, _CHANGES = 0.6, 0.01, 0.35
_MOST_STEPS: Final = 3000


class Unfinished(Exception):
    """A run did not come to its end: managers ask for ever."""


@dataclass(frozen=True)
class RecordTrace:
    """A run, for the checker; `contentions`: how many tests failed."""

    world: RecordWorld
    history: RecordHistory
    contentions: int
    requests: int


def recorded(way: RecordWay, faults: RunFaults, seed: int) -> RecordTrace:
    """The run that the seed decides."""
    random = Random(seed)
    world = record_world(random, way.kind)
    return RecordRun(way, faults, world, random).finish()


@dataclass(slots=True, eq=False)
class _Worker:
    """A manager that lives, what it is about to ask, and how much of its lanes it was given."""

    manager: ViewManager
    lanes: tuple[Hashable, ...]
    given: dict[Hashable, int]
    asked: list[NumberedRequest]
    held_at: int = -1


class RecordRun:
    """One world, one way, one schedule."""

    def __init__(
        self, way: RecordWay, faults: RunFaults, world: RecordWorld, random: Random
    ) -> None:
        self.story: list[str] | None = None
        """What happened, line by line, if somebody wants to know."""
        self._way, self._faults, self._world = way, faults, world
        self._random, self._dice = random, random.random
        self.base = BaseTables(world)
        first = {
            key: StoredRecord(fields, Stamp(way.tas.first))
            for key, fields in way.first(world).items()
        }
        self.store = way.store(way.tas, way.shows, first, way.additive)
        self._lanes: dict[Hashable, list[LogEntry]] = {lane: [] for lane in self._all_lanes()}
        self._faults_left = _MOST_FAULTS
        self._late: list[Any] = []
        self._window = 1 + int(self._dice() * 3) if faults.window else 1
        self._workers = [self._worker(lanes) for lanes in self._shared_out(list(self._lanes))]
        if self._dice() < _HELD:
            self._workers[0].held_at = int(self._dice() * 8)
        self._requests = 0
        self._history = StoreHistory(self.store, faults.restored)
        self._is_repartitioned = False

    def finish(self) -> RecordTrace:
        """To the end."""
        while self._happens():
            if self._requests > _MOST_STEPS:
                raise Unfinished(self._way.name)
        while self._late:
            self._arrives(self._late.pop())
        timelines = self._world.timelines()
        history = RecordHistory(self._way.judged, timelines, self.store.shown)
        return RecordTrace(self._world, history, self.store.contentions, self._requests)

    def _all_lanes(self) -> list[Hashable]:
        if self._way.lanes == STREAM:
            return [stream_of(bucket) for bucket in range(self._world.streams)]
        if self._way.lanes == ANY:
            return list(range(3))
        return list(self._world.first)

    def _shared_out(self, lanes: list[Hashable]) -> list[tuple[Hashable, ...]]:
        """Lanes by manager; some runs have one manager for all."""
        managers = 1 + int(self._dice() * 3)
        shares: list[list[Hashable]] = [[] for _ in range(managers)]
        for number, lane in enumerate(lanes):
            shares[number % managers].append(lane)
        return [tuple(share) for share in shares if share]

    def _worker(self, lanes: tuple[Hashable, ...]) -> _Worker:
        """A manager that begins behind what is registered."""
        positions = {lane: self.store.registered.get(lane, 0) for lane in lanes}
        way = self._way
        manager = way.manager(
            way.program(),
            positions,
            at_once=way.at_once,
            together=way.together,
            window=self._window,
        )
        return _Worker(manager, lanes, dict.fromkeys(lanes, 0), [])

    def _happens(self) -> bool:
        """One thing; False when there is nothing left to do."""
        if not self.base.is_over and self._dice() < _CHANGES:
            self._change()
            return True
        workers = [w for w in self._workers if w.asked or self._is_busy(w)]
        held = next((w for w in workers if w.held_at == 0), None)
        if held is not None:
            if len(workers) == 1 or self._dice() < _RELEASED:
                held.held_at = -1
            else:
                workers.remove(held)
        if workers:
            self._go_on(workers[int(self._dice() * len(workers))])
        elif self.base.is_over:
            return False
        else:
            self._change()
        self._around()
        return True

    def _change(self) -> None:
        entry = self.base.change()
        if self.story is not None:
            self.story.append(told_change(entry))
        self._lanes[self._lane_of(entry)].append(entry)

    def _lane_of(self, entry: LogEntry) -> Hashable:
        if self._way.lanes == STREAM:
            return entry.stream
        return int(self._dice() * 3) if self._way.lanes == ANY else (entry.relation, entry.key)

    def _is_busy(self, worker: _Worker) -> bool:
        if not worker.manager.is_idle:
            return True
        return any(worker.given[lane] < len(self._lanes[lane]) for lane in worker.lanes)

    def _go_on(self, worker: _Worker) -> None:
        if worker.held_at > 0:
            worker.held_at -= 1
        if worker.asked:
            first = worker.asked[0][0] == 0 or len(worker.asked) == 1
            at = 0 if first else int(self._dice() * len(worker.asked))
            self._ask(worker, worker.asked.pop(at))
        if worker in self._workers:
            self._fill(worker)

    def _fill(self, worker: _Worker) -> None:
        """Entries for a manager that has room for them."""
        if worker.asked and self._way.at_once == 1:
            return
        for lane in worker.lanes:
            entries = self._lanes[lane]
            if worker.given[lane] < len(entries):
                worker.manager.received(lane, entries[worker.given[lane] :])
                worker.given[lane] = len(entries)
        at = int(self._dice() * len(worker.lanes))
        for lane in worker.lanes[at:] + worker.lanes[:at]:
            worker.asked += worker.manager.begin(lane)
        request = worker.manager.registering(now=worker.manager.is_idle)
        if request is not None:
            worker.asked.insert(0, (0, request))

    def _ask(self, worker: _Worker, asked: NumberedRequest) -> None:
        self._requests += 1
        number, request = asked
        try:
            if self._faults_left and self._goes_wrong(request):
                self._tell(worker, "dies")
                self._replaced(worker)
                return
            answer = self._answer(request)
            if self.story is not None:
                self._tell(worker, told_request(request, answer))
            if number:
                worker.asked += worker.manager.answered(number, answer)
        except Superseded:
            self._workers.remove(worker)

    def _goes_wrong(self, request: Any) -> bool:
        """Whether the manager dies at this request, which is done, not done, or comes late."""
        if not (self._faults.crash or self._faults.late):
            return False
        point = self._dice()
        if self._faults.crash and point < _CRASH:
            if point < _CRASH / 2:
                answer = self._answer(request)
                if self.story is not None:
                    self.story.append(f"store: {told_request(request, answer)}")
            return True
        if self._faults.late and point > 1 - _LATE:
            self._late.append(request)
            return True
        return False

    def _arrives(self, request: Any) -> None:
        """A late request; nobody waits for the answer."""
        with suppress(Superseded):
            answer = self._answer(request)
            if self.story is not None and told_request(request, answer):
                self.story.append(f"late: {told_request(request, answer)}")

    def _answer(self, request: Any) -> Any:
        kind = type(request)
        if kind is ScanGroup:
            return self.base.scan(request.key, self._way.before, self._behind())
        if kind is ReadLogEnd:
            return self.base.end
        if kind is ReadBaseRecord:
            return self.base.record((request.relation, request.key), self._behind())
        return self.store.asked(request)

    def _behind(self) -> int:
        return int(self._dice() * 3) if self._faults.lag else 0

    def _tell(self, worker: _Worker, what: str) -> None:
        if self.story is not None and what:
            lanes = ", ".join(told_lane(lane) for lane in worker.lanes)
            self.story.append(f"manager of {lanes}: {what}")

    def _replaced(self, worker: _Worker) -> None:
        """The manager is dead; another one begins."""
        self._faults_left -= 1
        self._workers[self._workers.index(worker)] = self._worker(worker.lanes)

    def _around(self) -> None:
        """What happens beside the managers."""
        if self._late and self._dice() < _ARRIVES:
            self._arrives(self._late.pop(int(self._dice() * len(self._late))))
        if self._faults.copies:
            self._copies()
        if self._way.reclaims and self._way.lanes == STREAM and self._dice() < _RECLAIMS:
            self.store.reclaim(self.store.registered)
        if self._faults.restored and self._history.passes(self._dice()):
            self._late.clear()
            self._workers = [self._worker(worker.lanes) for worker in self._workers]
        if self._faults.repartitioned and not self._is_repartitioned and self._dice() < _CUT:
            self._repartition()

    def _repartition(self) -> None:
        """All stop; what is registered under the old streams is not done again."""
        self._is_repartitioned = True
        self.base.repartition()
        lanes: list[Hashable] = [stream_of(bucket, 2) for bucket in range(3)]
        self._lanes |= {lane: [] for lane in lanes}
        registered = self.store.registered
        for entry in self.base.log:
            if entry.number > registered.get(entry.streams[1], 0):
                self._lanes[entry.stream].append(entry)
        stale = self._workers if self._faults.copies else []
        self._workers = [*(self._worker(share) for share in self._shared_out(lanes)), *stale]

    def _copies(self) -> None:
        point = self._dice()
        if self._faults_left and point < _COPY:
            self._faults_left -= 1
            worker = self._workers[int(self._dice() * len(self._workers))]
            self._workers.append(self._worker(worker.lanes))
        elif point > 1 - _DIES:
            worker = self._workers[int(self._dice() * len(self._workers))]
            if sum(w.lanes == worker.lanes for w in self._workers) > 1:
                self._workers.remove(worker)
