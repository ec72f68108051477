"""Capture: one thread per source turns its commits into durable, admitted log entries.

    poll -> append -> (soon, at 64 MB, or when somebody waits) flush -> admit -> acknowledge

Soon is at once where nothing came for a while, every 200 ms in a stream, and every second while a
batch is computed, which would not see it anyway; view managers would, and are not kept waiting.

Invariant: the source is told to forget a change only after the catalog holds its admission, and a
restart begins at the catalog's position. So every transaction is admitted exactly once, wherever
the process dies in between.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from steadyview.catalog import Catalog
from steadyview.changes import Chunk, RelationSchema, StreamPosition
from steadyview.crash_points import crash_point
from steadyview.errors import (
    DefiniteError,
    SourceRefused,
    SourceUnavailable,
    SteadyviewError,
    StorageUnavailable,
    TransientError,
)
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
        news: News,
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
        self._news = news
        self._prepared = prepared
        self._stopping = threading.Event()
        self._reached: Reached | None = None
        self._wanted: StreamPosition | None = None
        self._kept: Reached | None = None
        self._noted: tuple[float, str | None] = (0.0, None)
        self._committed = 0

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
                left = deadline - time.monotonic()
                if left <= 0 or self._stopping.is_set():
                    raise SourceUnavailable(
                        f'source "{self.source.name}" did not deliver its changes in time',
                        detail=f"waited {timeout:.0f} s for position {position}",
                        source=self.source.name,
                    )
                self._news.wait(min(left, 0.5))
            self._wanted = None

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
            # only for people: what cannot be written now is written next time
            with suppress(StorageUnavailable):
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
        state = self._catalog.sources.state(self.source.name)
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
        while not self._stopping.is_set():
            waiting = _in_hand(writer)
            chunk = monitor.poll(TOGETHER_SECONDS if waiting else FLUSH_SECONDS)
            now, polled = time.monotonic(), time.time_ns() // 1000
            self._note(heard=True)
            if chunk is not None:
                if not waiting:
                    first = now
                self._take(chunk, writer)
                position = chunk.position
            if not _in_hand(writer):
                self._arrived(Reached(position, monitor.proof))
                self.heard = polled
            due = self._news.due(first, flushed)
            if writer.transactions and not writer.open and self._flush_now(writer, due, now):
                self._flush(monitor, writer)
                self.heard = polled
                idle = flushed = now
            elif now - idle > IDLE_SECONDS:
                self._keep_up(monitor)
                idle = now

    def _take(self, chunk: Chunk, writer: FlushWriter) -> None:
        writer.append(chunk)
        self.changes += sum(rows.num_rows for rows in chunk.rows.values())
        if chunk.transactions:
            self._committed = chunk.transactions[-1].committed

    def _flush_now(self, writer: FlushWriter, due: float, now: float) -> bool:
        return now >= due or writer.bytes > FLUSH_BYTES or self._wanted is not None

    def _flush(self, monitor: Monitor, writer: FlushWriter) -> None:
        flush = writer.flush(monitor.proof)
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
