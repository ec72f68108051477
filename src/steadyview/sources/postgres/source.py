"""A PostgreSQL database as a source: changes by logical decoding, answers by exported snapshots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import psycopg
from psycopg import sql

from steadyview.changes import RelationName, RelationSchema, StreamPosition
from steadyview.errors import (
    ChangesLost,
    ConfigError,
    SourceRefused,
    SourceUnavailable,
    SteadyviewError,
)
from steadyview.sources.contract import Examined, Owner
from steadyview.sources.postgres import publication, schema, slot
from steadyview.sources.postgres.connection import Address, Pool
from steadyview.sources.postgres.intake import MARKER, Intake
from steadyview.sources.postgres.monitor import PostgresMonitor
from steadyview.sources.postgres.position import Lsn
from steadyview.sources.postgres.replication import ReplicationStream
from steadyview.sources.postgres.snapshot import PostgresSnapshot, State, Visible

_SETTINGS = {"type", "url", "tables", "slot"}
_TYPES = f"""SELECT coalesce({schema.SOURCE_TYPE.format(typmod="w.m")}, '?')
FROM unnest(%s::oid[], %s::int[]) WITH ORDINALITY AS w(o, m, n) LEFT JOIN pg_type t ON t.oid = w.o
LEFT JOIN pg_namespace tn ON tn.oid = t.typnamespace ORDER BY w.n"""


class PostgresSource:
    """See `contract.Source`."""

    family = "postgresql"

    def __init__(self, name: str, settings: Mapping[str, Any], owner: Owner) -> None:
        unknown = set(settings) - _SETTINGS
        if unknown:
            raise ConfigError(
                f'source "{name}" has the unknown setting "{min(unknown)}"',
                hint=f"known are: {', '.join(sorted(_SETTINGS))}",
            )
        if not settings.get("url") or not settings.get("tables"):
            raise ConfigError(f'source "{name}" needs the settings "url" and "tables"')
        self.name = name
        self._owner = owner
        self.slot = str(settings.get("slot") or slot.predictable_name(name))
        self._paths = list(dict.fromkeys(schema.path_of(t) for t in settings["tables"]))
        self._pool = Pool(Address(name, str(settings["url"])))
        self._broken: dict[RelationName, str] = {}
        self._known: dict[tuple[str, str], str] = {}

    def schemas(self) -> list[RelationSchema]:
        """The watched relations as they are now."""
        return [t.schema for t in self._tables()]

    def unsupported(self) -> dict[RelationName, Mapping[str, str]]:
        """Columns that cannot be watched, by relation and name, with the reason."""
        return {t.schema.name: t.unsupported for t in self._tables() if t.unsupported}

    def obstacles(self, relations: Sequence[RelationSchema]) -> list[SteadyviewError]:
        """Settings, identities and rights that are missing, and who else uses our names."""
        paths = [_path(r) for r in relations]
        with self._pool.session() as connection:
            asked = (connection, self.name, self.slot)
            return [
                *self._certain_obstacles(connection, paths),
                *publication.change_obstacles(*asked, paths),
                *slot.creation_obstacles(*asked),
            ]

    def _certain_obstacles(
        self, connection: psycopg.Connection, paths: Sequence[tuple[str, str]]
    ) -> list[SteadyviewError]:
        """Those about which there is no doubt before `prepare` tries."""
        if found := slot.server_obstacles(connection, self.name):
            return found
        tables = schema.read_tables(connection, self.name, paths)
        asked = (connection, self.name, self.slot)
        return [
            *_identity_obstacles(self.name, tables),
            *schema.reading_obstacles(connection, self.name, paths),
            *slot.slot_obstacles(*asked),
            *publication.publication_obstacles(*asked, paths),
        ]

    def prepare(self, relations: Sequence[RelationSchema]) -> list[str]:
        """Publication and slot; refuses tables without full replica identity."""
        paths = [_path(r) for r in relations]
        with self._pool.session() as connection:
            for obstacle in self._certain_obstacles(connection, paths):
                raise obstacle
            # The publication first: the slot's stream begins when it is made.
            done = publication.prepare_publication(
                connection, self.name, self.slot, _memberships(relations)
            )
            return done + slot.prepare_slot(connection, self.name, self.slot)

    def remove(self) -> list[str]:
        """Drop slot and publication."""
        self._broken.clear()
        self._known.clear()
        with self._pool.session() as connection:
            done = slot.remove_slot(connection, self.name, self.slot)
            return done + publication.remove_publication(connection, self.name, self.slot)

    def position(self, text: str) -> Lsn:
        """Read back what `str(position)` wrote."""
        return Lsn.parse(text)

    def start(self) -> Lsn:
        """The slot's own position."""
        with self._pool.session() as connection:
            found = slot.read_slot(connection, self.slot)
        if found is None or found.confirmed is None:
            raise SourceRefused(
                f'source "{self.name}" has no replication slot "{self.slot}"',
                hint="run: steadyview run",
            )
        return found.confirmed

    def monitor(
        self,
        relations: Sequence[RelationSchema],
        position: StreamPosition,
        next_seq: int,
        proof: str = "",
    ) -> PostgresMonitor:
        """The stream from `position` on."""
        if not isinstance(position, Lsn):
            raise TypeError(f"not a PostgreSQL position: {position}")
        with self._pool.session() as connection:
            self._check_slot(connection, position)
            self._known.update(_memberships(relations))
            self._note_broken(connection, _memberships(relations))
        stream = ReplicationStream(self._pool.address, self.slot, self.slot, position)
        intake = Intake(relations, position, next_seq, self._describe, self._places)
        return PostgresMonitor(stream, intake, lambda: self._broken_of(relations))

    def snapshot(self) -> PostgresSnapshot:
        """Freeze the present state; sends a marker through the stream."""
        address = self._pool.address
        lead = self._pool.take()
        try:
            with address.errors():
                return PostgresSnapshot(self._pool, lead, self._freeze(lead))
        except BaseException:
            self._pool.give_back(lead)
            raise

    def examine(self, relations: Sequence[RelationSchema], proof: str) -> Examined:
        """Not looked at yet."""
        return Examined((), {})

    def close(self) -> None:
        """Close idle sessions."""
        self._pool.close()

    def _tables(self) -> list[schema.Table]:
        with self._pool.session() as connection:
            tables = schema.read_tables(connection, self.name, self._paths)
            members = publication.memberships(connection, self.slot)
        return [
            replace(t, schema=replace(t.schema, membership=members.get(t.schema.name.path, "")))
            for t in tables
        ]

    def _freeze(self, lead: psycopg.Connection) -> State:
        present = self._begin_locked(lead)
        row = lead.execute("SELECT pg_export_snapshot(), pg_current_snapshot()::text").fetchone()
        export, visible = row or ("", "0:0:")
        with self._pool.session() as other:
            marked = other.execute(
                "SELECT pg_logical_emit_message(true, %s, '')::text", [MARKER]
            ).fetchone()
        self._note_broken(lead, {p: self._known.get(p, "") for p in self._paths})
        columns = schema.present_columns(lead, list(present))
        return State(
            Visible.parse(visible),
            Lsn.parse(marked[0] if marked else "0/0"),
            export,
            {RelationName(self.name, path): columns.get(oid, {}) for oid, path in present.items()},
            dict(self._broken),
            publication.memberships(lead, self.slot),
        )

    def _begin_locked(self, lead: psycopg.Connection) -> dict[int, tuple[str, str]]:
        """Begin, lock every watched table that exists, and only then let the snapshot be taken."""
        while True:
            found = {t.oid: t.path for t in schema.existing(lead, self._paths) if t.kind == "r"}
            lead.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            if not found:
                return found
            tables = sql.SQL(", ONLY ").join(sql.Identifier(*p) for p in found.values())
            try:
                lead.execute(sql.SQL("LOCK TABLE ONLY {} IN ACCESS SHARE MODE").format(tables))
            except psycopg.errors.UndefinedTable:
                # Dropped since it was looked up: look again.
                lead.execute("ROLLBACK")
                continue
            return found

    def _note_broken(
        self, connection: psycopg.Connection, known: Mapping[tuple[str, str], str]
    ) -> None:
        for path, reason in publication.broken_memberships(connection, self.slot, known).items():
            self._broken.setdefault(RelationName(self.name, path), reason)

    def _broken_of(self, relations: Sequence[RelationSchema]) -> dict[RelationSchema, str]:
        if not self._broken:
            return {}
        return {
            r: f'"{r.name}": {self._broken[r.name]}' for r in relations if r.name in self._broken
        }

    def _describe(self, types: Sequence[tuple[int, int]]) -> list[str]:
        with self._pool.session() as connection:
            rows = connection.execute(
                _TYPES, [[t[0] for t in types], [t[1] for t in types]]
            ).fetchall()
        return [r[0] for r in rows]

    def _places(self, oid: int) -> dict[str, int]:
        with self._pool.session() as connection:
            columns = schema.present_columns(connection, [oid]).get(oid, {})
        return {name: column.place for name, column in columns.items()}

    def _check_slot(self, connection: psycopg.Connection, position: Lsn) -> None:
        found = slot.unread_slot(connection, self.slot)
        if found is None or found.lost or found.confirmed is None:
            raise self._changes_lost(
                position, "it does not exist" if found is None else "it was invalidated"
            )
        if not found.confirmed <= position:
            raise self._changes_lost(position, f"it now starts at {found.confirmed}")
        row = connection.execute("SELECT pg_current_wal_flush_lsn()::text").fetchone()
        if row and not position <= Lsn.parse(row[0]):
            raise self._changes_lost(position, f"the server's log ends at {row[0]}, before it")
        if found.active:
            raise SourceUnavailable(
                f'replication slot "{self.slot}" of source "{self.name}" is being read',
                hint="stop the other process, or wait until the server has noticed its end",
            )

    def _changes_lost(self, position: Lsn, what: str) -> ChangesLost:
        return ChangesLost(
            f'source "{self.name}" no longer keeps the changes after position {position}',
            detail=f'slot "{self.slot}": {what}',
            hint=f"run: steadyview source remove {self.name}, then run again",
        )


def _memberships(relations: Sequence[RelationSchema]) -> dict[tuple[str, str], str]:
    return {_path(r): r.membership for r in relations}


def _path(relation: RelationSchema) -> tuple[str, str]:
    return relation.name.path[0], relation.name.path[1]


def _identity_obstacles(source: str, tables: Sequence[schema.Table]) -> list[SteadyviewError]:
    """Without full identity an update does not tell the row it replaced."""
    lacking = [t.schema.name.path for t in tables if not t.full_identity]
    if not lacking:
        return []
    names = ", ".join(f'"{".".join(p)}"' for p in lacking)
    alters = [
        sql.SQL("ALTER TABLE {} REPLICA IDENTITY FULL;").format(sql.Identifier(*p)).as_string(None)
        for p in lacking
    ]
    fact = f'source "{source}": {names} do not log whole old rows'
    return [SourceRefused(fact, hint="run: " + " ".join(alters))]


def left_behind(name: str, owner: Owner) -> list[str]:
    """What the owner set up, as statements that remove it."""
    slot_name = slot.predictable_name(name)
    return [
        f"a replication slot: SELECT pg_drop_replication_slot('{slot_name}');",
        f'perhaps a publication: DROP PUBLICATION IF EXISTS "{slot_name}";',
    ]
