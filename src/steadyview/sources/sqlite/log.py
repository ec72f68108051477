"""The log in the source's own file: row images, which relations are logged, and what is pruned.

    _steadyview_log         seq, relation, count (+1 or -1), nonce, v0, v1, ...
    _steadyview_relations   number, table, logged columns, unique keys, and by what the triggers are
                            known again (`evidence.py`)
    _steadyview_meta        log (tells logs apart), pruned (last seq forgotten), journal (mode
                            before us), warehouse (the only one that reads it)
    _steadyview_written     the last seq, counted row by row

Writers of a SQLite file are serial, so seq order is commit order, and what a read transaction sees
is exactly the rows up to its largest seq. Seq is the rowid, the largest one plus one; pruning keeps
the last row, so no seq is given twice. (AUTOINCREMENT would not do: a statement that fails half way
under OR FAIL keeps its rows and forgets the counter.) If rows at the end are deleted by somebody,
their seq are given again, but the count is ahead of the last one from then on.

A row of count 0 is a *mark*: some changes, or some columns' values, before it are not in the log.
It is written by whoever finds that out and mends it, in the same transaction (`setup.py`).
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from steadyview.sources.sqlite.schema import UniqueKey
from steadyview.sources.sqlite.triggers import LOG, RELATIONS, WRITTEN

META = "_steadyview_meta"


@dataclass(frozen=True)
class LoggedRelation:
    """A relation as the log's notes know it.

    `columns[i]` went to v{i} when the triggers were made; None: nothing does. `defaults` are those
    of its unique keys' columns. `made` is set by chance whenever changes may have gone unlogged
    before, and `why` says what had happened then.
    """

    number: int
    table: str
    columns: tuple[str | None, ...]
    keys: tuple[UniqueKey, ...]
    defaults: Mapping[str, str]
    triggers: str
    made: int
    why: str | None


def exists(connection: sqlite3.Connection) -> bool:
    """Whether the file has a log."""
    return bool(connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", [META]).fetchall())


def is_current(connection: sqlite3.Connection) -> bool:
    """Whether the file has a log of this version; `upgrade` makes an older one so."""
    return "warehouse" in _columns(connection, META)


def create(connection: sqlite3.Connection, journal: str, warehouse: str) -> None:
    """An empty log, told apart from earlier ones by the time of its creation."""
    connection.execute(f"CREATE TABLE {LOG} (seq INTEGER PRIMARY KEY, relation, count, nonce, v0)")
    connection.execute(
        f"CREATE TABLE {RELATIONS} (number INTEGER PRIMARY KEY, name TEXT, columns TEXT, keys TEXT,"
        " broken TEXT, defaults TEXT, triggers TEXT, made INTEGER)"
    )
    connection.execute(
        f"CREATE TABLE {META} (log INTEGER, pruned INTEGER, journal TEXT, warehouse TEXT)"
    )
    connection.execute(
        f"INSERT INTO {META} VALUES"
        " (CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER), 0, ?, ?)",
        [journal, warehouse],
    )
    count(connection)


def upgrade(connection: sqlite3.Connection) -> None:
    """Give a log of an older version what it lacks. Its triggers are still the older ones."""
    connection.execute(f"ALTER TABLE {LOG} ADD COLUMN nonce")
    for column in ("defaults TEXT", "triggers TEXT", "made INTEGER"):
        connection.execute(f"ALTER TABLE {RELATIONS} ADD COLUMN {column}")
    connection.execute(f"UPDATE {RELATIONS} SET defaults = '{{}}', triggers = '', made = random()")
    connection.execute(f"ALTER TABLE {META} ADD COLUMN warehouse TEXT")


def count(connection: sqlite3.Connection) -> None:
    """Count the rows from now on, where nobody has yet: the triggers need it."""
    if not _columns(connection, WRITTEN):
        connection.execute(f"CREATE TABLE {WRITTEN} (seq INTEGER)")
        connection.execute(f"INSERT INTO {WRITTEN} VALUES (?)", [last_row(connection)])


def written(connection: sqlite3.Connection) -> int | None:
    """The last seq as it was counted; None if nobody has counted."""
    if not _columns(connection, WRITTEN):
        return None
    (found,) = connection.execute(f"SELECT max(seq) FROM {WRITTEN}").fetchone()
    return int(found or 0)


def identity(connection: sqlite3.Connection) -> int:
    """Which log this is."""
    return int(connection.execute(f"SELECT log FROM {META}").fetchone()[0])


def warehouse(connection: sqlite3.Connection) -> str | None:
    """To whom the log belongs; None if nobody has said so."""
    if not is_current(connection):
        return None
    found: str | None = connection.execute(f"SELECT warehouse FROM {META}").fetchone()[0]
    return found


def claim(connection: sqlite3.Connection, warehouse: str) -> None:
    """Make the log belong to the warehouse."""
    connection.execute(f"UPDATE {META} SET warehouse = ?", [warehouse])


def last_row(connection: sqlite3.Connection) -> int:
    """The largest seq ever committed, as the present transaction sees it."""
    return int(connection.execute(f"SELECT coalesce(max(seq), 0) FROM {LOG}").fetchone()[0])


def nonce(connection: sqlite3.Connection, row: int) -> tuple[int | None] | None:
    """What was drawn by lot for the row; None if there is no such row."""
    found: tuple[int | None] | None = connection.execute(
        f"SELECT nonce FROM {LOG} WHERE seq = ?", [row]
    ).fetchone()
    return found


def pruned(connection: sqlite3.Connection) -> int:
    """The stream goes on after this row or a later one; those before it are forgotten."""
    return int(connection.execute(f"SELECT pruned FROM {META}").fetchone()[0])


def relations(connection: sqlite3.Connection) -> dict[str, LoggedRelation]:
    """The logged relations, by table name."""
    rows = connection.execute(
        f"SELECT number, name, columns, keys, defaults, triggers, made, broken FROM {RELATIONS}"
    ).fetchall()
    found = [
        LoggedRelation(
            number,
            name,
            tuple(json.loads(columns)),
            _read_keys(keys),
            json.loads(defaults),
            triggers,
            made,
            why,
        )
        for number, name, columns, keys, defaults, triggers, made, why in rows
    ]
    return {logged.table: logged for logged in found}


def note(connection: sqlite3.Connection, logged: LoggedRelation) -> None:
    """Keep what is known of a relation."""
    connection.execute(
        f"INSERT OR REPLACE INTO {RELATIONS}"
        " (number, name, columns, keys, defaults, triggers, made, broken)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [
            logged.number,
            logged.table,
            json.dumps(logged.columns),
            json.dumps([[k.columns, k.collations] for k in logged.keys]),
            json.dumps(dict(logged.defaults)),
            logged.triggers,
            logged.made,
            logged.why,
        ],
    )


def widen(connection: sqlite3.Connection, columns: int) -> None:
    """Make place for so many columns."""
    width = sum(name.startswith("v") for name in _columns(connection, LOG))
    for i in range(width, columns):
        connection.execute(f"ALTER TABLE {LOG} ADD COLUMN v{i}")


def mark(connection: sqlite3.Connection, number: int, lost: Mapping[str | None, str]) -> None:
    """Say in the log what it lacks: of these columns, None for the whole relation, and why."""
    for column, reason in lost.items():
        connection.execute(
            f"INSERT INTO {LOG} (relation, count, nonce, v0) VALUES (?, 0, random(), ?)",
            [number, json.dumps([column, reason])],
        )
        connection.execute(f"UPDATE {WRITTEN} SET seq = seq + 1")


def marks(
    connection: sqlite3.Connection, after: int, until: int
) -> dict[int, dict[str | None, str]]:
    """What the log says it lacks in (after, until], by the number of the relation."""
    found: dict[int, dict[str | None, str]] = {}
    for number, text in connection.execute(
        f"SELECT relation, v0 FROM {LOG} WHERE seq > ? AND seq <= ? AND count = 0 ORDER BY seq",
        [after, until],
    ):
        column, reason = json.loads(text)
        found.setdefault(number, {})[column] = reason
    return found


def _columns(connection: sqlite3.Connection, table: str) -> Sequence[str]:
    return [r[1] for r in connection.execute(f"PRAGMA table_info({table})")]


def _read_keys(text: str) -> tuple[UniqueKey, ...]:
    return tuple(
        UniqueKey(tuple(columns), tuple(collations)) for columns, collations in json.loads(text)
    )
