"""Connections to one SQLite file, its identifiers and its errors."""

from __future__ import annotations

import contextlib
import functools
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from steadyview.errors import SourceRefused, SourceUnavailable, SteadyviewError

PATIENCE = 10.0
_TRANSIENT = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL)


def quoted(name: str) -> str:
    """An identifier as SQLite reads it.

    >>> quoted('two words')
    '"two words"'
    """
    return '"' + name.replace('"', '""') + '"'


@dataclass(frozen=True)
class DatabaseFile:
    """The file of one source. `patience`: for so many seconds a lock of others is waited for."""

    source: str
    path: Path
    patience: float = PATIENCE

    def connect(self) -> sqlite3.Connection:
        """A connection in autocommit mode; it never creates the file.

        Bytes that are not UTF-8 come as lone surrogates, which no Arrow text accepts: such a value
        is found and named, instead of failing the whole read.
        """
        if not self.path.is_file():
            hint = f"put the file there, or correct path of [sources.{self.source}]"
            raise SourceRefused(self._missing(), hint=hint, source=self.source)
        with self.errors():
            connection = sqlite3.connect(
                f"{self.path.as_uri()}?mode=rw",
                uri=True,
                timeout=self.patience,
                isolation_level=None,
                check_same_thread=False,
            )
            connection.text_factory = functools.partial(
                str, encoding="utf-8", errors="surrogateescape"
            )
            connection.execute("PRAGMA synchronous = NORMAL")
        return connection

    def identity(self) -> tuple[int, int]:
        """Tells the file from another one at its place.

        SourceUnavailable if there is none: a source that is set up had one, and may have it again.
        """
        try:
            found = self.path.stat()
        except OSError:
            raise SourceUnavailable(self._missing(), source=self.source) from None
        return found.st_dev, found.st_ino

    @contextlib.contextmanager
    def session(self) -> Iterator[sqlite3.Connection]:
        """A connection for the length of a block."""
        connection = self.connect()
        try:
            with self.errors():
                yield connection
        finally:
            connection.close()

    @contextlib.contextmanager
    def errors(self) -> Iterator[None]:
        """Turn SQLite's errors into ours: unavailable if a later call may succeed, else refused."""
        try:
            yield
        except sqlite3.Error as error:
            raise self._translated(error) from None

    def _translated(self, error: sqlite3.Error) -> SteadyviewError:
        code = getattr(error, "sqlite_errorcode", None)
        kind: type[SteadyviewError] = SourceRefused
        if code is not None and code & 0xFF == sqlite3.SQLITE_NOTADB:
            return SourceRefused(
                f'file of source "{self.source}" is not a SQLite database: "{self.path}"',
                detail=str(error),
                hint=f"correct path of [sources.{self.source}]",
                source=self.source,
            )
        fact = f'source "{self.source}" refused a statement'
        if code is not None and code & 0xFF in _TRANSIENT:
            kind, fact = SourceUnavailable, f'source "{self.source}" does not answer'
        return kind(fact, detail=str(error), source=self.source)

    def _missing(self) -> str:
        return f'file of source "{self.source}" does not exist: "{self.path}"'


@contextlib.contextmanager
def reading(connection: sqlite3.Connection) -> Iterator[None]:
    """One read transaction: everything in the block is of one state."""
    connection.execute("BEGIN")
    try:
        yield
    finally:
        connection.execute("ROLLBACK")


@contextlib.contextmanager
def writing(connection: sqlite3.Connection) -> Iterator[None]:
    """One write transaction, rolled back on any failure."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")
