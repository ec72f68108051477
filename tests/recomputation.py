"""An independent oracle: SQLite recomputes a query over a world's relations at every cn.

Shares nothing with the maintenance; only the world's rows and the SQL text go in.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing

from steadyview.algebra import Bag, Row
from steadyview.changes import RelationName, RelationSchema
from tests.worlds import World

_TYPES = {"BIGINT": "INTEGER", "STRING": "TEXT"}


def recomputed(world: World, sql: str) -> list[Bag[Row]]:
    """The query's result over the states at cn 0, 1, ..., one per transaction and the first."""
    with closing(sqlite3.connect(":memory:")) as db:
        _create(db, world)
        states = [_result(db, sql)]
        for transaction in world.transactions:
            for change in transaction.changes:
                _apply(db, change.relation, change.row, change.count)
            states.append(_result(db, sql))
        return states


def differences(states: list[Bag[Row]]) -> dict[int, Bag[Row]]:
    """dV(k) = V(k) - V(k-1) for every k at which it is not empty."""
    pairs = enumerate(zip(states, states[1:], strict=False), 1)
    changes = ((cn, after - before) for cn, (before, after) in pairs)
    return {cn: change for cn, change in changes if len(change)}


def _create(db: sqlite3.Connection, world: World) -> None:
    for source in sorted({schema.name.source for schema in world.schemas}):
        db.execute(f"ATTACH ':memory:' AS {source}")
    for schema in world.schemas:
        db.execute(f"CREATE TABLE {schema.name} ({_columns(schema)})")
        for row, count in world.initial[schema.name]:
            _apply(db, schema.name, row, count)


def _columns(schema: RelationSchema) -> str:
    return ", ".join(f"{column.name} {_TYPES[column.type]}" for column in schema.columns)


def _apply(db: sqlite3.Connection, relation: RelationName, row: Row, count: int) -> None:
    for _ in range(abs(count)):
        if count > 0:
            db.execute(f"INSERT INTO {relation} VALUES ({', '.join('?' * len(row))})", row)
        else:
            _delete_one(db, relation, row)


def _delete_one(db: sqlite3.Connection, relation: RelationName, row: Row) -> None:
    names = [entry[0] for entry in db.execute(f"SELECT * FROM {relation} LIMIT 0").description]
    equal = " AND ".join(f"{name} IS ?" for name in names)
    found = f"SELECT rowid FROM {relation} WHERE {equal} LIMIT 1"
    deleted = db.execute(f"DELETE FROM {relation} WHERE rowid = ({found})", row).rowcount
    assert deleted == 1, f"{relation} has no row {row}"


def _result(db: sqlite3.Connection, sql: str) -> Bag[Row]:
    return Bag.of(db.execute(sql))
