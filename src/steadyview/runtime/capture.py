"""Capture: one thread per source turns its commits into durable, admitted log entries.

    poll -> append -> (soon, at 64 MB, or when somebody waits) flush -> admit -> acknowledge

Soon is at once where nothing came for a while, every 200 ms in a stream, and every second while a
batch is computed, which would not see it anyway; view managers would, and are not kept waiting.

Where a gate is open (`timing/gates.py`) what lies behind it stays in hand: it is taken from the
source and written down, and not admitted until the gate's time is bound. Of what is in hand, all is
on one side of each gate.

Invariant: the source is told to forget a change only after the catalog holds its admission, and a
restart begins at the catalog's position. So every transaction is admitted exactly once, wherever
the process dies in between.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace

from steadyview.catalog import Catalog
from steadyview.changes import Chunk, RelationSchema, StreamPosition
from steadyview.crash_points import crash_point
from steadyview.errors import (
    DefiniteError,
    LeaseLost,
    SourceRefused,
    SourceUnavailable,
    SteadyviewError,
    StorageUnavailable,
    TransientError,
)
from steadyview.runtime.clock import ClockWatch, SystemClock
from steadyview.runtime.gatekeeper import Gatekeeper
from steadyview.sources.contract import Monitor, Source
from steadyview.update_log import FlushWriter, UpdateLog

FLUSH_SECONDS = 0.2
TOGETHER_SECONDS = 0.02
"""Transactions that come so soon after another are flushed with it."""
UNHURRIED_SECONDS = 1.0
FLUSH_BYTES = 64 * 1024 * 1024
IDLE_SECONDS = 1.0
CONTACT_SECONDS = 5.0
"""How often contact with a source is written down, for `status` of other processes."""
RETRY_SECONDS = 2.0
CLOCK_SECONDS = 30.0
"""How often a source is asked what its clock shows."""
HELD_SECONDS = 1.0
"""So long others wait for a source that is held back, where they can go on without it."""
LOOK_AHEAD_MICROSECONDS = 500_000
"""No flush begins so soon before a time at which a source without a clock is to be looked at."""
REFUSED_SECONDS = 10.0
"""Until a source that refused is asked again: somebody has to change something there first."""


@dataclass(frozen=True)
class Reached:
    """Up to where everything is admitted, and the proof of exactly that.

    One value: a position with the proof of another one is of a past that never was, and the next
    life would refuse the source for good.
    """

    position: StreamPosition
    proof: str


@dataclass(frozen=True)
class LeftOut:
    """Why a source is not asked `until` then; told a little longer, for it may fail again."""

    error: SteadyviewError
    until: float
    told_until: float


class News(threading.Condition):
    """Wakes whoever waits for admitted transactions, and says how soon they are wanted.

    How soon is written by one thread and read by the captures: who reads an old value flushes a
    little early or late, and nothing else depends on it.
    """

    def __init__(self) -> None:
        super().__init__()
        self._unhurried = False
        self.watched: Callable[[], bool] = lambda: False
        """Whether somebody besides the batches looks at new transactions: view managers."""

    @contextmanager
    def unhurried(self) -> Iterator[None]:
        """Nobody looks at new transactions before the end of the block."""
        self._unhurried = True
        try:
            yield
        finally:
            self._unhurried = False

    def due(self, first: float, flushed: float) -> float:
        """When to flush transactions of which the first came then, after the last flush."""
        unhurried = self._unhurried and not self.watched()
        apart = UNHURRIED_SECONDS if unhurried else FLUSH_SECONDS
        return max(first + TOGETHER_SECONDS, flushed + apart)


@dataclass
class Conditions:
    """What the captures of a process share: who waits for them, gates, and who watches the clock.

    `patient`: whoever waits for a source that is held back waits until it goes on.
    """

    gates: Gatekeeper
    watch: ClockWatch
    news: News = field(default_factory=News)
    patient: bool = True

    @staticmethod
    def free(catalog: Catalog) -> Conditions:
        """Without schedules, and so without gates."""
        clock = SystemClock()
        return Conditions(Gatekeeper(catalog, clock), ClockWatch(clock))


class Capture(threading.Thread):
    """The capture of one source. Survives a source that goes away; ends with `stop`.

    `_reached` and `error`, for which others wait, change under `news`. The other values are whole
    ones that one thread writes and others read as they find them; two that wait at once may miss
    being hurried, never being woken.
    """

    def __init__(
        self,
        source: Source,
        relations: Sequence[RelationSchema],
        catalog: Catalog,
        log: UpdateLog,
        conditions: Conditions,
        *,
        prepared: bool = True,
    ) -> None:
        super().__init__(name=f"capture-{source.name}", daemon=True)
        self.source = source
        self.error: SteadyviewError | None = None
        self.left_out: LeftOut | None = None
        self.lag = 0.0
        self.heard: int | None = None
        """When all that the source had delivered was admitted, in microseconds."""
        self.changes = 0
        self._relations = relations
        self._catalog = catalog
        self._log = log
        self._news = conditions.news
        self._prepared = prepared
        self._stopping = threading.Event()
        self._reached: Reached | None = None
        self._wanted: StreamPosition | None = None
        self._kept: Reached | None = None
        self._noted: tuple[float, str | None] = (0.0, None)
        self._committed = 0
        self._conditions = conditions
        self._gates = conditions.gates
        self._dated = 0
        self._divided: tuple[int, ...] = ()
        self._apart: Chunk | None = None
        self._held_since: float | None = None
        self._has_clock = False
        self._clock_due = 0.0

    def stop(self) -> None:
        """End after the flush under way; what was not flushed is captured again next time."""
        self._stopping.set()

    def wait_for(self, position: StreamPosition, timeout: float) -> None:
        """Until everything before `position` is admitted; raises the source's error if any."""
        deadline = time.monotonic() + timeout
        with self._news:
            self._wanted = position
            while not (self._reached is not None and position <= self._reached.position):
                if self.error is not None:
                    raise self.error
                if self.held and self._conditions.patient:
                    # a gate is closed within its limit, which may be longer
                    deadline = time.monotonic() + timeout
                elif self.held_back:
                    raise self._waits_at_gate()
                left = deadline - time.monotonic()
                if left <= 0 or self._stopping.is_set():
                    raise SourceUnavailable(
                        f'source "{self.source.name}" did not deliver its changes in time',
                        detail=f"waited {timeout:.0f} s for position {position}",
                        source=self.source.name,
                    )
                self._news.wait(min(left, 0.5))
            self._wanted = None

    @property
    def held(self) -> bool:
        """Whether something in hand waits for a gate."""
        return self._held_since is not None

    @property
    def held_back(self) -> bool:
        """Whether that takes so long that others go on without this source."""
        since = self._held_since
        waited = 0.0 if since is None else time.monotonic() - since
        return waited > HELD_SECONDS and not self._conditions.patient

    def _waits_at_gate(self) -> SourceUnavailable:
        gates = [g for g in self._gates.waiting() if self.source.name in g.sources]
        missing = ", ".join(f'"{name}"' for gate in gates[:1] for name in gate.missing())
        return SourceUnavailable(
            f'source "{self.source.name}" is held back at a gate',
            detail=f"until these were heard from: {missing}" if missing else None,
            source=self.source.name,
        )

    def run(self) -> None:
        """Capture until stopped.

        A source that does not answer, or refuses, is asked again; any other error is kept.
        """
        while not self._stopping.is_set():
            try:
                self._session()
            except TransientError as error:
                self._failed(error)
                self._stopping.wait(RETRY_SECONDS)
            except SourceRefused as error:
                self._failed(error)
                self._stopping.wait(REFUSED_SECONDS)
            except SteadyviewError as error:
                self._failed(error)
                return
            except Exception as error:  # noqa: BLE001 - a thread must not die silently
                self._failed(
                    SteadyviewError(
                        f'capture of source "{self.source.name}" failed', detail=repr(error)
                    )
                )
                return

    def _failed(self, error: SteadyviewError) -> None:
        error.source = self.source.name
        with self._news:
            self.error = error
            self._news.notify_all()
        self._note(heard=False)

    def trouble(self) -> SteadyviewError | None:
        """What is wrong with the source: its capture, or else its answers."""
        left = self.left_out
        if self.error is not None or left is None or time.monotonic() > left.told_until:
            return self.error
        return left.error

    def _note(self, *, heard: bool) -> None:
        """Write down how the source is: news at once, contact now and then."""
        trouble = self.trouble()
        text, now = None if trouble is None else str(trouble), time.monotonic()
        at, noted = self._noted
        if text != noted or (heard and now - at > CONTACT_SECONDS) or not at:
            self._noted = (now, text)
            # only for people: what cannot be written now is written next time, or by another
            with suppress(StorageUnavailable, LeaseLost):
                at_us = time.time_ns() // 1000
                definite = isinstance(trouble, DefiniteError)
                self._catalog.sources.contact(
                    self.source.name, at_us, heard=heard, error=text, definite=definite
                )

    def _session(self) -> None:
        """One connection's life."""
        if not self._prepared:
            self.source.prepare(self._relations)
            self._prepared = True
        self._ask_clock()
        state = self._catalog.sources.state(self.source.name)
        self._dated, self._apart, self._held_since = state.dated, None, None
        position = self.source.position(state.position) if state.position else self._beginning()
        number = self._log.recover(self.source.name, state.flush)
        writer = self._log.writer(self.source.name, self._relations, number, state.last_seq + 1)
        monitor = self.source.monitor(
            self._relations, position, state.last_seq + 1, state.proof
        )
        try:
            if monitor.proof != state.proof:
                # at once: a process that ends before anything comes must leave one, too
                self._catalog.sources.advance(self.source.name, str(position), monitor.proof)
            # all that came before the place where capture goes on is admitted already
            self._kept = Reached(position, monitor.proof)
            self._arrived(self._kept)
            self._follow(monitor, writer, position)
        finally:
            writer.abandon()
            monitor.close()

    def _beginning(self) -> StreamPosition:
        """Where capture begins, remembered before any view can rest on it.

        Otherwise a restart would ask the source again, and what was committed meanwhile be lost.
        """
        position = self.source.start()
        self._catalog.sources.advance(self.source.name, str(position))
        return position

    def _follow(self, monitor: Monitor, writer: FlushWriter, position: StreamPosition) -> None:
        idle = first = flushed = time.monotonic()
        proof = monitor.proof
        while not self._stopping.is_set():
            self._gates.tend()
            waiting = _in_hand(writer)
            chunk = self._polled(monitor, writer)
            now, polled = time.monotonic(), time.time_ns() // 1000
            self._note(heard=True)
            if now > self._clock_due:
                self._ask_clock()
            if chunk is not None and self._fits(chunk, writer):
                if not waiting:
                    first = now
                self._take(chunk, writer)
                position = chunk.position
                if self._gates.holds(self.source.name, self._dated):
                    crash_point("held-back")
            if self._apart is None:
                proof = monitor.proof
            if not _in_hand(writer):
                self._arrived(Reached(position, proof))
                self.heard = polled
            due = self._news.due(first, flushed)
            if self._flush_now(writer, due, now) and self._may_admit():
                self._flush(proof, monitor, writer)
                self.heard = polled if self._apart is None else self.heard
                idle = flushed = now
            elif now - idle > IDLE_SECONDS:
                self._keep_up(monitor)
                idle = now
            self._tell_heard(monitor, writer)

    def _ask_clock(self) -> None:
        """What the source's own clock shows, for whoever compares ours with it."""
        shown = self.source.time()
        self._has_clock = shown is not None
        self._conditions.watch.tell(self.source.name, shown)
        self._clock_due = time.monotonic() + CLOCK_SECONDS

    def _polled(self, monitor: Monitor, writer: FlushWriter) -> Chunk | None:
        """What comes next; nothing more is asked for while enough is held back."""
        waiting = _in_hand(writer)
        pause = TOGETHER_SECONDS if waiting else FLUSH_SECONDS
        if self._apart is not None or (self.held and writer.bytes > FLUSH_BYTES):
            if self.held:
                self._stopping.wait(pause)
            return self._apart
        self._divided = self._gates.times(self.source.name)
        monitor.divide(self._divided)
        return monitor.poll(pause)

    def _fits(self, chunk: Chunk, writer: FlushWriter) -> bool:
        """Whether a chunk may go with what is in hand; otherwise that is admitted before."""
        name, before, dated = self.source.name, self._dated, max(self._dated, chunk.dated)
        whole = _in_hand(writer) and not writer.open
        if whole and self._gates.parts(name, before, dated):
            self._apart = chunk
            return False
        # the monitor knows nothing of a gate that was opened while it was asked
        new = set(self._gates.times(name)).difference(self._divided)
        self._apart, self._dated = None, dated
        self._gates.took(name, dated, {*chunk.mixed, *(t for t in new if before <= t < dated)})
        return True

    def _may_admit(self) -> bool:
        """Whether no gate keeps back what is in hand."""
        may = self._gates.admits(self.source.name, self._dated)
        if may:
            self._held_since = None
        elif self._held_since is None:
            self._held_since = time.monotonic()
        return may

    def _tell_heard(self, monitor: Monitor, writer: FlushWriter) -> None:
        """Up to where all is admitted; what is in hand is on one side of each gate."""
        in_hand = _in_hand(writer) or self._apart is not None
        upto = self._dated - 1 if in_hand else monitor.heard
        self._gates.heard(self.source.name, upto)

    def _take(self, chunk: Chunk, writer: FlushWriter) -> None:
        writer.append(chunk)
        self.changes += sum(rows.num_rows for rows in chunk.rows.values())
        if chunk.transactions:
            self._committed = chunk.transactions[-1].committed

    def _flush_now(self, writer: FlushWriter, due: float, now: float) -> bool:
        if writer.open or not writer.transactions:
            return False
        if self._apart is not None:
            return True
        wanted = self._wanted is not None or writer.bytes > FLUSH_BYTES
        return wanted or (now >= due and not self._looks_soon())

    def _looks_soon(self) -> bool:
        """Whether the source is to be looked at so soon that a flush would make that late."""
        if self._has_clock:
            return False
        now = time.time_ns() // 1000
        times = self._gates.times(self.source.name)
        return any(0 <= t - now < LOOK_AHEAD_MICROSECONDS for t in times)

    def _flush(self, proof: str, monitor: Monitor, writer: FlushWriter) -> None:
        flush = replace(writer.flush(proof), dated=self._dated)
        assert flush.position is not None
        self._catalog.commits.admit(flush)
        self.lag = max(time.time() - self._committed / 1_000_000, 0.0)
        reached = Reached(self.source.position(flush.position), flush.proof)
        monitor.acknowledge(reached.position)
        crash_point("acknowledged")
        self._kept = reached
        self._arrived(reached)

    def _arrived(self, reached: Reached) -> None:
        with self._news:
            if (reached, None) != (self._reached, self.error):
                self._reached, self.error = reached, None
                self._news.notify_all()

    def _keep_up(self, monitor: Monitor) -> None:
        """An idle source: remember how far it is, so that it need not keep what we do not need."""
        reached = self._reached
        if reached is not None and reached != self._kept and not self._stopping.is_set():
            self._kept = reached
            self._catalog.sources.advance(self.source.name, str(reached.position), reached.proof)
            monitor.acknowledge(reached.position)


def _in_hand(writer: FlushWriter) -> bool:
    """Whether something was polled that is not admitted yet."""
    return bool(writer.transactions or writer.open)
