"""Watched relations as SQLite describes them: columns, row identity, unique keys."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass

from steadyview.changes import Column, RelationName, RelationSchema
from steadyview.errors import SourceRefused
from steadyview.nearest import did_you_mean
from steadyview.sources.spelling import parts
from steadyview.sources.sqlite.connection import quoted
from steadyview.sources.sqlite.types import SqliteType, sqlite_type

ROWID_NAMES = ("rowid", "_rowid_", "oid")


@dataclass(frozen=True)
class UniqueKey:
    """Columns that no two rows share, each with the collation that compares it."""

    columns: tuple[str, ...]
    collations: tuple[str, ...]


@dataclass(frozen=True)
class FoundTable:
    """A table as found.

    `identity` names the columns (or the rowid) that tell its rows apart; `keys` are all constraints
    by which INSERT OR REPLACE may remove a row, the identity included; `defaults` the SQL of the
    values that NULL may turn into. `alias`: the column that is the rowid, a whole number in every
    row; any other column may hold anything.
    """

    schema: RelationSchema
    unsupported: Mapping[str, str]
    identity: tuple[str, ...]
    keys: tuple[UniqueKey, ...]
    defaults: Mapping[str, str]
    alias: str | None = None

    @property
    def name(self) -> str:
        """The table's name in the file."""
        return self.schema.name.path[0]


def find_table(connection: sqlite3.Connection, source: str, spelling: str) -> str:
    """The stored name of a configured table; SourceRefused if it is no ordinary table."""
    names = parts(spelling)
    if len(names) == 2 and names[0].text.lower() == "main":
        names = names[1:]
    if len(names) != 1:
        raise SourceRefused(f'table "{spelling}" of source "{source}" is not one plain name')
    row = connection.execute(
        "SELECT name, type, sql FROM sqlite_master"
        " WHERE name = ? COLLATE NOCASE AND type IN ('table', 'view')",
        [names[0].text],
    ).fetchone()
    if row is None:
        raise _no_table(connection, source, spelling)
    if row[1] == "view" or str(row[2]).upper().startswith("CREATE VIRTUAL"):
        raise SourceRefused(f'"{row[0]}" at source "{source}" is a {row[1]} that cannot be watched')
    return str(row[0])


def _no_table(connection: sqlite3.Connection, source: str, spelling: str) -> SourceRefused:
    found = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    near = did_you_mean(spelling, [str(name) for (name,) in found])
    return SourceRefused(
        f'table "{spelling}" does not exist at source "{source}"',
        hint=near or f"correct tables of [sources.{source}]",
    )


def read_table(connection: sqlite3.Connection, source: str, name: str) -> FoundTable:
    """The table of that stored name."""
    rows = connection.execute(f"PRAGMA table_xinfo({quoted(name)})").fetchall()
    if not rows:
        raise SourceRefused(f'table "{name}" does not exist at source "{source}"')
    kept: list[Column] = []
    unsupported: dict[str, str] = {}
    for _, column, declared, *_ in rows:
        mapped = sqlite_type(declared)
        if isinstance(mapped, SqliteType):
            kept.append(Column(column, mapped.spark, declared, mapped.keyable))
        else:
            unsupported[column] = mapped
    primary = tuple(r[1] for r in sorted((r for r in rows if r[5]), key=lambda r: r[5]))
    not_null = {r[1] for r in rows if r[3]}
    rowid = _rowid(connection, name, [r[1] for r in rows])
    is_rowid = rowid is not None and bool(primary) and not _has_primary_index(connection, name)
    identity = (rowid,) if rowid else primary
    unique, leading = _indexes(connection, source, name)
    if is_rowid:
        leading.insert(0, primary[0])
    names = {c.name for c in kept}
    named = primary if names.issuperset(primary) else ()
    # SQLite lets NULLs into the primary key of an ordinary table, as many as there are rows
    is_key = rowid is None or is_rowid or not_null.issuperset(primary)
    schema = RelationSchema(
        RelationName(source, (name,)),
        tuple(kept),
        named if is_key else (),
        tuple(dict.fromkeys(c for c in leading if c in names)),
        primary=named,
    )
    own = [UniqueKey((rowid,), ("",))] if rowid else []
    defaults = {r[1]: r[4] for r in rows if r[3] and r[4] is not None}
    alias = primary[0] if is_rowid else None
    return FoundTable(schema, unsupported, identity, (*own, *unique), defaults, alias)


def _rowid(connection: sqlite3.Connection, name: str, columns: list[str]) -> str | None:
    """A name for the rowid that no column hides; None for a WITHOUT ROWID table."""
    taken = {c.lower() for c in columns}
    free = [n for n in ROWID_NAMES if n not in taken]
    if not free:
        raise SourceRefused(f'table "{name}" hides its rowid behind columns of all three names')
    try:
        connection.execute(f"SELECT {free[0]} FROM {quoted(name)} LIMIT 0")
    except sqlite3.OperationalError:
        return None
    return free[0]


def _has_primary_index(connection: sqlite3.Connection, name: str) -> bool:
    """Whether the primary key has an index of its own: it has none where it is the rowid."""
    indexes = connection.execute(f"PRAGMA index_list({quoted(name)})").fetchall()
    return any(origin == "pk" for _, _, _, origin, _ in indexes)


def _indexes(
    connection: sqlite3.Connection, source: str, name: str
) -> tuple[list[UniqueKey], list[str]]:
    """Unique keys, and the columns that lead a whole-table index."""
    unique: list[UniqueKey] = []
    leading: list[str] = []
    for _, index, is_unique, _, partial in connection.execute(
        f"PRAGMA index_list({quoted(name)})"
    ).fetchall():
        members = [
            r for r in connection.execute(f"PRAGMA index_xinfo({quoted(index)})").fetchall() if r[5]
        ]
        if is_unique:
            _refuse_expressions(source, name, index, [m[2] for m in members])
            unique.append(UniqueKey(tuple(m[2] for m in members), tuple(m[4] for m in members)))
        if members and members[0][2] is not None and not partial:
            leading.append(members[0][2])
    return unique, leading


def _refuse_expressions(source: str, table: str, index: str, columns: list[str | None]) -> None:
    if None in columns:
        raise SourceRefused(
            f'table "{table}" at source "{source}" has the unique index "{index}" on an expression',
            detail="rows that INSERT OR REPLACE removes by it could not be seen",
        )
