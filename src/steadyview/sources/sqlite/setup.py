"""Making the log take every change of a relation; mending what was damaged, never silently.

What was damaged is made whole for the future and marked in the log: the stream tells the loss where
it happened, at the latest. A mended relation can be used by a view that is built after the mark.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from steadyview.sources.sqlite import evidence, log
from steadyview.sources.sqlite.connection import quoted
from steadyview.sources.sqlite.log import LoggedRelation
from steadyview.sources.sqlite.schema import FoundTable
from steadyview.sources.sqlite.triggers import (
    LOG,
    RELATIONS,
    WRITTEN,
    create_guards,
    create_statements,
    displaced_table,
    guard_names,
    trigger_names,
)


def log_relation(connection: sqlite3.Connection, table: FoundTable) -> str | None:
    """Make the log take every change of the table; what was done, None if it was so already."""
    known = log.relations(connection).get(table.name)
    names = tuple(c.name for c in table.schema.columns)
    if known is None:
        _set_up(connection, _new(connection, table), table, names)
        return f'created the triggers of "{table.name}"'
    now = evidence.present(connection, table.schema.name)
    assert now is not None
    damage = now.damage or (None if known.triggers else known.why)
    if damage:
        log.mark(connection, known.number, {None: evidence.whole(table.schema.name, damage)})
        _set_up(connection, replace(known, made=_lot(connection), why=damage), table, names)
        return f'renewed the triggers of "{table.name}": {damage}'
    lost = evidence.moved(table.schema.name, evidence.noted(connection, known), now)
    present = evidence.places_of(connection, known) or ()
    columns = (*present, *(n for n in names if n not in present))
    if not lost and columns == known.columns and evidence.is_counted(connection, known):
        return _guard(connection, known)
    log.mark(connection, known.number, lost)
    _set_up(connection, known, table, columns)
    return f'renewed the triggers of "{table.name}"'


def _guard(connection: sqlite3.Connection, logged: LoggedRelation) -> str | None:
    """Put every guard behind the triggers, which have just been found to be the first ones."""
    if evidence.is_guarded(connection, logged.number):
        return None
    _drop_guards(connection, logged.number)
    for statement in create_guards(logged.number):
        connection.execute(statement)
    return f'renewed the guards of "{logged.table}"'


def drop(connection: sqlite3.Connection) -> str:
    """Drop everything; the journal mode the file had before us."""
    journal = str(connection.execute(f"SELECT journal FROM {log.META}").fetchone()[0])
    for (number,) in connection.execute(f"SELECT number FROM {RELATIONS}").fetchall():
        _drop_relation(connection, number)
    for table in (LOG, RELATIONS, WRITTEN, log.META):
        connection.execute(f"DROP TABLE IF EXISTS {table}")
    return journal


def holdings(connection: sqlite3.Connection, path: Path) -> list[str]:
    """What stands in the file for us."""
    ((rows,),) = connection.execute(f"SELECT count(*) FROM {LOG}").fetchall()
    ((journal,),) = connection.execute(f"SELECT journal FROM {log.META}").fetchall()
    tables = [f'triggers on table "{name}"' for name in log.relations(connection)]
    wal = [] if journal == "wal" else [f'its WAL mode (it was in mode "{journal}")']
    return [f'the log in "{path}" ({rows} rows)', *tables, *wal]


def drop_leftovers(connection: sqlite3.Connection) -> None:
    """Drop what stands there of a log without `_steadyview_meta`."""
    found = connection.execute(
        "SELECT type, name FROM sqlite_master"
        " WHERE type IN ('trigger', 'table', 'view') AND name GLOB '_steadyview_*'"
        " ORDER BY type DESC"
    ).fetchall()
    for kind, name in found:
        connection.execute(f"DROP {kind} IF EXISTS {quoted(name)}")


def drop_older(connection: sqlite3.Connection) -> None:
    """Drop what an older version set up for tables that are not watched any more."""
    for logged in log.relations(connection).values():
        if not evidence.is_counted(connection, logged):
            _drop_relation(connection, logged.number)
            connection.execute(f"DELETE FROM {RELATIONS} WHERE number = ?", [logged.number])


def _new(connection: sqlite3.Connection, table: FoundTable) -> LoggedRelation:
    (number,) = connection.execute(
        f"SELECT coalesce(max(number), 0) + 1 FROM {RELATIONS}"
    ).fetchone()
    return LoggedRelation(number, table.name, (), (), {}, "", _lot(connection), None)


def _set_up(
    connection: sqlite3.Connection,
    logged: LoggedRelation,
    table: FoundTable,
    columns: Sequence[str | None],
) -> None:
    """Triggers that write `columns[i]` to v{i}, and the notes by which they are known again."""
    _drop_relation(connection, logged.number)
    log.widen(connection, len(columns))
    for statement in create_statements(logged.number, table, columns):
        connection.execute(statement)
    for statement in create_guards(logged.number):
        connection.execute(statement)
    made = replace(
        logged,
        columns=tuple(columns),
        keys=table.keys,
        defaults=evidence.key_defaults(table),
    )
    known_by = evidence.fingerprint_of(connection, made, table)
    log.note(connection, replace(made, triggers=known_by))


def _drop_relation(connection: sqlite3.Connection, number: int) -> None:
    for name in trigger_names(number):
        connection.execute(f"DROP TRIGGER IF EXISTS {quoted(name)}")
    _drop_guards(connection, number)
    connection.execute(f"DROP TABLE IF EXISTS {displaced_table(number)}")


def _drop_guards(connection: sqlite3.Connection, number: int) -> None:
    for kind, name in guard_names(number).items():
        connection.execute(f"DROP {kind} IF EXISTS {quoted(name)}")


def _lot(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT random()").fetchone()[0])
