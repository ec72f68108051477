"""Real stores of every family, empty, for whoever asks."""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from steadyview.serving.contract import RecordStore
from steadyview.serving.stores import open_store
from tests.servers import fresh_database

FAMILIES = ("sqlite", "postgresql", "redis")
_numbers = itertools.count(1)


class Place:
    """Where a store is: its settings, and a client of its own that knows nothing of us."""

    def __init__(self, family: str, settings: dict[str, Any]) -> None:
        self.family = family
        self.settings = settings

    def open(self) -> RecordStore:
        """A connection to it."""
        return open_store("cache", self.settings)

    def sql(self, text: str) -> list[tuple[Any, ...]]:
        """Rows, as any client of a store of SQL reads them."""
        if self.family == "sqlite":
            connection = sqlite3.connect(self.settings["path"])
            try:
                with connection:
                    return connection.execute(text).fetchall()
            finally:
                connection.close()
        with psycopg.connect(self.settings["url"], autocommit=True) as client:
            client.execute("SET search_path = steadyview")
            cursor = client.execute(text)
            return cursor.fetchall() if cursor.description else []


@contextmanager
def place(family: str, folder: Path) -> Iterator[Place]:
    """An empty store."""
    if family == "sqlite":
        yield Place(family, {"type": family, "path": str(folder / f"cache{next(_numbers)}.db")})
    elif family == "postgresql":
        database = fresh_database()
        try:
            yield Place(family, {"type": family, "url": database.url})
        finally:
            database.drop()
    else:
        from tests.serving.redis_server import shared_redis

        yield Place(family, {"type": family, "url": shared_redis().fresh_url()})
