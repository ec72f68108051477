"""What changed at a SQLite source since its relations were described, and what is lost by it."""

from __future__ import annotations

import sqlite3

from steadyview.changes import RelationSchema
from steadyview.sources.sqlite import log
from steadyview.sources.sqlite.connection import quoted
from steadyview.sources.sqlite.schema import Table, read_table
from steadyview.sources.sqlite.types import sqlite_type


def lost_columns(connection: sqlite3.Connection, relation: RelationSchema) -> dict[str, str]:
    """Columns of the relation whose values are no longer known, with the reason.

    Reads the schema as the connection's present transaction sees it.
    """
    name = relation.name.path[0]
    table = _table(connection, relation)
    logged = log.relations(connection).get(name)
    reason = log.gap(connection, logged, table) if logged else "it is not logged"
    if reason:
        return {
            c.name: f'changes of "{relation.name}" are not all known: {reason}'
            for c in relation.columns
        }
    declared = {r[1]: r[2] for r in connection.execute(f"PRAGMA table_xinfo({quoted(name)})")}
    lost: dict[str, str] = {}
    for column in relation.columns:
        now = declared.get(column.name)
        where = f'column "{column.name}" of "{relation.name}"'
        if now is None:
            lost[column.name] = f"{where} was dropped or renamed"
        elif sqlite_type(now) != sqlite_type(column.source_type):
            lost[column.name] = f'{where} was retyped from "{column.source_type}" to "{now}"'
    return lost


def _table(connection: sqlite3.Connection, relation: RelationSchema) -> Table | None:
    name = relation.name.path[0]
    there = connection.execute(
        "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", [name]
    ).fetchone()
    return read_table(connection, relation.name.source, name) if there else None
