"""A view manager: entries of its lanes in, requests out; which may begin, what may be registered.

A *lane* is a queue of entries that go through this manager in order. The flow rule is that a lane
is a log stream (section IV-C asks for order per base record only; see `signatures`).
Promised, per lane:

    of two entries that touch one record, the later begins when the earlier has ended   (pipelining)
    registered  =  the last entry of a prefix without gaps, all of it done

An entry here is what one transaction did to one record, or more: several may have one number, and
the position is behind them when all are done.
With several requests for one record under way, reordered or lost, a vector calls the lost one seen.
A manager that dies loses nothing but time: another one goes on behind what is registered, and
redrives. Two may do the same lane at once: whoever applies an entry has itself seen all before it
applied.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import count, islice
from typing import Any, TypeAlias

from steadyview.maintenance.records.entries import LogEntry, RecordKey
from steadyview.maintenance.records.program import GroupedProgram, UpdateProgram
from steadyview.maintenance.records.requests import RegisterPositions, Steps

Lane: TypeAlias = Hashable
NumberedRequest: TypeAlias = tuple[int, Any]
"""A number for the answer, and the request."""


@dataclass(slots=True)
class _Task:
    """Entries that are under way together."""

    entries: list[tuple[Lane, LogEntry]]
    steps: Steps
    touched: Mapping[Lane, set[RecordKey] | None]


@dataclass(slots=True)
class _LaneState:
    waiting: deque[LogEntry] = field(default_factory=deque)
    open: Counter[int] = field(default_factory=Counter)
    """How many entries of a number are begun, also done, up to the first that are not done."""
    done: Counter[int] = field(default_factory=Counter)
    position: int = 0


class ViewManager:
    """`at_once` tasks of `together` entries each; a registration every `window` entries."""

    def __init__(
        self,
        program: UpdateProgram,
        lanes: Mapping[Lane, int],
        *,
        at_once: int = 1,
        together: int = 1,
        window: int = 1,
    ) -> None:
        self._program = program
        self._lanes = {lane: _LaneState(position=position) for lane, position in lanes.items()}
        self._at_once, self._together, self._window = at_once, together, window
        self._tasks: dict[int, _Task] = {}
        self._numbers = count(1)
        self._unregistered = 0

    @property
    def positions(self) -> Mapping[Lane, int]:
        """Per lane, all up to here is done."""
        return {lane: state.position for lane, state in self._lanes.items()}

    @property
    def is_idle(self) -> bool:
        """Nothing is under way, and nothing waits."""
        return not self._tasks and not any(state.waiting for state in self._lanes.values())

    def received(self, lane: Lane, entries: Iterable[LogEntry]) -> None:
        """The next entries of a lane, all of a number at once; those it has are passed over."""
        state = self._lanes[lane]
        state.waiting.extend(entry for entry in entries if entry.number > state.position)

    def begin(self, lane: Lane | None = None) -> list[NumberedRequest]:
        """Begin what may begin, of one lane or of all; the first request of each task."""
        asked: list[NumberedRequest] = []
        while len(self._tasks) < self._at_once:
            entries = self._next([lane] if lane is not None else list(self._lanes))
            if not entries:
                break
            asked += self._begun(entries)
        return asked

    def answered(self, number: int, answer: Any) -> list[NumberedRequest]:
        """The next request of the task, or nothing: then its entries are done."""
        return self._sent(number, self._tasks[number], answer)

    def registering(self, *, now: bool = False) -> RegisterPositions | None:
        """What to register, once a window is full, or `now`."""
        if not self._unregistered or (self._unregistered < self._window and not now):
            return None
        self._unregistered = 0
        return RegisterPositions(dict(self.positions))

    def _next(self, lanes: Iterable[Lane]) -> list[tuple[Lane, LogEntry]]:
        found: list[tuple[Lane, LogEntry]] = []
        for lane in lanes:
            state = self._lanes[lane]
            if not state.waiting:
                continue
            for entry in self._may_begin(lane, state, self._together - len(found)):
                state.waiting.remove(entry)
                state.open[entry.number] += 1
                found.append((lane, entry))
            if len(found) == self._together:
                break
        return found

    def _may_begin(self, lane: Lane, state: _LaneState, most: int) -> list[LogEntry]:
        """Entries in order, passing over those that must wait, and what must wait for them."""
        if self._at_once == 1:
            return list(islice(state.waiting, most))
        busy = self._busy(lane)
        found: list[LogEntry] = []
        if busy is None:
            return found
        for entry in state.waiting:
            touched = self._program.touched(entry)
            if touched is None:
                return found or ([] if busy else [entry])
            if busy.isdisjoint(touched):
                found.append(entry)
            else:
                busy.update(touched)
            if len(found) == most:
                break
        return found

    def _busy(self, lane: Lane) -> set[RecordKey] | None:
        """The records that the lane's tasks may change; None if that may be any."""
        busy: set[RecordKey] = set()
        for task in self._tasks.values():
            touched = task.touched.get(lane, set())
            if touched is None:
                return None
            busy |= touched
        return busy

    def _begun(self, entries: list[tuple[Lane, LogEntry]]) -> list[NumberedRequest]:
        number = next(self._numbers)
        touched: dict[Lane, set[RecordKey] | None] = {}
        if self._at_once > 1:
            for lane, entry in entries:
                records = self._program.touched(entry)
                known = touched.setdefault(lane, set())
                touched[lane] = None if records is None or known is None else known | set(records)
        task = _Task(entries, self._steps([entry for _, entry in entries]), touched)
        self._tasks[number] = task
        return self._sent(number, task, None)

    def _steps(self, entries: list[LogEntry]) -> Steps:
        if len(entries) == 1:
            return self._program.propagate(entries[0])
        program: Any = self._program
        grouped: GroupedProgram = program
        return grouped.propagate_together(entries)

    def _sent(self, number: int, task: _Task, answer: Any) -> list[NumberedRequest]:
        try:
            return [(number, task.steps.send(answer))]
        except StopIteration:
            del self._tasks[number]
            for lane, entry in task.entries:
                self._done(self._lanes[lane], entry.number)
            return []

    def _done(self, state: _LaneState, number: int) -> None:
        """Positions move over what is done without a gap."""
        state.done[number] += 1
        self._unregistered += 1
        waiting = state.waiting[0].number if state.waiting else None
        for begun in sorted(state.open):
            if state.done[begun] < state.open[begun] or (waiting is not None and waiting <= begun):
                break
            del state.open[begun], state.done[begun]
            state.position = begun
