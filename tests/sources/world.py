"""A source family under test: a database of its own, its writers, and what a stream amounts to."""

from __future__ import annotations

import sqlite3
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest

from steadyview.changes import Chunk, RelationName, RelationSchema, StreamPosition, Transaction
from steadyview.sources import Monitor, Read, Snapshot, Source, open_source
from steadyview.sources.contract import Owner
from steadyview.sources.postgres.names import own_name
from tests.servers import fresh_database

Bag = Counter[tuple[Any, ...]]


class Writer(ABC):
    """A user's connection. Statements mark parameters with `?` in both families."""

    @abstractmethod
    def execute(self, statement: str, *values: Any) -> list[tuple[Any, ...]]: ...

    @abstractmethod
    def close(self) -> None: ...


class PostgresWriter(Writer):
    def __init__(self, connection: psycopg.Connection) -> None:
        self.connection = connection

    def execute(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        if not values:
            cursor = self.connection.execute(statement)
        else:
            cursor = self.connection.execute(statement.replace("?", "%s"), values)
        return cursor.fetchall() if cursor.description else []

    def close(self) -> None:
        self.connection.close()


class SqliteWriter(Writer):
    def __init__(self, path: Path) -> None:
        self.connection = sqlite3.connect(
            path, timeout=60, isolation_level=None, check_same_thread=False
        )

    def execute(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        return self.connection.execute(statement, values).fetchall()

    def close(self) -> None:
        self.connection.close()


class World(ABC):
    """One database of a family."""

    family: str
    settings: dict[str, Any]
    owner = Owner("0000feed")

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._writers: list[Writer] = []
        self._sources: list[Source] = []
        self._monitors: list[Monitor] = []

    @abstractmethod
    def _connect(self) -> Writer: ...

    @abstractmethod
    def table(self, name: str, columns: str) -> None:
        """Create a table that can be watched; `name` as SQL writes it."""

    @abstractmethod
    def traces(self) -> list[str]:
        """Everything of steadyview that stands at the database."""

    def writer(self) -> Writer:
        self._writers.append(self._connect())
        return self._writers[-1]

    def source(self, *tables: str) -> Source:
        settings = {**self.settings, "tables": list(tables)}
        self._sources.append(open_source("src", settings, self.folder, self.owner))
        return self._sources[-1]

    def watch(self, *tables: str) -> Watch:
        """A prepared source and a monitor at its start."""
        source = self.source(*tables)
        source.prepare(source.schemas())
        # once more: what was set up gave the relations their evidence
        return Watch(self, source, source.schemas())

    def reopen(self, watch: Watch, position: StreamPosition, next_seq: int) -> None:
        """Close the watch's monitor and give it a new one, which starts elsewhere.

        It is to prove what the monitor before had proved there, if that came there.
        """
        watch.monitor.close()
        watch.start, watch.chunks = position, []
        watch.monitor = self.monitor(watch, position, next_seq)

    def monitor(self, watch: Watch, position: StreamPosition, next_seq: int) -> Monitor:
        proof = watch.proofs.get(str(position), "")
        self._monitors.append(watch.source.monitor(watch.relations, position, next_seq, proof))
        return self._monitors[-1]

    def close(self) -> None:
        for held in [*self._monitors, *self._writers, *self._sources]:
            held.close()


class PostgresWorld(World):
    family = "postgresql"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.database = fresh_database()
        # slots are the whole server's, so every database has a warehouse of its own
        number = int(self.database.name.removeprefix("test_"))
        self.owner = Owner(f"{number:08x}")
        self.slot = own_name("src", self.owner.warehouse)
        self.publication = "steadyview_src"
        self.settings = {"type": "postgresql", "url": self.database.url}

    def _connect(self) -> Writer:
        return PostgresWriter(self.database.connect())

    def table(self, name: str, columns: str) -> None:
        writer = self.writer()
        writer.execute(f"CREATE TABLE {name} ({columns})")
        writer.execute(f"ALTER TABLE {name} REPLICA IDENTITY FULL")

    def traces(self) -> list[str]:
        found = self.writer().execute(
            "SELECT slot_name::text FROM pg_replication_slots WHERE database = current_database()"
            " UNION ALL SELECT pubname::text FROM pg_publication"
        )
        return [r[0] for r in found]

    @property
    def version(self) -> int:
        """The server's major version."""
        with self.database.connect() as connection:
            return connection.info.server_version // 10000

    def needs(self, version: int) -> None:
        """Skip the test on a server that lacks what it is about."""
        if self.version < version:
            pytest.skip(f"PostgreSQL {version} or later is needed, this is {self.version}")

    def wait_until_unread(self) -> None:
        active = "SELECT 1 FROM pg_replication_slots WHERE slot_name = ? AND active"
        writer = self.writer()
        while writer.execute(active, self.slot):
            writer.execute("SELECT pg_sleep(0.01)")

    def close(self) -> None:
        super().close()
        self.database.drop()


class SqliteWorld(World):
    family = "sqlite"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.path = folder / "source.db"
        self.settings = {"type": "sqlite", "path": "source.db"}
        sqlite3.connect(self.path).close()
        self.writer().execute("PRAGMA user_version = 1")

    def _connect(self) -> Writer:
        return SqliteWriter(self.path)

    def table(self, name: str, columns: str) -> None:
        self.writer().execute(f"CREATE TABLE {name} ({columns})")

    def traces(self) -> list[str]:
        found = self.writer().execute(
            "SELECT name FROM sqlite_master WHERE name LIKE '%steadyview%'"
        )
        return [r[0] for r in found] + [
            p.name for p in self.folder.iterdir() if "steadyview" in p.name
        ]


class Watch:
    """A source being watched, and everything its monitor has delivered."""

    def __init__(self, world: World, source: Source, relations: Sequence[RelationSchema]) -> None:
        self.world = world
        self.source = source
        self.relations = list(relations)
        self.start = source.start()
        self.proofs: dict[str, str] = {}
        self.monitor = world.monitor(self, self.start, 1)
        self.chunks: list[Chunk] = []

    @property
    def transactions(self) -> list[Transaction]:
        return [t for c in self.chunks for t in c.transactions]

    @property
    def lost(self) -> dict[tuple[str, str | None], str]:
        return {(x.relation.path[-1], x.column): x.reason for c in self.chunks for x in c.lost}

    def take(self, timeout: float = 20) -> Chunk:
        """The next chunk; a stream that stays silent fails the test."""
        chunk = self.monitor.poll(timeout)
        assert chunk is not None, "no chunk came"
        self.chunks.append(chunk)
        self.proofs[str(chunk.position)] = self.monitor.proof
        return chunk

    def take_transaction(self) -> Chunk:
        """Chunks until a transaction has ended."""
        chunk = self.take()
        while not chunk.transactions:
            chunk = self.take()
        return chunk

    def catch_up(self, snapshot: Snapshot) -> None:
        """Chunks until the monitor has passed the snapshot's horizon."""
        position = self.chunks[-1].position if self.chunks else self.start
        while not snapshot.horizon <= position or (self.chunks and self.chunks[-1].open):
            position = self.take().position

    def drain(self) -> None:
        """Everything committed up to now."""
        snapshot = self.source.snapshot()
        try:
            self.catch_up(snapshot)
        finally:
            snapshot.close()

    def replay(self, relation: RelationSchema, seqs: Iterable[int] | None = None) -> Bag:
        """The sum of the delivered row images of a relation, of the given transactions or all."""
        return replayed(self.chunks, relation.name, seqs)


def images(chunks: Iterable[Chunk], name: RelationName) -> list[dict[str, Any]]:
    """The row images of a relation, in the order of delivery."""
    return [row for c in chunks if name in c.rows for row in c.rows[name].to_pylist()]


def replayed(chunks: Iterable[Chunk], name: RelationName, seqs: Iterable[int] | None = None) -> Bag:
    wanted = None if seqs is None else set(seqs)
    bag: Bag = Counter()
    for row in images(chunks, name):
        if wanted is None or row["_seq"] in wanted:
            bag[tuple(v for k, v in row.items() if k.startswith("c"))] += row["_count"]
    return Counter({row: count for row, count in bag.items() if count})


def answer(
    snapshot: Snapshot,
    relation: RelationSchema,
    columns: Sequence[int] | None = None,
    *,
    key: int | None = None,
    values: pa.Array | None = None,
    parallelism: int = 1,
) -> Bag:
    """The rows of a read, as a bag."""
    numbers = tuple(range(len(relation.columns)) if columns is None else columns)
    tasks = snapshot.tasks(Read(relation, numbers, key, values), parallelism)
    rows = [r for t in tasks for b in t.batches() for r in b.to_pylist()]
    return Counter(tuple(r.values()) for r in rows)


WORLDS = {"postgresql": PostgresWorld, "sqlite": SqliteWorld}
