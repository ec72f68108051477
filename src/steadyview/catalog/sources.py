"""Sources, the recorded schemas of their relations, and how far each one is.

Kept per source: the stream position from which capture resumes, the last seq, the last flush, and
`settled`: every transaction up to it was reflected by some snapshot. Never a URL, never a password.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, replace

from steadyview.catalog.builds import end_readers
from steadyview.catalog.database import Database
from steadyview.catalog.merging import merge_schema
from steadyview.changes import Loss, RelationName, RelationSchema
from steadyview.errors import ConfigError

_LOST = (
    "INSERT INTO lost_columns VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET seq ="
    " excluded.seq, reason = excluded.reason, mendable = excluded.mendable"
    " WHERE excluded.seq > seq"
)
_CONTACT = (
    "INSERT INTO contacts (source, heard, error, since, definite) VALUES (?, ?, ?, ?, ?)"
    " ON CONFLICT DO UPDATE SET heard = coalesce(excluded.heard, heard),"
    " error = excluded.error, definite = excluded.definite,"
    " since = CASE WHEN excluded.error IS error THEN since ELSE excluded.since END"
)


@dataclass(frozen=True)
class SourceState:
    """How far a source is. `admitted`: time of its last admitted flush, in microseconds.

    `position` is None until anything was captured; `flush` is the last one that exists.
    `heard`: when a run was last in contact with it; `error`: what a run found wrong with it, and
    `since` when, `definite` if it stays until somebody acts. Where nobody captures now, they are of
    the last run. `proof`: what must be found at the source again where capture goes on. `dated`:
    the latest commit time, by its own clock, of what is admitted of it.
    """

    name: str
    family: str
    position: str | None
    last_seq: int
    flush: int
    settled: int
    admitted: int | None
    heard: int | None = None
    error: str | None = None
    since: int | None = None
    definite: bool = False
    proof: str = ""
    dated: int = 0


class Sources:
    """The sources part of the catalog."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def register(self, name: str, family: str) -> None:
        """Make the source known. Idempotent; refuses a known name with another family."""
        with self._database.write() as connection:
            connection.execute(
                "INSERT INTO sources (name, family) VALUES (?, ?) ON CONFLICT DO NOTHING",
                (name, family),
            )
            sql = "SELECT family FROM sources WHERE name = ?"
            ((found,),) = connection.execute(sql, (name,)).fetchall()
        if found != family:
            raise ConfigError(
                f'source "{name}" is of type "{family}", but was of type "{found}"',
                hint=f"give it another name, or run: steadyview source remove {name}",
            )

    def states(self) -> list[SourceState]:
        """All sources, by name."""
        sql = (
            "SELECT name, family, position, last_seq, flush, settled, admitted, heard, error,"
            " since, coalesce(definite, 0), proof, dated"
            " FROM sources LEFT JOIN contacts ON source = name ORDER BY name"
        )
        rows = self._database.read(sql)
        return [replace(s, definite=bool(s.definite)) for s in (SourceState(*row) for row in rows)]

    def state(self, name: str) -> SourceState:
        """One source; KeyError if it is not registered."""
        return {s.name: s for s in self.states()}[name]

    def record_schema(self, current: RelationSchema) -> RelationSchema:
        """Merge the relation's present columns into what is recorded; the result, now recorded."""
        key = (current.name.source, json.dumps(current.name.path))
        with self._database.write() as connection:
            sql = "SELECT schema FROM relations WHERE source = ? AND path = ?"
            found = connection.execute(sql, key).fetchone()
            recorded = RelationSchema.from_json(json.loads(found[0])) if found else current
            merged = merge_schema(recorded, current)
            connection.execute(
                "INSERT OR REPLACE INTO relations VALUES (?, ?, ?)",
                (*key, json.dumps(merged.to_json())),
            )
        return merged

    def schemas(self, source: str) -> list[RelationSchema]:
        """The recorded relations of the source, by path."""
        sql = "SELECT schema FROM relations WHERE source = ? ORDER BY path"
        found = self._database.read(sql, (source,))
        return [RelationSchema.from_json(json.loads(text)) for (text,) in found]

    def advance(self, name: str, position: str, proof: str = "") -> None:
        """Record that nothing of interest was committed before `position`; no transaction came."""
        with self._database.write() as connection:
            sql = "UPDATE sources SET position = ?, proof = ? WHERE name = ?"
            connection.execute(sql, (position, proof, name))

    def renew_evidence(self, evidence: Mapping[RelationName, str]) -> None:
        """What the sources' own catalogs say now of these relations, found to be whole."""
        with self._database.write() as connection:
            for relation, text in evidence.items():
                store_evidence(connection, relation, text)

    def contact(
        self, name: str, now: int, *, heard: bool, error: str | None, definite: bool = False
    ) -> None:
        """Keep what is known of the source at the time `now`; an error keeps its first time."""
        with self._database.write() as connection:
            since = None if error is None else now
            values = (name, now if heard else None, error, since, definite)
            connection.execute(_CONTACT, values)

    def settle(self, name: str, seq: int) -> None:
        """Every transaction up to `seq` was reflected by some snapshot; never goes back."""
        with self._database.write() as connection:
            connection.execute(
                "UPDATE sources SET settled = max(settled, ?) WHERE name = ?", (seq, name)
            )

    def losses(self) -> list[Loss]:
        """What was lost, each column and each relation at its last loss."""
        sql = "SELECT source, path, name, seq, reason, mendable FROM lost_columns ORDER BY 1, 2, 3"
        return [
            Loss(
                RelationName(source, tuple(json.loads(path))), column or None, seq, why, bool(mend)
            )
            for source, path, column, seq, why, mend in self._database.read(sql)
        ]

    def forget_relation(self, relation: RelationName) -> None:
        """Remove all that is known of a relation, but its commits; no view reads it any more."""
        key = (relation.source, json.dumps(relation.path))
        with self._database.write() as connection:
            for table in ("relations", "lost_columns", "audits"):
                connection.execute(f"DELETE FROM {table} WHERE source = ? AND path = ?", key)
            end_readers(connection, [relation])

    def forget(self, name: str) -> None:
        """Remove the source; its commits keep their cn and time, under the name `<name>~<last cn>`.

        A source registered later under the same name starts at seq 1, mixed up with nothing.
        """
        with self._database.write() as connection:
            ((last,),) = connection.execute("SELECT last_cn FROM warehouse").fetchall()
            connection.execute("DELETE FROM sources WHERE name = ?", (name,))
            end_readers(connection, [name])
            connection.execute(
                "UPDATE runs SET source = ? WHERE source = ?", (f"{name}~{last}", name)
            )


def store_evidence(connection: sqlite3.Connection, relation: RelationName, text: str) -> None:
    """Remember what the source's catalog says of the relation."""
    connection.execute(
        "UPDATE relations SET schema = json_set(schema, '$.evidence', ?)"
        " WHERE source = ? AND path = ?",
        (text, relation.source, json.dumps(relation.path)),
    )


def store_lost(connection: sqlite3.Connection, lost: Loss) -> None:
    """Keep where a column (or, '', a relation) was last lost: younger states are not concerned."""
    values = (lost.relation.source, json.dumps(lost.relation.path), lost.column or "")
    connection.execute(_LOST, (*values, lost.seq, lost.reason, lost.mendable))
