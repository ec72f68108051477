"""The change stream of a PostgreSQL source.

Chunks are cut when the stream pauses between transactions, when 16 MB of messages are held, or when
the intake has been busy for a fifth of a second. A position that moved without any watched change
is told at most once a second, except when a snapshot's marker moved it: then at once.

While idle the server is asked for a sign of life every ten seconds, so that a connection that died
unnoticed is told from a source where nothing happens.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Mapping

from steadyview.changes import Chunk, RelationSchema, StreamPosition
from steadyview.sources.postgres.intake import Intake
from steadyview.sources.postgres.position import Lsn
from steadyview.sources.postgres.replication import ReplicationStream

CHUNK_BYTES = 16 << 20
_BUSY_SECONDS = 0.2
_IDLE_REPORT_SECONDS = 1.0
_STATUS_SECONDS = 10.0
_LOOK_AT_CLOCK = 256
_DATA, _KEEPALIVE = ord("w"), ord("k")

Broken = Callable[[], Mapping[RelationSchema, str]]
"""Relations found to have left the stream, with the reason."""


class PostgresMonitor:
    """See `contract.Monitor`."""

    def __init__(self, stream: ReplicationStream, intake: Intake, broken: Broken) -> None:
        self._stream = stream
        self._intake = intake
        self._broken = broken
        self._durable = intake.position
        self._told = intake.position
        self._told_at = time.monotonic()
        self._status_at = self._heard_at = time.monotonic()

    @property
    def proof(self) -> str:
        """Nothing to be proved yet."""
        return ""

    def poll(self, timeout: float) -> Chunk | None:
        """The next chunk as soon as there is one; None after `timeout` seconds without progress."""
        deadline = time.monotonic() + timeout
        while True:
            self._look_for_broken()
            self._drain()
            now = time.monotonic()
            self._stream.require_life(now - self._heard_at)
            if self._ready(now >= deadline):
                return self._tell(now)
            if now >= deadline:
                return None
            self._send_status(now)
            self._stream.wait(min(deadline - now, _IDLE_REPORT_SECONDS))

    def acknowledge(self, position: StreamPosition) -> None:
        """Everything before `position` is durable here: the slot may move there."""
        if not isinstance(position, Lsn):
            raise TypeError(f"not a PostgreSQL position: {position}")
        if self._durable <= position:
            self._durable = position
        self._stream.confirm(self._intake.position, self._durable)

    def close(self) -> None:
        """Stop reading."""
        self._stream.close()

    def _look_for_broken(self) -> None:
        if not self._intake.open:
            for relation, reason in self._broken().items():
                self._intake.lose_relation(relation, reason)

    def _drain(self) -> None:
        """Take what has arrived, within the bounds of one chunk."""
        stream, intake = self._stream, self._intake
        until = time.monotonic() + _BUSY_SECONDS
        taken = 0
        while intake.bytes < CHUNK_BYTES:
            data = stream.receive()
            if data is None:
                break
            if data[0] == _DATA:
                intake.take(data)
            elif data[0] == _KEEPALIVE:
                self._keepalive(data)
            taken += 1
            if taken % _LOOK_AT_CLOCK == 0 and intake.ended and time.monotonic() > until:
                break
        if taken:
            self._heard_at = time.monotonic()

    def _keepalive(self, data: memoryview) -> None:
        end, _, reply = struct.unpack_from("!QqB", data, 1)
        self._intake.keepalive(Lsn(end))
        if reply:
            self._stream.confirm(self._intake.position, self._durable)

    def _ready(self, late: bool) -> bool:
        intake = self._intake
        if intake.bytes >= CHUNK_BYTES:
            return True
        if intake.open and not late:
            return False
        if intake.ended or (intake.prompt and not intake.open):
            return True
        moved = self._told != intake.position
        return moved and time.monotonic() - self._told_at >= _IDLE_REPORT_SECONDS

    def _tell(self, now: float) -> Chunk:
        chunk = self._intake.chunk()
        self._told, self._told_at = self._intake.position, now
        return chunk

    def _send_status(self, now: float) -> None:
        if now - self._status_at >= _STATUS_SECONDS:
            self._status_at = now
            self._stream.confirm(self._intake.position, self._durable, answer=True)
