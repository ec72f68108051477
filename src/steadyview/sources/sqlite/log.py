"""The log in the source's own file: row images, which relations are logged, and what is pruned.

    _steadyview_log         seq, relation, count (+1 or -1), v0, v1, ...
    _steadyview_relations   number, table, logged columns, unique keys, why it is broken if it is
    _steadyview_meta        log (tells logs apart), pruned (last seq deleted), journal (before us)

Writers of a SQLite file are serial, so seq order is commit order, and what a read transaction sees
is exactly the rows up to its largest seq. Seq is the rowid, the largest one plus one; pruning keeps
the last row, so no seq is given twice. (AUTOINCREMENT would not do: a statement that fails half way
under OR FAIL keeps its rows and forgets the counter.)

A relation is *broken* when changes may have gone unlogged: its triggers vanished (the table was
made anew), or it got a unique key they do not know. It stays broken until the source is removed.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from steadyview.changes import RelationSchema
from steadyview.sources.sqlite.connection import quoted
from steadyview.sources.sqlite.schema import Table, UniqueKey
from steadyview.sources.sqlite.triggers import (
    LOG,
    create_statements,
    displaced_table,
    trigger_names,
)

_RELATIONS, _META = "_steadyview_relations", "_steadyview_meta"
_PRUNE_STEP = 20_000


@dataclass(frozen=True)
class Logged:
    """A relation as the log knows it. `columns[i]` is in v{i}."""

    number: int
    table: str
    columns: tuple[str, ...]
    keys: tuple[UniqueKey, ...]
    broken: str | None

    def places(self, relation: RelationSchema) -> list[int | None]:
        """For each column of the relation, the number of its log column."""
        where = {c: i for i, c in enumerate(self.columns)}
        return [where.get(c.name) for c in relation.columns]


def exists(connection: sqlite3.Connection) -> bool:
    """Whether the file has a log."""
    found = connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", [_META]).fetchone()
    return found is not None


def create(connection: sqlite3.Connection, journal: str) -> None:
    """An empty log, told apart from earlier ones by the time of its creation."""
    connection.execute(f"CREATE TABLE {LOG} (seq INTEGER PRIMARY KEY, relation, count, v0)")
    connection.execute(
        f"CREATE TABLE {_RELATIONS}"
        " (number INTEGER PRIMARY KEY, name TEXT, columns TEXT, keys TEXT, broken TEXT)"
    )
    connection.execute(f"CREATE TABLE {_META} (log INTEGER, pruned INTEGER, journal TEXT)")
    connection.execute(
        f"INSERT INTO {_META} VALUES"
        " (CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER), 0, ?)",
        [journal],
    )


def identity(connection: sqlite3.Connection) -> int:
    """Which log this is."""
    return int(connection.execute(f"SELECT log FROM {_META}").fetchone()[0])


def last_row(connection: sqlite3.Connection) -> int:
    """The largest seq ever committed, as the present transaction sees it."""
    return int(connection.execute(f"SELECT coalesce(max(seq), 0) FROM {LOG}").fetchone()[0])


def pruned(connection: sqlite3.Connection) -> int:
    """The last seq that was deleted."""
    return int(connection.execute(f"SELECT pruned FROM {_META}").fetchone()[0])


def relations(connection: sqlite3.Connection) -> dict[str, Logged]:
    """The logged relations, by table name."""
    rows = connection.execute(
        f"SELECT number, name, columns, keys, broken FROM {_RELATIONS}"
    ).fetchall()
    found = [
        Logged(number, name, tuple(json.loads(columns)), _read_keys(keys), broken)
        for number, name, columns, keys, broken in rows
    ]
    return {logged.table: logged for logged in found}


def gap(connection: sqlite3.Connection, logged: Logged, table: Table | None) -> str | None:
    """Why changes of a logged relation may have gone unlogged; None if they cannot."""
    if logged.broken:
        return logged.broken
    if table is None:
        return "the table was dropped or renamed"
    there = connection.execute(
        "SELECT count(*) FROM sqlite_master WHERE type = 'trigger' AND tbl_name = ? AND name IN"
        " (SELECT value FROM json_each(?))",
        [logged.table, json.dumps(trigger_names(logged.number))],
    ).fetchone()[0]
    if there < len(trigger_names(logged.number)):
        return "its triggers were dropped (was the table made anew?)"
    if not set(table.keys) <= set(logged.keys):
        return "it got a unique key by which REPLACE may have removed rows unseen"
    return None


def log_relation(connection: sqlite3.Connection, table: Table) -> str | None:
    """Make the log take every change of the table; what was done, None if it was so already."""
    known = relations(connection).get(table.name)
    names = tuple(c.name for c in table.schema.columns)
    if known is None:
        number = connection.execute(
            f"SELECT coalesce(max(number), 0) + 1 FROM {_RELATIONS}"
        ).fetchone()[0]
        connection.execute(
            f"INSERT INTO {_RELATIONS} (number, name) VALUES (?, ?)", [number, table.name]
        )
        _set_up(connection, Logged(number, table.name, names, table.keys, None), table)
        return f'created the triggers of "{table.name}"'
    broken = gap(connection, known, table)
    columns = (*known.columns, *(n for n in names if n not in known.columns))
    if columns == known.columns and broken == known.broken and not broken:
        return None
    _set_up(connection, Logged(known.number, table.name, columns, table.keys, broken), table)
    return f'renewed the triggers of "{table.name}"'


def _set_up(connection: sqlite3.Connection, logged: Logged, table: Table) -> None:
    drop_relation(connection, logged.number)
    present = {c.name for c in table.schema.columns} | set(table.unsupported)
    width = sum(1 for r in connection.execute(f"PRAGMA table_info({LOG})") if r[1].startswith("v"))
    for i in range(width, len(logged.columns)):
        connection.execute(f"ALTER TABLE {LOG} ADD COLUMN v{i}")
    columns = [c if c in present else None for c in logged.columns]
    for statement in create_statements(logged.number, table, columns):
        connection.execute(statement)
    connection.execute(
        f"UPDATE {_RELATIONS} SET columns = ?, keys = ?, broken = ? WHERE number = ?",
        [json.dumps(logged.columns), _write_keys(logged.keys), logged.broken, logged.number],
    )


def drop_relation(connection: sqlite3.Connection, number: int) -> None:
    """Drop a relation's triggers and notes; its log rows stay."""
    for name in trigger_names(number):
        connection.execute(f"DROP TRIGGER IF EXISTS {quoted(name)}")
    connection.execute(f"DROP TABLE IF EXISTS {displaced_table(number)}")


def drop(connection: sqlite3.Connection) -> str:
    """Drop everything; the journal mode the file had before us."""
    journal = str(connection.execute(f"SELECT journal FROM {_META}").fetchone()[0])
    for logged in relations(connection).values():
        drop_relation(connection, logged.number)
    for table in (LOG, _RELATIONS, _META):
        connection.execute(f"DROP TABLE IF EXISTS {table}")
    return journal


def prune(connection: sqlite3.Connection, until: int) -> None:
    """Delete rows up to `until`, but for the very last one.

    In short transactions, so that writers can come between.
    """
    numbers = [r[0] for r in connection.execute(f"SELECT number FROM {_RELATIONS}")]
    done = pruned(connection)
    while done < until:
        done = min(done + _PRUNE_STEP, until)
        connection.execute("BEGIN IMMEDIATE")
        try:
            connection.execute(
                f"DELETE FROM {LOG} WHERE seq <= ? AND seq < (SELECT max(seq) FROM {LOG})", [done]
            )
            connection.execute(f"UPDATE {_META} SET pruned = ?", [done])
            for number in numbers:
                connection.execute(f"DELETE FROM {displaced_table(number)}")
        except BaseException:
            connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")


def _write_keys(keys: Sequence[UniqueKey]) -> str:
    return json.dumps([[k.columns, k.collations] for k in keys])


def _read_keys(text: str) -> tuple[UniqueKey, ...]:
    return tuple(
        UniqueKey(tuple(columns), tuple(collations)) for columns, collations in json.loads(text)
    )
