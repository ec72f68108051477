"""Real databases for whole-product tests: SQLite and PostgreSQL, spoken to alike."""

from __future__ import annotations

import json
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from tests.servers import Database, fresh_database


class Writer(ABC):
    """A user's connection in autocommit mode. Statements mark parameters with `?`."""

    @abstractmethod
    def execute(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Run a statement; its rows if it has any."""

    @abstractmethod
    def close(self) -> None: ...

    @contextmanager
    def transaction(self) -> Iterator[Writer]:
        """Commit at the end of the block, roll back if it raises."""
        self.execute(self.begin)
        try:
            yield self
        except BaseException:
            self.execute("ROLLBACK")
            raise
        self.execute("COMMIT")

    begin = "BEGIN"
    row_address: str
    """The hidden column that tells apart rows with equal values."""


class SqliteWriter(Writer):
    begin = "BEGIN IMMEDIATE"
    row_address = "rowid"

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(
            path, timeout=60, isolation_level=None, check_same_thread=False
        )

    def execute(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        return self._connection.execute(statement, values).fetchall()

    def close(self) -> None:
        self._connection.close()


class PostgresWriter(Writer):
    row_address = "ctid"

    def __init__(self, connection: psycopg.Connection) -> None:
        self.connection = connection

    def execute(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        text = statement.replace("?", "%s") if values else statement
        cursor = self.connection.execute(text, values or None)
        return cursor.fetchall() if cursor.description else []

    def close(self) -> None:
        self.connection.close()


class LiveDatabase(ABC):
    """One source of a project under test."""

    integer: str
    text: str

    def __init__(self) -> None:
        self.tables: list[str] = []
        self._writers: list[Writer] = []

    @property
    @abstractmethod
    def settings(self) -> Mapping[str, Any]:
        """Its section in `steadyview.toml`, without tables."""

    @abstractmethod
    def _connect(self) -> Writer: ...

    def writer(self) -> Writer:
        """A new connection, closed with the database."""
        self._writers.append(self._connect())
        return self._writers[-1]

    def create(self, table: str, columns: str) -> None:
        """A new table that the project watches."""
        self.writer().execute(f"CREATE TABLE {table} ({columns})")
        self.tables.append(table)

    def close(self) -> None:
        for writer in self._writers:
            writer.close()


class SqliteFile(LiveDatabase):
    integer, text = "INTEGER", "TEXT"

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    @property
    def settings(self) -> Mapping[str, Any]:
        return {"type": "sqlite", "path": str(self._path)}

    def _connect(self) -> Writer:
        return SqliteWriter(self._path)


class PostgresDatabase(LiveDatabase):
    integer, text = "bigint", "text"

    def __init__(self, database: Database | None = None) -> None:
        super().__init__()
        self._database = database or fresh_database()
        self._drop = database is None

    @property
    def settings(self) -> Mapping[str, Any]:
        # the slot's name is the server's, and all tests share one server
        return {
            "type": "postgresql",
            "url": self._database.url,
            "slot": f"slot_{self._database.name}",
        }

    def _connect(self) -> Writer:
        return PostgresWriter(self._database.connect())

    def create(self, table: str, columns: str) -> None:
        super().create(table, columns)
        self.writer().execute(f"ALTER TABLE {table} REPLICA IDENTITY FULL")

    def close(self) -> None:
        super().close()
        if self._drop:
            self._database.drop()


def write_project(
    folder: Path,
    sources: Mapping[str, LiveDatabase],
    views: Mapping[str, str],
    **project: str,
) -> Path:
    """A project folder over the databases as they are; the folder."""
    lines = ["[project]", 'name = "test"']
    lines += [f"{key} = {json.dumps(value)}" for key, value in project.items()]
    for name, database in sources.items():
        lines.append(f"[sources.{name}]")
        settings = {"audit": "off", **database.settings, "tables": database.tables}
        lines += [f"{key} = {json.dumps(value)}" for key, value in settings.items()]
    (folder / "views").mkdir(parents=True, exist_ok=True)
    (folder / "steadyview.toml").write_text("\n".join([*lines, ""]))
    for name, sql in views.items():
        write_view(folder, name, sql)
    return folder


def write_view(folder: Path, name: str, sql: str) -> None:
    """Add or change one view file of the project."""
    (folder / "views" / f"{name}.sql").write_text(sql)
