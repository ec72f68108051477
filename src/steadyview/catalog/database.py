"""The SQLite file: one connection per thread, whole transactions, errors in our words.

Write-ahead log, so that other processes read while one writes; `synchronous=FULL`, so that a
committed transaction survives a power cut.
"""

from __future__ import annotations

import hashlib
import os
import socket
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from steadyview.catalog.schema import FORMAT, STATEMENTS, UPGRADES
from steadyview.errors import StorageDamaged, StorageUnavailable
from steadyview.modes import open_file

_WAIT_SECONDS = 30.0
_MAY_PASS = frozenset(
    {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR}
    | {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_NOMEM}
)
_DAMAGE = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR})


class Database:
    """The catalog's file. Usable from several threads; close it once, from any of them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._own = threading.local()
        self._all: list[sqlite3.Connection] = []
        self._listing = threading.Lock()
        self._writing = threading.Lock()

    def create(self, now: int) -> None:
        """Make the tables if there are none; otherwise check that we can read them."""
        with suppress(OSError):  # which SQLite will meet as well, and tell
            if not self.path.exists():
                # closing it ends the locks of this process on it, another connection's too
                os.close(open_file(self.path))
        with self.write() as connection:
            if not connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchone():
                for statement in STATEMENTS:
                    connection.execute(statement)
                connection.execute(
                    "INSERT INTO warehouse (one, format, created, last_cn, last_time, oldest_cn,"
                    " floor) VALUES (1, ?, ?, 0, ?, 0, ?)",
                    (FORMAT, now, now, now),
                )
            else:
                found = connection.execute("SELECT format FROM warehouse").fetchone()
                for statement in UPGRADES.get(found[0], ()) if found else ():
                    connection.execute(statement)
            if connection.execute("SELECT identity FROM warehouse").fetchall() == [("",)]:
                connection.execute("UPDATE warehouse SET identity = ?", (self._identity(now),))
        self.check_format()

    def _identity(self, now: int) -> str:
        """Tells this warehouse from any other: when and where it was made."""
        made = f"{now} {socket.gethostname()} {self.path}"
        return hashlib.sha256(made.encode()).hexdigest()[:8]

    def check_format(self) -> None:
        """Raise StorageDamaged unless this is a catalog of our format."""
        found = self.read("SELECT format FROM warehouse")
        if found != [(FORMAT,)]:
            raise StorageDamaged(
                f'catalog "{self.path}" has another format',
                detail=f"expected {FORMAT}, found {found[0][0] if found else 'none'}",
                hint="use the version of steadyview that wrote it, or move the warehouse away",
            )

    def read(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """All rows of one query, of one committed state."""
        with self._told():
            return self._connection().execute(sql, values).fetchall()

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """One transaction: committed and durable at the end, undone if anything is raised."""
        with self._writing, self._told():
            connection = self._connection()
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                _undo(connection)
                raise

    def close(self) -> None:
        """Close the connections of all threads. Safe to call twice."""
        with self._listing:
            for connection in self._all:
                connection.close()
            self._all.clear()
        self._own = threading.local()

    def _connection(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = getattr(self._own, "connection", None)
        if connection is None:
            connection = self._own.connection = _connect(self.path)
            with self._listing:
                self._all.append(connection)
        return connection

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.IntegrityError:
            raise
        except sqlite3.Error as error:
            raise _in_our_words(self.path, error) from error


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(
        path, timeout=_WAIT_SECONDS, isolation_level=None, check_same_thread=False
    )
    try:
        for setting in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
            connection.execute(f"PRAGMA {setting}").fetchall()
    except BaseException:
        connection.close()
        raise
    return connection


def _undo(connection: sqlite3.Connection) -> None:
    """Roll back; SQLite has done so itself after a full disk."""
    if connection.in_transaction:
        connection.execute("ROLLBACK")


def _in_our_words(path: Path, error: sqlite3.Error) -> Exception:
    code = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
    if code == sqlite3.SQLITE_FULL:
        hint = "free some space; work goes on by itself then"
        return StorageUnavailable(f'disk full while writing "{path}"', detail=str(error), hint=hint)
    if code in _MAY_PASS:
        return StorageUnavailable(f'catalog "{path}" cannot be accessed', detail=str(error))
    if code in _DAMAGE:
        hint = "restore the warehouse folder from a backup, or move it away and build it anew"
        return StorageDamaged(f'catalog "{path}" is damaged', detail=str(error), hint=hint)
    return error
