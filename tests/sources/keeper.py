"""What a warehouse remembers of a SQLite source between its lives, and does in each of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from steadyview.catalog import merge_schema
from steadyview.changes import Chunk, Loss, RelationName, RelationSchema, StreamPosition
from steadyview.sources.contract import Monitor, Owner
from steadyview.sources.sqlite.source import SqliteSource
from tests.sources.world import Bag, SqliteWorld, answer, replayed


class Keeper:
    """Position, proof and evidence are kept as the catalog keeps them."""

    def __init__(self, world: SqliteWorld, *tables: str, warehouse: str = "0000000a") -> None:
        self.world = world
        self.tables = tables
        self.warehouse = warehouse
        self.recorded: dict[RelationName, RelationSchema] = {}
        self.position: StreamPosition | None = None
        self.proof = ""
        self.seq = 0
        self.told: list[Loss] = []
        self.chunks: list[Chunk] = []
        self.done: list[str] = []
        self.monitor: Monitor | None = None

    @property
    def source(self) -> SqliteSource:
        settings = {**self.world.settings, "tables": list(self.tables)}
        owner = Owner(self.warehouse, self.proof)
        return SqliteSource("src", settings, self.world.folder, owner)

    @property
    def relations(self) -> list[RelationSchema]:
        return list(self.recorded.values())

    def record(self, source: SqliteSource) -> None:
        for current in source.schemas():
            known = self.recorded.get(current.name, current)
            self.recorded[current.name] = merge_schema(known, current)

    def prepare(self) -> None:
        self.record(self.source)
        self.done = self.source.prepare(self.relations)
        self.record(self.source)

    def start(self) -> None:
        """Begin a life."""
        self.prepare()
        source = self.source
        if self.position is None:
            self.position = source.start()
        self.monitor = source.monitor(self.relations, self.position, self.seq + 1, self.proof)
        self.proof = self.monitor.proof

    def stop(self) -> None:
        if self.monitor is not None:
            self.monitor.close()
        self.monitor = None

    def take(self) -> None:
        """Capture everything committed by now."""
        assert self.monitor is not None
        while chunk := self.monitor.poll(0):
            self.chunks.append(chunk)
            self.told += chunk.lost
            self.position, self.proof = chunk.position, self.monitor.proof
            self.seq += len(chunk.transactions)

    def acknowledge(self) -> None:
        assert self.monitor is not None
        assert self.position is not None
        self.monitor.acknowledge(self.position)

    def life(self) -> None:
        """A whole life: begin, capture, acknowledge, end."""
        self.start()
        self.take()
        self.acknowledge()
        self.stop()

    def examine(self) -> dict[tuple[str, str | None], str]:
        """What a look at the file finds lost; it is remembered, and not told again."""
        examined = self.source.examine(self.relations, self.proof)
        for name, evidence in examined.evidence.items():
            self.recorded[name] = replace(self.recorded[name], evidence=evidence)
        assert {x.seq for x in examined.losses} <= {0}
        return {(x.relation.path[0], x.column): x.reason for x in examined.losses}

    @property
    def lost(self) -> set[tuple[str, str | None]]:
        """What the stream told."""
        return {(x.relation.path[0], x.column) for x in self.told}

    def state(self, table: str) -> Bag:
        """What a snapshot shows of a table, all recorded columns that exist."""
        relation = self.recorded[RelationName("src", (table,))]
        snapshot = self.source.snapshot()
        try:
            return answer(snapshot, relation)
        finally:
            snapshot.close()

    def changes(self, table: str, since: int) -> Bag:
        """The sum of the table's images in the chunks from number `since` on."""
        return replayed(self.chunks[since:], RelationName("src", (table,)))


def plus(state: Bag, changes: Bag) -> Bag:
    found: Bag = Counter(state)
    found.update(changes)
    return Counter({row: count for row, count in found.items() if count})
