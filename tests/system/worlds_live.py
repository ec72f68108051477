"""Generated worlds in real databases: every transaction is committed by itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import count, islice
from pathlib import Path

from steadyview.changes import RelationName, RelationSchema
from tests.system.databases import LiveDatabase, PostgresDatabase, SqliteFile, Writer
from tests.world_views import view_text
from tests.worlds import RowChange, Seeded, World, chosen_world

MOST_PLACES = 3
Family = Callable[[Path, int], LiveDatabase]
FAMILIES: Mapping[str, Family] = {
    "sqlite": lambda folder, number: SqliteFile(folder / f"s{number}.db"),
    "postgresql": lambda folder, number: PostgresDatabase(),
    "mixed": lambda folder, number: (
        PostgresDatabase() if number % 2 else SqliteFile(folder / f"s{number}.db")
    ),
}


def worlds_of_views(seed: int, transactions: tuple[int, int], views: int) -> list[World]:
    """One world several times, each time with another view of the same relations."""
    choices = Seeded(seed)
    world = chosen_world(choices, transactions)
    texts = (view_text(choices, world.schemas) for _ in count())
    # larger joins are left to the tests of the algebra: Spark plans them for seconds
    small = (replace(world, view=text) for text in texts if len(text.places) <= MOST_PLACES)
    return list(islice(small, views))


class LiveWorld:
    """The databases of a world, with its first rows in them."""

    def __init__(self, world: World, family: Family, folder: Path) -> None:
        self.world = world
        names = sorted({schema.name.source for schema in world.schemas})
        self.sources = {name: family(folder, int(name[1:])) for name in names}
        self._writers = {name: database.writer() for name, database in self.sources.items()}
        self._columns = {schema.name: schema for schema in world.schemas}
        for schema in world.schemas:
            self._create(schema)

    def _create(self, schema: RelationSchema) -> None:
        database = self.sources[schema.name.source]
        types = {"BIGINT": database.integer, "STRING": database.text}
        columns = ", ".join(f"{c.name} {types[c.type]}" for c in schema.columns)
        database.create(schema.name.path[0], columns)
        for row, copies in self.world.initial[schema.name]:
            for _ in range(copies):
                self._insert(schema.name, row)

    def commit(self, number: int) -> str:
        """Carry out the world's transaction; the source it was committed at."""
        transaction = self.world.transactions[number]
        with self._writers[transaction.source].transaction():
            for old, new in _statements(transaction.changes):
                self._carry_out(old, new)
        return transaction.source

    def _carry_out(self, old: RowChange | None, new: RowChange | None) -> None:
        if old is None:
            assert new is not None
            self._insert(new.relation, new.row)
            return
        writer = self._writers[old.relation.source]
        where = f"{writer.row_address} = {self._one(old, writer)}"
        table = old.relation.path[0]
        if new is None:
            writer.execute(f"DELETE FROM {table} WHERE {where}")
            return
        names = [c.name for c in self._columns[old.relation].columns]
        settings = ", ".join(f"{name} = ?" for name in names)
        writer.execute(f"UPDATE {table} SET {settings} WHERE {where}", *new.row)

    def _insert(self, relation: RelationName, row: Sequence[object]) -> None:
        values = ", ".join("?" * len(row))
        self._writers[relation.source].execute(
            f"INSERT INTO {relation.path[0]} VALUES ({values})", *row
        )

    def _one(self, change: RowChange, writer: Writer) -> str:
        """Where one of the rows with these values lies."""
        equal = " AND ".join(
            f"{c.name} IS NULL" if value is None else f"{c.name} = ?"
            for c, value in zip(self._columns[change.relation].columns, change.row, strict=True)
        )
        values = [value for value in change.row if value is not None]
        found = writer.execute(
            f"SELECT {writer.row_address} FROM {change.relation.path[0]} WHERE {equal} LIMIT 1",
            *values,
        )
        address = found[0][0]
        return f"'{address}'" if isinstance(address, str) else str(address)

    def close(self) -> None:
        for database in self.sources.values():
            database.close()


def _statements(
    changes: Sequence[RowChange],
) -> list[tuple[RowChange | None, RowChange | None]]:
    """Changes as (old, new): a row that goes and the next one that comes are one UPDATE."""
    statements: list[tuple[RowChange | None, RowChange | None]] = []
    for change in changes:
        last = statements[-1] if statements else (None, None)
        if change.count < 0:
            statements.append((change, None))
        elif last[0] is not None and last[1] is None and last[0].relation == change.relation:
            statements[-1] = (last[0], change)
        else:
            statements.append((None, change))
    return statements
