"""One throw-away PostgreSQL for a whole test run, with a fresh database for whoever asks.

The server starts at the first use, and is stopped and deleted when the test process ends.
"""

from __future__ import annotations

import atexit
import functools
import itertools
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

import psycopg

from examples.embedded_postgres import EmbeddedPostgres

_numbers = itertools.count(1)


@functools.cache
def shared_postgres() -> EmbeddedPostgres:
    """The test run's server."""
    folder = Path(tempfile.mkdtemp(prefix="steadyview-pg-"))
    server = EmbeddedPostgres(folder / "data").start()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    atexit.register(server.delete)
    return server


@dataclass(frozen=True)
class Database:
    """One database of the shared server."""

    name: str
    url: str

    def connect(self) -> psycopg.Connection:
        """A new autocommit connection."""
        return psycopg.connect(self.url, autocommit=True)

    def drop(self) -> None:
        """Drop it with its slots, whoever is still connected."""
        server = shared_postgres()
        with server.connect() as connection:
            slots = "SELECT slot_name, active_pid FROM pg_replication_slots WHERE database = %s"
            for slot, pid in connection.execute(slots, [self.name]).fetchall():
                if pid:
                    connection.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
                connection.execute("SELECT pg_drop_replication_slot(%s)", [slot])
        server.drop_database(self.name)


def fresh_database() -> Database:
    """A new, empty database of the shared server."""
    name = f"test_{next(_numbers)}"
    return Database(name, shared_postgres().create_database(name))
