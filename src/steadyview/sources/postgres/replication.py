"""The replication protocol on psycopg's libpq layer: messages in, standby status out.

Assumes: one reader per stream. Promises: `receive` never blocks, `wait` blocks in `select` only, so
that other threads run meanwhile.
"""

from __future__ import annotations

import select
import struct
import time

import psycopg
from psycopg import pq, sql

from steadyview.errors import SourceUnavailable
from steadyview.sources.postgres.connection import Address
from steadyview.sources.postgres.position import Lsn

_EPOCH_2000 = 946_684_800_000_000
_SILENCE_SECONDS = 120


class ReplicationStream:
    """START_REPLICATION on a slot, from a position on."""

    def __init__(self, address: Address, slot: str, publication: str, start: Lsn) -> None:
        self._address = address
        self._connection = address.connect(replication=True)
        self._libpq = self._connection.pgconn
        try:
            self._start(slot, publication, start)
        except BaseException:
            self._connection.close()
            raise

    def _start(self, slot: str, publication: str, start: Lsn) -> None:
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
                result = self._libpq.get_result()
                raise self._lost(result.error_message.decode(errors="replace") if result else "")
        except psycopg.Error as error:
            raise self._lost(str(error)) from None
        return data if size else None

    def wait(self, seconds: float) -> None:
        """Until something arrives, or the time is over."""
        select.select([self._libpq.socket], [], [], max(0.0, seconds))

    def confirm(self, received: Lsn, durable: Lsn, *, answer: bool = False) -> None:
        """Tell the server how far we are: the slot keeps everything behind `durable`.

        `answer`: the server is to send a sign of life.
        """
        stamp = time.time_ns() // 1000 - _EPOCH_2000
        status = struct.pack(
            "!cQQQqB",
            b"r",
            max(received.value, durable.value),
            durable.value,
            durable.value,
            stamp,
            answer,
        )
        try:
            self._libpq.put_copy_data(status)
            while self._libpq.flush():
                select.select([self._libpq.socket], [self._libpq.socket], [])
                self._libpq.consume_input()
        except psycopg.Error as error:
            raise self._lost(str(error)) from None

    def require_life(self, silence: float) -> None:
        """Take a stream for lost that has been silent for so long in spite of our questions."""
        if silence > _SILENCE_SECONDS:
            raise self._lost(f"nothing was heard from the server for {int(silence)} seconds")

    def close(self) -> None:
        """End the stream; safe to call twice."""
        self._connection.close()

    def _lost(self, text: str) -> SourceUnavailable:
        return SourceUnavailable(
            f'change stream of source "{self._address.source}" was interrupted',
            detail=self._address.scrub(text) or None,
        )
