"""Connections to one PostgreSQL database: pinned sessions, a small pool, errors without secrets.

Claim: every session renders values the same way (`SESSION`), sees every row or fails
(`row_security`), and is never cut off by a time limit meant for people's sessions. A network that
falls silent ends a session within about a minute (`_LIVELINESS`) instead of holding it for ever.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import quote, quote_plus

import psycopg
from psycopg import conninfo, pq

from steadyview.errors import ConfigError, SourceRefused, SourceUnavailable, SteadyviewError

LOCK_TIMEOUT = "10s"
SESSION = (
    "SET client_encoding = 'UTF8'; SET TimeZone = 'UTC'; SET DateStyle = 'ISO, YMD'; "
    "SET IntervalStyle = 'postgres'; SET bytea_output = 'hex'; SET extra_float_digits = 3; "
    "SET search_path = pg_catalog; SET row_security = off; SET statement_timeout = 0; "
    f"SET lock_timeout = '{LOCK_TIMEOUT}'; SET idle_in_transaction_session_timeout = 0; "
    "SET synchronous_commit = local"
)
_LIVELINESS = {
    "connect_timeout": "10",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "60000",
}
"""Unless the url, or for the first libpq's environment, says otherwise; no matter on a socket."""
_REPLICATION = "; SET wal_sender_timeout = '5min'"
_TIMEOUT_FROM_17 = "; SET transaction_timeout = 0"
_VERSION_17 = 170000
_NOT_LET_IN = ("28", "3D")
"""Classes of SQLSTATE: no authorization, no such database."""
# libpq tells why a connection was not made in words only: such an error has no SQLSTATE.
_NOT_LET_IN_TOLD = re.compile(
    r"FATAL: +(password authentication failed|no pg_hba\.conf entry|permission denied"
    r"|(role|database) .* does not exist)|no password supplied"
)
_SECRETS = ("password", "sslpassword")
_LONG = 8
_UNAVAILABLE_CLASSES = ("08", "53", "57", "58", "40", "55")


@dataclass(frozen=True)
class Address:
    """Where a database is. Its text never shows, its `scrub` takes it out of other texts."""

    source: str
    url: str = field(repr=False)
    patience: int | None = None
    """Seconds after which an attempt to connect is given up, whatever the url says."""

    def __post_init__(self) -> None:
        """Refuse a url that libpq cannot read, without quoting it."""
        try:
            conninfo.conninfo_to_dict(self.url)
        except psycopg.Error:
            raise ConfigError(
                f'url of source "{self.source}" is not a PostgreSQL connection string',
                hint="write postgresql://user@host:5432/database",
            ) from None

    def scrub(self, text: str) -> str:
        """`text` without the url and the passwords, in any of their spellings.

        A short one is taken out where it stands alone: inside other words it is only letters.
        """
        given = conninfo.conninfo_to_dict(self.url)
        found = [self.url]
        for password in (str(given.get(key) or "") for key in _SECRETS):
            found += [password, quote(password, safe=""), quote_plus(password)]
        for secret in sorted(filter(None, found), key=len, reverse=True):
            alone = r"(?<!\w){}(?!\w)" if len(secret) < _LONG else "{}"
            text = re.sub(alone.format(re.escape(secret)), "***", text)
        return text.strip()

    def conninfo(self, **options: str) -> str:
        """What libpq is told: the url, our options, and limits for a silent network."""
        given = conninfo.conninfo_to_dict(self.url)
        limits = {k: v for k, v in _LIVELINESS.items() if k not in given}
        if "PGCONNECT_TIMEOUT" in os.environ:
            limits.pop("connect_timeout", None)
        if self.patience is not None:
            limits["connect_timeout"] = str(self.patience)
        return conninfo.make_conninfo(self.url, **limits, **options)

    @contextlib.contextmanager
    def errors(self) -> Iterator[None]:
        """Turn the driver's errors into ours: unavailable if trying again helps, else refused."""
        try:
            yield
        except psycopg.Error as error:
            raise self._translated(error) from None

    def _translated(self, error: psycopg.Error) -> SteadyviewError:
        text = self.scrub(str(error))
        state = error.sqlstate
        if _not_let_in(error):
            return SourceRefused(
                f'source "{self.source}" does not let us in',
                detail=text,
                hint=f"correct the url of [sources.{self.source}], or the rights at the server",
                source=self.source,
            )
        if (
            isinstance(error, psycopg.OperationalError)
            or (state or "08")[:2] in _UNAVAILABLE_CLASSES
        ):
            kind: type[SteadyviewError] = SourceUnavailable
            fact = f'source "{self.source}" does not answer'
        else:
            kind, fact = SourceRefused, f'source "{self.source}" refused a statement'
        hint = f"see that the server runs, and that the url of [sources.{self.source}] is right"
        away = kind is SourceUnavailable
        return kind(fact, detail=text, hint=hint if away else None, source=self.source)

    def connect(self, *, replication: bool = False) -> psycopg.Connection:
        """A new autocommit session with the pinned settings."""
        options = {"replication": "database"} if replication else {}
        options["application_name"] = "steadyview"
        with self.errors():
            connection = psycopg.connect(
                self.conninfo(**options), autocommit=True, prepare_threshold=None
            )
            pinned = SESSION + (_REPLICATION if replication else "")
            if connection.info.server_version >= _VERSION_17:
                pinned += _TIMEOUT_FROM_17
            # The replication protocol knows simple queries only, hence not `connection.execute`.
            result = connection.pgconn.exec_(pinned.encode())
            if result.status != pq.ExecStatus.COMMAND_OK:
                raise psycopg.errors.lookup("58000")(result.error_message.decode(errors="replace"))
        return connection


class Pool:
    """Idle sessions of one database, for reuse from any thread."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self._idle: list[psycopg.Connection] = []
        self._lock = threading.Lock()

    def take(self) -> psycopg.Connection:
        """A session outside any transaction: a live idle one, or a new one."""
        while True:
            with self._lock:
                connection = self._idle.pop() if self._idle else None
            if connection is None:
                return self.address.connect()
            if _alive(connection):
                return connection
            connection.close()

    def give_back(self, connection: psycopg.Connection) -> None:
        """End the session's transaction and keep it; a session that is not clean is closed."""
        try:
            if connection.info.transaction_status != pq.TransactionStatus.IDLE:
                connection.execute("ROLLBACK")
        except psycopg.Error:
            connection.close()
        if connection.closed or connection.info.transaction_status != pq.TransactionStatus.IDLE:
            connection.close()
            return
        with self._lock:
            self._idle.append(connection)

    @contextlib.contextmanager
    def session(self) -> Iterator[psycopg.Connection]:
        """A session for the length of a block, driver errors translated."""
        connection = self.take()
        try:
            with self.address.errors():
                yield connection
        finally:
            self.give_back(connection)

    def close(self) -> None:
        """Close the idle sessions."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()


def _not_let_in(error: psycopg.Error) -> bool:
    if error.sqlstate is not None:
        return error.sqlstate.startswith(_NOT_LET_IN)
    return bool(_NOT_LET_IN_TOLD.search(str(error)))


def _alive(connection: psycopg.Connection) -> bool:
    """Whether an idle session still stands: a server that ended it has written to its socket."""
    if connection.closed:
        return False
    readable, _, _ = select.select([connection.fileno()], [], [], 0)
    return not readable
