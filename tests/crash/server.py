"""A PostgreSQL of a test's own, which may be stopped, started and set up badly."""

from __future__ import annotations

from pathlib import Path

import psycopg
from psycopg import sql

from examples.embedded_postgres import EmbeddedPostgres


class Server:
    """A PostgreSQL of the test's own, which may be stopped; looks like `tests.servers.Database`."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self._server = EmbeddedPostgres(folder, settings).start()
        self.name = "shop"
        self.url = self._server.create_database(self.name)
        self.start, self.stop, self.delete = (
            self._server.start,
            self._server.stop,
            self._server.delete,
        )

    def connect(self) -> psycopg.Connection:
        return self._server.connect(self.name)

    def ask_for_password(self, role: str, password: str) -> None:
        """From now on this role, new, must prove itself."""
        rules = self._server.folder / "pg_hba.conf"
        rules.write_text(f"local all {role} scram-sha-256\n{rules.read_text()}")
        with self.connect() as connection:
            statement = sql.SQL("CREATE ROLE {} LOGIN SUPERUSER PASSWORD {}")
            connection.execute(statement.format(sql.Identifier(role), sql.Literal(password)))
            connection.execute("SELECT pg_reload_conf()")
