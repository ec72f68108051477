"""A PostgreSQL of a test's own, which is stopped, crashed, copied and restored."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from examples.embedded_postgres import EmbeddedPostgres


class OwnServer:
    """One server whose data folder can be swapped; a copy is made while it is stopped."""

    def __init__(self) -> None:
        # not pytest's own folder: the server's user must reach it
        self.data = Path(tempfile.mkdtemp(prefix="steadyview-pg-")) / "data"
        made = EmbeddedPostgres(self.data).start()
        self.url = made.url()
        self._binaries = Path(made._server.bin_path)
        made.stop()
        self.start()

    def connect(self) -> psycopg.Connection:
        return psycopg.connect(self.url, autocommit=True)

    def execute(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """One statement in a connection of its own."""
        with self.connect() as connection:
            cursor = connection.execute(statement, values or None)
            return cursor.fetchall() if cursor.description else []

    def start(self) -> None:
        socket = f"-h '' -k {self.socket}"
        self.run("pg_ctl", "-D", str(self.data), "-o", socket, "-l", f"{self.data}/log", "start")

    @property
    def socket(self) -> str:
        """The folder of the server's socket."""
        return str(conninfo_to_dict(self.url)["host"])

    def stop(self, mode: str = "immediate") -> None:
        """By default at once, without waiting for anybody, as a crash does."""
        self.run("pg_ctl", "-D", str(self.data), "-m", mode, "stop")

    def restart(self) -> None:
        self.stop()
        self.start()

    def copy(self, name: str) -> None:
        """Keep a copy of the data folder under this name."""
        self.stop()
        _copied(self.data, self.data.with_name(name))
        self.start()

    def restore(self, name: str) -> None:
        """Put the copy in the place of the data folder."""
        self.stop()
        shutil.rmtree(self.data)
        _copied(self.data.with_name(name), self.data)
        self.start()

    def back_up(self, name: str) -> None:
        """Make a standby of this name, as pg_basebackup does it from the running server."""
        folder = self.data.with_name(name)
        folder.mkdir(mode=0o700)
        shutil.chown(folder, self.data.owner())
        where = ["-h", self.socket, "-U", "postgres", "-D", str(folder)]
        self.run("pg_basebackup", *where, "-R", "-c", "fast")
        (folder / ".s.PGSQL.5432.lock").unlink()

    def fail_over(self, name: str) -> Path:
        """Give the standby all that was logged, and promote it; where the old primary's data is."""
        self.stop()
        for segment in (self.data / "pg_wal").glob("0*"):
            subprocess.run(["cp", "-a", segment, self.data.with_name(name) / "pg_wal"], check=True)
        primary = self.data.rename(self.data.with_name("primary"))
        self.data.with_name(name).rename(self.data)
        self.start()
        self.execute("SELECT pg_promote()")
        return primary

    def run(self, program: str, *arguments: str) -> None:
        """A program of PostgreSQL, as the server's user."""
        user = self.data.owner() if os.geteuid() == 0 else None
        words = [str(self._binaries / program), *arguments]
        with tempfile.TemporaryFile() as said:
            done = subprocess.run(words, user=user, stdout=said, stderr=said, check=False)
            said.seek(0)
            assert done.returncode == 0, said.read().decode()

    def delete(self) -> None:
        if (self.data / "postmaster.pid").exists():
            self.stop()
        shutil.rmtree(self.data.parent, ignore_errors=True)


def _copied(source: Path, target: Path) -> None:
    """With owners and rights, which the server insists on."""
    subprocess.run(["cp", "-a", str(source), str(target)], check=True)


@contextmanager
def own_server() -> Iterator[OwnServer]:
    """A running server, deleted at the end."""
    server = OwnServer()
    try:
        yield server
    finally:
        server.delete()
