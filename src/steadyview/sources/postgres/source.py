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
from steadyview.sources.postgres import evidence, publication, schema, slot
from steadyview.sources.postgres.connection import Address, Pool
from steadyview.sources.postgres.intake import Beginning, Intake
from steadyview.sources.postgres.monitor import PostgresMonitor
from steadyview.sources.postgres.names import Names
from steadyview.sources.postgres.position import Lsn
from steadyview.sources.postgres.proof import (
    MARKER,
    PastCommits,
    Proof,
    Server,
    check_database,
    log_too_short,
)
from steadyview.sources.postgres.replication import ReplicationStream
from steadyview.sources.postgres.snapshot import PostgresSnapshot, State, VisibleTransactions

_SETTINGS = {"type", "url", "tables", "slot", "publication", "audit"}
_TYPES = f"""SELECT coalesce({schema.SOURCE_TYPE.format(typmod="w.m")}, '?')
FROM unnest(%s::oid[], %s::int[]) WITH ORDINALITY AS w(o, m, n) LEFT JOIN pg_type t ON t.oid = w.o
LEFT JOIN pg_namespace tn ON tn.oid = t.typnamespace ORDER BY w.n"""
_MARK = """SELECT pg_logical_emit_message(
    true, %s, %s || ' after ' || pg_current_wal_insert_lsn()::text)::text"""
_TIME = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
_LIFE = """SELECT oid::text, pg_postmaster_start_time()::text FROM pg_database
WHERE datname = current_database()"""


class PostgresSource:
    """See `contract.Source`."""

    family = "postgresql"
    unseen = (
        "rows changed without the write-ahead log (pg_surgery, a damaged page),"
        " some written while another column had a column's name for a while"
    )

    def __init__(
        self, name: str, settings: Mapping[str, Any], owner: Owner, patience: int | None = None
    ) -> None:
        unknown = set(settings) - _SETTINGS
        if unknown:
            raise ConfigError(
                f'source "{name}" has the unknown setting "{min(unknown)}"',
                hint=f"known are: {', '.join(sorted(_SETTINGS))}",
            )
        if not settings.get("url"):
            raise ConfigError(f'source "{name}" needs the setting "url"')
        self.name = name
        self._warehouse = owner.warehouse
        self._names = Names.chosen(name, settings, owner)
        self._paths = list(dict.fromkeys(schema.path_of(t) for t in settings.get("tables", ())))
        self._pool = Pool(Address(name, str(settings["url"]), patience))

    def schemas(self) -> list[RelationSchema]:
        """The watched relations as they are now."""
        return [t.schema for t in self._tables()]

    def unsupported(self) -> dict[RelationName, Mapping[str, str]]:
        """Columns that cannot be watched, by relation and name, with the reason."""
        return {t.schema.name: t.unsupported for t in self._tables() if t.unsupported}

    def obstacles(self, relations: Sequence[RelationSchema]) -> list[SteadyviewError]:
        """Settings, identities and rights that are missing, and who else uses our names."""
        paths = [_path(r) for r in relations]
        names = self._names
        with self._pool.session() as connection:
            return [
                *self._certain_obstacles(connection, paths),
                *publication.change_obstacles(connection, self.name, names.publication, paths),
                *slot.creation_obstacles(connection, self.name, names.slot),
            ]

    def _certain_obstacles(
        self, connection: psycopg.Connection, paths: Sequence[tuple[str, str]]
    ) -> list[SteadyviewError]:
        """Those about which there is no doubt before `prepare` tries."""
        if found := slot.server_obstacles(connection, self.name):
            return found
        tables = schema.read_tables(connection, self.name, paths)
        names, asked = self._names, (connection, self.name)
        return [
            *names.obstacles(self.name),
            *_identity_obstacles(self.name, tables),
            *schema.reading_obstacles(*asked, paths),
            *slot.slot_obstacles(*asked, names.slot, ours=names.ours),
            *publication.publication_obstacles(*asked, names.publication, names.slot, paths),
        ]

    def prepare(self, relations: Sequence[RelationSchema]) -> list[str]:
        """Publication and slot; refuses tables without full replica identity."""
        paths = [_path(r) for r in relations]
        new = [_path(r) for r in relations if not evidence.known_member(r)]
        names = self._names
        with self._pool.session() as connection:
            for obstacle in self._certain_obstacles(connection, paths):
                raise obstacle
            # The publication first: the slot's stream begins when it is made.
            done = publication.prepare_publication(
                connection, self.name, names.publication, self._warehouse, paths
            )
            publication.wait_for_members(connection, self.name, names.slot, new)
            done += slot.prepare_slot(connection, self.name, names.slot)
        self._names = replace(names, ours=True)
        return done

    def remove(self) -> list[str]:
        """Drop slot and publication, of the names that capture went by."""
        names = self._names.remembered
        with self._pool.session() as connection:
            done = slot.remove_slot(connection, self.name, names.slot) if names.ours else []
            return done + publication.remove_publication(
                connection, self.name, names.publication, self._warehouse, claimed=names.unsigned
            )

    def holdings(self) -> list[str]:
        """The slot, with the log that it holds back, and the publication if it is ours."""
        names = self._names.remembered
        with self._pool.session() as connection:
            held = slot.read_slot(connection, names.slot) if names.ours else None
            made = publication.read_publication(connection, names.publication)
        found = [f'replication slot "{held.name}", which holds back {held.held}'] if held else []
        if made and (names.unsigned or self._warehouse in made.warehouses):
            found.append(f'publication "{made.name}"')
        return found

    def position(self, text: str) -> Lsn:
        """Read back what `str(position)` wrote."""
        return Lsn.parse(text)

    def start(self) -> Lsn:
        """The present: what the slot still keeps is not needed."""
        name = self._names.slot
        with self._pool.session() as connection:
            slot.advance(connection, name)
            found = slot.read_slot(connection, name)
        if found is None or found.confirmed is None:
            raise SourceRefused(
                f'source "{self.name}" has no replication slot "{name}"',
                hint="run: steadyview run",
            )
        return found.confirmed

    def time(self) -> int:
        """What the server's clock shows."""
        with self._pool.session() as connection:
            return _time(connection)

    def monitor(
        self,
        relations: Sequence[RelationSchema],
        position: StreamPosition,
        next_seq: int,
        proof: str = "",
    ) -> PostgresMonitor:
        """The stream from `position` on, once what came before it has been found again."""
        if not isinstance(position, Lsn):
            raise TypeError(f"not a PostgreSQL position: {position}")
        known = Proof.parse(proof)
        stream = ReplicationStream(self._pool.address)
        try:
            if known:
                check_database(self.name, known.server, stream.server)
            since = known.history.since if known else position
            with self._pool.session() as connection:
                self._check_slot(connection, since, position)
            stream.start(self._names.slot, self._names.publication, since)
            captured = known.history if known else None
            beginning = Beginning(self.name, self._warehouse, position, next_seq, captured)
            return PostgresMonitor(
                stream,
                Intake(relations, beginning, self._describe),
                known or self._first_proof(stream.server, position),
                evidence.Witness(relations, lambda: self._present(relations)),
                self._timed_mark,
            )
        except BaseException:
            stream.close()
            raise

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
        """Looks in a new session: an old one might be to a server that is no longer there."""
        known = Proof.parse(proof)
        connection = self._pool.address.connect()
        try:
            with self._pool.address.errors():
                if known:
                    self._check_life(connection, known.server)
                names = [_path(r) for r in relations]
                found = evidence.present(connection, self._names.publication, names)
        finally:
            connection.close()
        return evidence.examined(relations, found)

    def close(self) -> None:
        """Close idle sessions."""
        self._pool.close()

    def _tables(self) -> list[schema.FoundTable]:
        if not self._paths:
            raise ConfigError(f'source "{self.name}" needs the setting "tables"')
        with self._pool.session() as connection:
            tables = schema.read_tables(connection, self.name, self._paths)
            found = evidence.present(connection, self._names.publication, self._paths)
        return [replace(t, schema=_with_evidence(t.schema, found)) for t in tables]

    def _first_proof(self, server: Server, position: Lsn) -> Proof:
        names = self._names
        return Proof(names.slot, names.publication, server, PastCommits(position))

    def _mark(self) -> Lsn:
        """Send a marker through the stream; its place in the log."""
        return self._timed_mark()[1]

    def _timed_mark(self) -> tuple[int, Lsn]:
        """The same; what the server's clock showed before it was sent."""
        with self._pool.session() as connection:
            time = _time(connection)
            row = connection.execute(_MARK, [MARKER, self._warehouse]).fetchone()
        return time, Lsn.parse(row[0] if row else "0/0")

    def _present(
        self, relations: Sequence[RelationSchema]
    ) -> dict[tuple[str, ...], evidence.Present]:
        with self._pool.session() as connection:
            names = [_path(r) for r in relations]
            return evidence.present(connection, self._names.publication, names)

    def _freeze(self, lead: psycopg.Connection) -> State:
        readable = self._begin_locked(lead)
        row = lead.execute("SELECT pg_export_snapshot(), pg_current_snapshot()::text").fetchone()
        export, visible = row or ("", "0:0:")
        found = evidence.present(lead, self._names.publication, readable)
        return State(VisibleTransactions.parse(visible), self._mark(), export, found)

    def _begin_locked(self, lead: psycopg.Connection) -> list[tuple[str, str]]:
        """Begin, lock every watched table that exists, and only then let the snapshot be taken."""
        while True:
            found = [t.path for t in schema.existing(lead, self._paths) if t.kind == "r"]
            lead.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            if not found:
                return found
            tables = sql.SQL(", ONLY ").join(sql.Identifier(*p) for p in found)
            try:
                lead.execute(sql.SQL("LOCK TABLE ONLY {} IN ACCESS SHARE MODE").format(tables))
            except psycopg.errors.UndefinedTable:
                # Dropped since it was looked up: look again.
                lead.execute("ROLLBACK")
                continue
            return found

    def _describe(self, types: Sequence[tuple[int, int]]) -> list[str]:
        with self._pool.session() as connection:
            rows = connection.execute(
                _TYPES, [[t[0] for t in types], [t[1] for t in types]]
            ).fetchall()
        return [r[0] for r in rows]

    def _check_slot(self, connection: psycopg.Connection, since: Lsn, position: Lsn) -> None:
        found = slot.unread_slot(connection, self._names.slot)
        if found is None or found.lost or found.confirmed is None:
            raise self._changes_lost(
                position, "it does not exist" if found is None else "it was invalidated"
            )
        if not found.confirmed <= since:
            raise self._changes_lost(position, f"it now starts at {found.confirmed}")
        row = connection.execute("SELECT pg_current_wal_flush_lsn()::text").fetchone()
        if row and not position <= Lsn.parse(row[0]):
            raise log_too_short(self.name, position, row[0])
        if found.active:
            raise SourceUnavailable(
                f'replication slot "{found.name}" of source "{self.name}" is being read',
                hint="stop the other process, or wait until the server has noticed its end",
            )

    def _check_life(self, connection: psycopg.Connection, proved: Server) -> None:
        """Whether this is the life of the server that the monitor has proved."""
        database, started = connection.execute(_LIFE).fetchone() or ("", "")
        if (database, started) == (proved.database, proved.started):
            return
        row = connection.execute("SELECT system_identifier::text FROM pg_control_system()")
        (system,) = row.fetchone() or ("",)
        check_database(self.name, proved, Server(system, database, started))
        raise SourceUnavailable(
            f'source "{self.name}" was restarted, and is not proved to have the same past yet',
            detail=f"expected the server started at {proved.started}, found {started}",
            source=self.name,
        )

    def _changes_lost(self, position: Lsn, what: str) -> ChangesLost:
        return ChangesLost(
            f'source "{self.name}" no longer keeps the changes after position {position}',
            detail=f'slot "{self._names.slot}": {what}',
            hint=f"run: steadyview source resnapshot {self.name}",
            source=self.name,
        )


def _time(connection: psycopg.Connection) -> int:
    row = connection.execute(_TIME).fetchone()
    return int(row[0]) if row else 0


def _with_evidence(
    relation: RelationSchema, found: Mapping[tuple[str, ...], evidence.Present]
) -> RelationSchema:
    """As long as its changes are not in the stream there is nothing to be compared with."""
    now = found.get(relation.name.path)
    if now is None or now.evidence.membership is None:
        return relation
    return replace(relation, evidence=str(now.evidence))


def _path(relation: RelationSchema) -> tuple[str, str]:
    return relation.name.path[0], relation.name.path[1]


def _identity_obstacles(source: str, tables: Sequence[schema.FoundTable]) -> list[SteadyviewError]:
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
    names = Names.chosen(name, {}, owner).remembered
    return [
        f"a replication slot: SELECT pg_drop_replication_slot('{names.slot}');",
        f'perhaps a publication: DROP PUBLICATION IF EXISTS "{names.publication}";',
    ]
