"""The replication protocol on psycopg's libpq layer: messages in, standby status out.

Assumes: one reader per stream. Promises: `receive` never blocks, `wait` blocks in `select` only, so
that other threads run meanwhile.

What is durable is told once, when it changes. In between the server is told only what was received:
by that, not by the slot, it judges whether it may shut down, and it never waits for us as for a
synchronous standby.
"""

from __future__ import annotations

import select
import struct
import time

import psycopg
from psycopg import pq, sql

from steadyview.errors import ChangesLost, SourceUnavailable, SteadyviewError
from steadyview.sources.postgres.connection import Address
from steadyview.sources.postgres.position import Lsn
from steadyview.sources.postgres.proof import Server

_EPOCH_2000 = 946_684_800_000_000
_SILENCE_SECONDS = 120
_NOWHERE = Lsn(0)
_LIFE = (
    b"SELECT oid::text, pg_postmaster_start_time()::text FROM pg_database"
    b" WHERE datname = current_database()"
)
_UNDEFINED = "42704"
"""SQLSTATE undefined_object: while it decodes, the server looks up nothing but publications."""


class ReplicationStream:
    """A replication connection to `server`; `start` begins the stream on a slot."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._connection = address.connect(replication=True)
        self._libpq = self._connection.pgconn
        try:
            system, database, started = self._asked(b"IDENTIFY_SYSTEM")[0], *self._asked(_LIFE)
            self.server = Server(system, database, started)
        except BaseException:
            self._connection.close()
            raise

    def start(self, slot: str, publication: str, start: Lsn) -> None:
        """START_REPLICATION, from a position on."""
        statement = sql.SQL(
            "START_REPLICATION SLOT {} LOGICAL {}"
            " (proto_version '1', publication_names {}, messages 'true')"
        ).format(
            sql.Identifier(slot),
            sql.SQL(str(start)),
            sql.Literal(sql.Identifier(publication).as_string(self._connection)),
        )
        result = self._libpq.exec_(statement.as_bytes(self._connection))
        if result.status != pq.ExecStatus.COPY_BOTH:
            raise self._lost(result.error_message.decode(errors="replace"))
        self._libpq.nonblocking = 1

    def receive(self) -> memoryview | None:
        """The next message if it has arrived already."""
        try:
            size, data = self._libpq.get_copy_data(1)
            if size == 0:
                self._libpq.consume_input()
                size, data = self._libpq.get_copy_data(1)
            if size < 0:
                raise self._ended(self._libpq.get_result())
        except psycopg.Error as error:
            raise self._lost(str(error)) from None
        return data if size else None

    def wait(self, seconds: float) -> None:
        """Until something arrives, or the time is over."""
        select.select([self._libpq.socket], [], [], max(0.0, seconds))

    def confirm(self, received: Lsn, durable: Lsn) -> None:
        """The slot need not keep what lies before `durable`."""
        self._send(received, durable, answer=False)
        self.report(received)

    def report(self, received: Lsn, *, answer: bool = False) -> None:
        """Tell the server how far we are; `answer`: it is to send a sign of life."""
        self._send(received, _NOWHERE, answer=answer)

    def require_life(self, silence: float) -> None:
        """Take a stream for lost that has been silent for so long in spite of our questions."""
        if silence > _SILENCE_SECONDS:
            raise self._lost(f"nothing was heard from the server for {int(silence)} seconds")

    def close(self) -> None:
        """End the stream; safe to call twice."""
        self._connection.close()

    def _asked(self, statement: bytes) -> list[str]:
        """The first row of a simple query: the replication protocol knows no other."""
        result = self._libpq.exec_(statement)
        if result.status != pq.ExecStatus.TUPLES_OK:
            raise self._lost(result.error_message.decode(errors="replace"))
        return [(result.get_value(0, i) or b"").decode() for i in range(result.nfields)]

    def _send(self, received: Lsn, durable: Lsn, *, answer: bool) -> None:
        stamp = time.time_ns() // 1000 - _EPOCH_2000
        places = (max(received.value, durable.value), durable.value, durable.value)
        try:
            self._libpq.put_copy_data(struct.pack("!cQQQqB", b"r", *places, stamp, answer))
            while self._libpq.flush():
                select.select([self._libpq.socket], [self._libpq.socket], [])
                self._libpq.consume_input()
        except psycopg.Error as error:
            raise self._lost(str(error)) from None

    def _ended(self, result: pq.abc.PGresult | None) -> SteadyviewError:
        """What the server ended the stream with; it may have said nothing."""
        if result is None:
            return self._lost("")
        text = result.error_message.decode(errors="replace")
        state = result.error_field(pq.DiagnosticField.SQLSTATE) or b""
        if state.decode() != _UNDEFINED:
            return self._lost(text)
        source = self._address.source
        return ChangesLost(
            f'source "{source}" was without its publication for a while',
            detail=self._address.scrub(text) or None,
            hint=f"run: steadyview source resnapshot {source}",
        )

    def _lost(self, text: str) -> SteadyviewError:
        return SourceUnavailable(
            f'change stream of source "{self._address.source}" was interrupted',
            detail=self._address.scrub(text) or None,
        )
