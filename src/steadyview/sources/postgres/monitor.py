"""The change stream of a PostgreSQL source.

Chunks are cut when the stream pauses between transactions, when 16 MB of messages are held, or when
the intake has been busy for a fifth of a second. A position that moved without any watched change
is told at most once a second, except when a snapshot's marker moved it: then at once.

While idle the server is asked for a sign of life every ten seconds, so that a connection that died
unnoticed is told from a source where nothing happens; and its catalog is looked at as often, and
when a relation's layout comes again (`evidence.py`).

Invariant: the slot is confirmed up to the last marker of which the position is durable, so that the
next monitor can prove what came after it (`proof.py`). A marker is sent when transactions were
captured or a megabyte of log was passed since the last one, at most every ten seconds: other
markers are no reason, so they never keep the log growing.

A marker that is sent when the server's clock shows more than a time says, once it comes, that all
that was committed by then has come. A commit draws its time some microseconds before its place in
the log; so the marker waits 10 ms longer.
"""

from __future__ import annotations

import struct
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace

from steadyview.changes import Chunk, StreamPosition
from steadyview.sources.postgres.evidence import Witness
from steadyview.sources.postgres.intake import Intake
from steadyview.sources.postgres.position import Lsn
from steadyview.sources.postgres.proof import Proof
from steadyview.sources.postgres.replication import ReplicationStream

CHUNK_BYTES = 16 << 20
LOOK_SECONDS = 10.0
MARK_SECONDS = 10.0
UNMARKED_BYTES = 1 << 20
BEYOND_MICROSECONDS = 10_000
_BUSY_SECONDS = 0.2
_IDLE_REPORT_SECONDS = 1.0
_STATUS_SECONDS = 10.0
_LOOK_AT_CLOCK = 256
_DATA, _KEEPALIVE = ord("w"), ord("k")


class PostgresMonitor:
    """See `contract.Monitor`. `proof` is of what was captured before, `mark` sends a marker."""

    def __init__(
        self,
        stream: ReplicationStream,
        intake: Intake,
        proof: Proof,
        witness: Witness,
        mark: Callable[[], tuple[int, Lsn]],
    ) -> None:
        self._stream = stream
        self._intake = intake
        self._proof = proof
        self._witness = witness
        self._mark = mark
        self._told = intake.position
        self._marks: deque[tuple[Lsn, Lsn]] = deque()
        now = time.monotonic()
        self._told_at = self._status_at = self._heard_at = now
        self._look_at = self._mark_at = now
        self._times: Sequence[int] = ()
        self._heard = 0
        self._clock_ahead: int | None = None
        self._under_way: tuple[int, Lsn] | None = None
        # When the replay has nothing to end it, an answer does.
        stream.report(intake.position, answer=True)

    @property
    def proof(self) -> str:
        """Of the last chunk; of what was captured before, until that is found again."""
        return str(self._proof)

    @property
    def heard(self) -> int:
        """As far as a marker has told."""
        return self._heard

    def divide(self, times: Sequence[int]) -> None:
        """Chunks are cut at these times, and a marker follows each."""
        self._times = times
        self._intake.divide(times)

    def poll(self, timeout: float) -> Chunk | None:
        """The next chunk as soon as there is one; None after `timeout` seconds without progress."""
        deadline = time.monotonic() + timeout
        while True:
            self._drain()
            now = time.monotonic()
            self._stream.require_life(now - self._heard_at)
            if not self._intake.replaying:
                self._proved(now)
                self._mark_beyond()
            if self._ready(now >= deadline):
                return self._tell(now)
            if now >= deadline:
                return None
            self._send_status(now)
            self._stream.wait(min(deadline - now, _IDLE_REPORT_SECONDS, self._until_beyond()))

    def acknowledge(self, position: StreamPosition) -> None:
        """Everything before `position` is durable here: the slot may move to its last marker."""
        if not isinstance(position, Lsn):
            raise TypeError(f"not a PostgreSQL position: {position}")
        since: Lsn | None = None
        while self._marks and self._marks[0][0] <= position:
            _, since = self._marks.popleft()
        if since is not None:
            self._stream.confirm(self._intake.position, since)

    def close(self) -> None:
        """Stop reading."""
        self._stream.close()

    def _proved(self, now: float) -> None:
        """What is done once the past is known to be the same: look at the catalog, send markers."""
        if self._proof.server != self._stream.server:
            self._proof = replace(self._proof, server=self._stream.server)
        intake = self._intake
        if not intake.open and now >= self._look_at - LOOK_SECONDS * intake.altered:
            self._look_at, intake.altered = now + LOOK_SECONDS, False
            if losses := self._witness.losses():
                intake.lose(losses, time.time_ns() // 1000)
            intake.identify(self._witness.relations)
        far = intake.position.value - intake.history.since.value > UNMARKED_BYTES
        if now >= self._mark_at and (intake.unmarked or far or not intake.history.marker):
            self._mark_at = now + MARK_SECONDS
            self._mark()

    def _mark_beyond(self) -> None:
        """Send a marker when the server's clock has passed a time; once, to know that clock."""
        if self._under_way is not None or self._until_beyond() > 0:
            return
        self._under_way = self._mark()
        self._clock_ahead = self._under_way[0] - time.time_ns() // 1000

    def _until_beyond(self) -> float:
        """Seconds until the next marker is due, by the server's clock."""
        left = [t for t in self._times if t > self._heard]
        if not left or self._under_way is not None or self._intake.replaying:
            return _IDLE_REPORT_SECONDS
        if self._clock_ahead is None:
            return 0.0
        shown = time.time_ns() // 1000 + self._clock_ahead
        return max(min(left) + BEYOND_MICROSECONDS - shown, 0) / 1_000_000

    def _drain(self) -> None:
        """Take what has arrived, within the bounds of one chunk."""
        stream, intake = self._stream, self._intake
        until = time.monotonic() + _BUSY_SECONDS
        taken = 0
        while intake.bytes < CHUNK_BYTES and not intake.cut:
            data = stream.receive()
            if data is None:
                break
            if data[0] == _DATA:
                intake.take(data)
            elif data[0] == _KEEPALIVE:
                self._keepalive(data)
            taken += 1
            pausing = intake.ended or intake.replaying
            if taken % _LOOK_AT_CLOCK == 0 and pausing and time.monotonic() > until:
                break
        if taken:
            self._heard_at = time.monotonic()

    def _keepalive(self, data: memoryview) -> None:
        end, _, reply = struct.unpack_from("!QqB", data, 1)
        self._intake.keepalive(Lsn(end))
        if reply:
            self._stream.report(self._intake.position)

    def _ready(self, late: bool) -> bool:
        intake = self._intake
        if intake.bytes >= CHUNK_BYTES or intake.cut:
            return True
        if intake.open and not late:
            return False
        if intake.ended or (intake.prompt and not intake.open):
            return True
        moved = self._told != intake.position
        return moved and time.monotonic() - self._told_at >= _IDLE_REPORT_SECONDS

    def _tell(self, now: float) -> Chunk:
        intake = self._intake
        chunk = intake.chunk()
        self._told, self._told_at = intake.position, now
        if self._under_way is not None and self._under_way[1] <= intake.position:
            self._heard = max(self._heard, self._under_way[0] - BEYOND_MICROSECONDS)
            self._under_way = None
        if self._proof.history.since != intake.history.since:
            self._marks.append((intake.position, intake.history.since))
        self._proof = replace(self._proof, history=intake.history)
        return chunk

    def _send_status(self, now: float) -> None:
        if now - self._status_at >= _STATUS_SECONDS:
            self._status_at = now
            self._stream.report(self._intake.position, answer=True)
