"""What a SQLite file says about its watched relations, and what is lost by a difference.

    damage   changes may go unlogged now: triggers missing, changed or made anew, the table gone, a
             unique key that they do not know. The whole relation is lost.
    made     set by chance when damage was mended (`setup.py`): another one than before means that
             changes went unlogged in between. The whole relation is lost.
    columns  which log column each one goes to, read from the triggers, whose text SQLite rewrites
             when a column is renamed. Another place than before means that another column has this
             name now; none, that it was dropped or renamed. That column is lost.

All of it is read as one transaction sees it. VACUUM changes none of it.
Not seen: changes by connections with triggers switched off; a schema that was edited in place
(writable_schema) and edited back.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from steadyview.changes import RelationName, RelationSchema
from steadyview.errors import SourceRefused
from steadyview.sources.sqlite import log
from steadyview.sources.sqlite.connection import quoted
from steadyview.sources.sqlite.log import LoggedRelation
from steadyview.sources.sqlite.schema import FoundTable, UniqueKey, read_table
from steadyview.sources.sqlite.triggers import (
    counts,
    displaced_table,
    fingerprint,
    guard_names,
    logged_columns,
    trigger_names,
)
from steadyview.sources.sqlite.types import sqlite_type

Losses = Mapping[str | None, str]
"""Reasons by column; None is the whole relation."""


@dataclass(frozen=True)
class Evidence:
    """What a file says about one relation. `columns`: log column and declared type by name."""

    log: int
    made: int
    columns: Mapping[str, tuple[int, str]]
    damage: str | None = None
    why: str | None = None

    def __str__(self) -> str:
        return json.dumps(
            {"log": self.log, "made": self.made, "columns": self.columns, "damage": self.damage},
            sort_keys=True,
        )

    @staticmethod
    def parse(text: str) -> Evidence | None:
        """Read back `str(evidence)`; None if there is none."""
        if not text:
            return None
        data = json.loads(text)
        columns = {name: (place, kind) for name, (place, kind) in data["columns"].items()}
        return Evidence(data["log"], data["made"], columns, data["damage"])


def present(connection: sqlite3.Connection, name: RelationName) -> Evidence | None:
    """What the file says now; None if the relation is not logged."""
    logged = log.relations(connection).get(name.path[0])
    if logged is None:
        return None
    declared = _declared(connection, logged.table)
    damage = damage_of(connection, logged, table_of(connection, name))
    columns = {
        c: (place, declared[c])
        for place, c in enumerate(places_of(connection, logged) or ())
        if c is not None and c in declared
    }
    return Evidence(log.identity(connection), logged.made, columns, damage, logged.why)


def noted(connection: sqlite3.Connection, logged: LoggedRelation) -> Evidence:
    """What the relation was when its triggers were made, as far as columns have places."""
    columns = {c: (place, "") for place, c in enumerate(logged.columns) if c is not None}
    return Evidence(log.identity(connection), logged.made, columns)


def losses(name: RelationName, before: Evidence | None, now: Evidence | None) -> Losses:
    """What is lost between two looks, and what is being lost now."""
    if now is None:
        return {None: whole(name, "it is not logged")}
    if now.damage:
        return {None: whole(name, now.damage)}
    if before is None:
        return {}
    if (before.log, before.made) != (now.log, now.made):
        return {None: whole(name, now.why or "its triggers were made anew")}
    return {**moved(name, before, now), **retyped(name, before, now)}


def moved(name: RelationName, before: Evidence, now: Evidence) -> Losses:
    """Columns whose values go to another place of the log, or nowhere."""
    lost: dict[str | None, str] = {}
    for column, (place, _) in before.columns.items():
        found = now.columns.get(column)
        if found is None:
            lost[column] = f'column "{column}" of "{name}" was dropped or renamed'
        elif found[0] != place:
            lost[column] = renamed(name, column)
    return lost


def retyped(name: RelationName, before: Evidence, now: Evidence) -> Losses:
    """Columns whose declared type means another one."""
    both = before.columns.keys() & now.columns.keys()
    types = {c: (before.columns[c][1], now.columns[c][1]) for c in sorted(both)}
    return {
        c: f'column "{c}" of "{name}" was retyped from "{old}" to "{new}"'
        for c, (old, new) in types.items()
        if sqlite_type(old) != sqlite_type(new)
    }


def unknown(relation: RelationSchema, now: Evidence | None) -> Losses:
    """What is not to be had of a recorded relation, as long as it is as it is now."""
    lost = losses(relation.name, None, now)
    if now is None or lost:
        return lost
    recorded = {c.name: (now.columns.get(c.name, (0,))[0], c.source_type) for c in relation.columns}
    before = Evidence(now.log, now.made, recorded)
    return losses(relation.name, before, now)


def whole(name: RelationName, reason: str) -> str:
    """The words for a lost relation."""
    return f'changes of "{name}" are not all known: {reason}'


def renamed(name: RelationName, column: str) -> str:
    """The words for a column whose name another one has."""
    return f'column "{column}" of "{name}" was renamed, and another one has its name now'


def table_of(connection: sqlite3.Connection, name: RelationName) -> FoundTable | str:
    """The table, or why it cannot be watched (any more)."""
    there = connection.execute(
        "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", [name.path[0]]
    ).fetchone()
    if not there:
        return "the table was dropped or renamed"
    try:
        return read_table(connection, name.source, name.path[0])
    except SourceRefused as error:
        return str(error)


def places_of(
    connection: sqlite3.Connection, logged: LoggedRelation
) -> tuple[str | None, ...] | None:
    """The columns that go to v0, v1, ... now; None if the triggers do not say so."""
    texts = _texts(connection, logged)
    return logged_columns(texts[-1]) if texts else None


def fingerprint_of(
    connection: sqlite3.Connection, logged: LoggedRelation, table: FoundTable
) -> str:
    """By what the relation's triggers are known again; empty if they are not all there."""
    texts, columns = _texts(connection, logged), places_of(connection, logged)
    return fingerprint(texts, table, columns) if columns is not None else ""


def damage_of(
    connection: sqlite3.Connection, logged: LoggedRelation, table: FoundTable | str
) -> str | None:
    """Why changes of a logged relation may go unlogged; None if they cannot."""
    if isinstance(table, str):
        return table
    columns = places_of(connection, logged)
    if columns is None:
        return "its triggers were dropped (was the table made anew?)"
    if logged.triggers and fingerprint_of(connection, logged, table) != logged.triggers:
        return "its triggers were changed"
    if logged.triggers and not _are_first(connection, logged.number):
        return "its triggers were dropped and made anew"
    if not _in_order(connection, logged.table, columns):
        return "its columns were put into another order"
    if not _keys(table.keys, columns) <= _keys(logged.keys, logged.columns):
        return "it got a unique key by which REPLACE may have removed rows unseen"
    if logged.triggers and key_defaults(table) != _renamed(logged, columns):
        return "a default of its unique keys was changed"
    return None


def is_guarded(connection: sqlite3.Connection, number: int) -> bool:
    """Whether all guards are there, behind the triggers."""
    return [*_behind(connection, number).values()] == [True] * len(guard_names(number))


def is_counted(connection: sqlite3.Connection, logged: LoggedRelation) -> bool:
    """Whether the relation's triggers are of this version; those of older ones count nothing."""
    texts = _texts(connection, logged)
    return bool(logged.triggers) and bool(texts) and counts(texts[-1])


def key_defaults(table: FoundTable) -> dict[str, str]:
    """The defaults that the triggers know: those of columns in a unique key."""
    keyed = {c for key in table.keys for c in key.columns}
    return {c: default for c, default in table.defaults.items() if c in keyed}


def _texts(connection: sqlite3.Connection, logged: LoggedRelation) -> list[str]:
    """The stored text of the relation's five triggers; empty if they are not all there."""
    names = trigger_names(logged.number)
    found = dict(
        connection.execute(
            "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = ?"
            " OR type = 'table' AND name = ?",
            [logged.table, displaced_table(logged.number)],
        ).fetchall()
    )
    needed = {*names, displaced_table(logged.number)}
    return [found[n] for n in names] if needed <= found.keys() else []


def _are_first(connection: sqlite3.Connection, number: int) -> bool:
    """Whether the triggers are those that the guards were made after (`triggers.py`)."""
    behind = _behind(connection, number)
    others = behind.keys() - {"trigger"}
    return behind.get("trigger", False) and (not others or any(behind[k] for k in others))


def _behind(connection: sqlite3.Connection, number: int) -> dict[str, bool]:
    """Of each guard that is there: whether it comes after all of the relation's triggers."""
    found = connection.execute("SELECT type, name, rowid FROM sqlite_master").fetchall()
    order = {(kind, name): place for kind, name, place in found}
    last = max(order["trigger", name] for name in trigger_names(number))
    guards = [g for g in guard_names(number).items() if g in order]
    return {kind: last < order[kind, name] for kind, name in guards}


def _in_order(connection: sqlite3.Connection, table: str, columns: Sequence[str | None]) -> bool:
    """Log columns are given in the order of the table's, and added at the end of both."""
    order = {c: i for i, c in enumerate(_declared(connection, table))}
    found = [order.get(c, -1) for c in columns if c is not None]
    return -1 not in found and found == sorted(found)


def _keys(keys: Sequence[UniqueKey], columns: Sequence[str | None]) -> set[Any]:
    """Unique keys, named by the places of their columns where they have one."""
    places = {c: i for i, c in enumerate(columns) if c is not None}
    return {(tuple(places.get(c, c) for c in key.columns), key.collations) for key in keys}


def _renamed(logged: LoggedRelation, columns: Sequence[str | None]) -> dict[str, str]:
    """The noted defaults, under the present names of their columns."""
    now = dict(zip(logged.columns, columns, strict=False))
    return {now.get(c) or c: default for c, default in logged.defaults.items()}


def _declared(connection: sqlite3.Connection, table: str) -> dict[str, str]:
    """The table's columns in order, with their declared types."""
    return {r[1]: r[2] for r in connection.execute(f"PRAGMA table_xinfo({quoted(table)})")}
