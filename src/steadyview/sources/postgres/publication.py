"""The publication of one source: which tables' changes are in the stream.

Invariant that `prepare_publication` keeps: a change to a watched table that commits after it
returned is published. When a table joins a publication whose slot exists already, every transaction
open at that moment is waited for: its earlier rows were not published, its commit would be.

A publication that we make has a comment with the warehouses that use it. Only such a one is altered
and, by the last of them, dropped; any other is its owner's, who is told what to run.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import psycopg
from psycopg import sql

from steadyview.errors import ChangesLost, SourceRefused, SteadyviewError
from steadyview.sources.postgres.open_transactions import wait_for_open_transactions
from steadyview.sources.postgres.slot import read_slot

_GENERATED_PUBLISHED_FROM = 180000
_COMMENT = "steadyview"
_PUBLICATION = """
SELECT p.oid::text, p.xmin::text,
       pubinsert AND pubupdate AND pubdelete AND pubtruncate AND NOT pubviaroot, puballtables,
       to_jsonb(p) ->> 'pubgencols' = 's', obj_description(p.oid, 'pg_publication'),
       (SELECT json_agg(json_build_array(n.nspname, c.relname, r.oid::text, r.xmin::text,
            to_jsonb(r) ->> 'prqual' IS NULL AND to_jsonb(r) ->> 'prattrs' IS NULL))
        FROM pg_publication_rel r JOIN pg_class c ON c.oid = r.prrelid
        JOIN pg_namespace n ON n.oid = c.relnamespace WHERE r.prpubid = p.oid)
FROM pg_publication p WHERE pubname = %s"""
# Who adds a table must own it and the publication; who makes one may create in the database.
_MAY_CHANGE = """
SELECT coalesce((SELECT pg_has_role(pubowner, 'USAGE') FROM pg_publication WHERE pubname = %s),
                has_database_privilege(current_database(), 'CREATE'))
       AND NOT EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
                       JOIN unnest(%s::text[], %s::text[]) AS w(s, t)
                       ON n.nspname = w.s AND c.relname = w.t
                       WHERE NOT pg_has_role(c.relowner, 'USAGE'))"""
_GENERATED = """
SELECT EXISTS (SELECT FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
               JOIN pg_namespace n ON n.oid = c.relnamespace
               JOIN unnest(%s::text[], %s::text[]) AS w(s, t)
               ON n.nspname = w.s AND c.relname = w.t
               WHERE a.attgenerated = 's' AND NOT a.attisdropped)"""

Path = tuple[str, str]


@dataclass(frozen=True)
class Member:
    """A table in a publication: `oid` and `version` are its row's; not `whole`: filtered."""

    oid: str
    version: str
    whole: bool


@dataclass(frozen=True)
class Publication:
    """A publication as it is now. `whole`: it leaves no kind of change out, nor renames tables.

    `version` is the transaction that last altered it; adding a table does not.
    """

    name: str
    oid: str
    version: str
    whole: bool
    everything: bool
    generated: bool
    comment: str
    members: Mapping[Path, Member]

    @property
    def warehouses(self) -> list[str]:
        """Those of ours that use it; empty if it was not made by one of ours."""
        try:
            record = json.loads(self.comment or "{}")
        except ValueError:
            return []
        return list(record.get(_COMMENT, [])) if isinstance(record, dict) else []

    def defect(self, path: Path) -> str | None:
        """Why changes of a table are not all in the stream."""
        member = self.members.get(path)
        if member is None:
            return f'it is not in publication "{self.name}"'
        if not (self.whole and member.whole):
            return f'publication "{self.name}" leaves some of its changes out'
        return None

    def mended(self, paths: Sequence[Path]) -> str:
        """The statements that put an end to these tables' defects; empty if there are none."""
        name = sql.Identifier(self.name)
        filtered = [p for p in paths if p in self.members and not self.members[p].whole]
        missing = [p for p in paths if p not in self.members]
        statements = []
        if not self.whole:
            text = "ALTER PUBLICATION {} SET (publish = 'insert, update, delete, truncate',"
            statements.append(sql.SQL(text + " publish_via_partition_root = false)").format(name))
        if filtered:
            dropped = sql.SQL(", ").join(sql.Identifier(*p) for p in filtered)
            statements.append(sql.SQL("ALTER PUBLICATION {} DROP TABLE {}").format(name, dropped))
        if filtered or missing:
            statements.append(_widen_publication(self.name, [*filtered, *missing]))
        return "; ".join(s.as_string(None) for s in statements)


def read_publication(connection: psycopg.Connection, name: str) -> Publication | None:
    """The publication of that name."""
    row = connection.execute(_PUBLICATION, [name]).fetchone()
    if row is None:
        return None
    oid, version, whole, everything, generated, comment, listed = row
    members = {(m[0], m[1]): Member(m[2], m[3], m[4]) for m in listed or []}
    # Before 18 there is no such setting, and generated columns are not watched.
    kept = generated is not False
    return Publication(name, oid, version, whole, everything, kept, comment or "", members)


def publication_obstacles(
    connection: psycopg.Connection, source: str, name: str, slot: str, paths: Sequence[Path]
) -> list[SteadyviewError]:
    """A publication that leaves changes out, or was lost while the slot stands."""
    state = read_publication(connection, name)
    if state is None:
        return _orphaned_slot(connection, source, name, slot)
    found: list[SteadyviewError] = [*_partial(source, state, paths)]
    if not state.generated and _with_generated(connection, paths):
        found.append(_without_generated(connection, source, name))
    return found


def change_obstacles(
    connection: psycopg.Connection, source: str, name: str, paths: Sequence[Path]
) -> list[SteadyviewError]:
    """Why making or widening the publication will probably fail, where that is to be done."""
    state = read_publication(connection, name)
    missing = [p for p in paths if state is None or p not in state.members]
    question = [name, [p[0] for p in missing], [p[1] for p in missing]]
    (may,) = connection.execute(_MAY_CHANGE, question).fetchone() or (True,)
    if not missing or (may and (state is None or state.warehouses)):
        return []
    if state is not None:
        return [_not_ours(source, state, paths)]
    return [_may_not_change(connection, source, _create_publication(connection, name, paths))]


def prepare_publication(
    connection: psycopg.Connection, source: str, name: str, warehouse: str, paths: Sequence[Path]
) -> list[str]:
    """Create the publication, or add the tables it lacks."""
    state = read_publication(connection, name)
    if state is None:
        _run(connection, source, _create_publication(connection, name, paths))
        _sign(connection, name, [warehouse])
        return [f'created publication "{name}"']
    missing = [p for p in paths if p not in state.members]
    if missing and not state.warehouses:
        raise _not_ours(source, state, paths)
    if missing:
        _run(connection, source, _widen_publication(name, missing))
    if state.warehouses and warehouse not in state.warehouses:
        _sign(connection, name, [*state.warehouses, warehouse])
    return [f'added "{".".join(p)}" to publication "{name}"' for p in missing]


def wait_for_members(
    connection: psycopg.Connection, source: str, slot: str, new: Sequence[Path]
) -> None:
    """Until every transaction has ended that may have written before the new ones were published.

    Nobody has to be waited for as long as there is no slot.
    """
    if new and read_slot(connection, slot) is not None:
        wait_for_open_transactions(connection, source)


def remove_publication(
    connection: psycopg.Connection, source: str, name: str, warehouse: str, *, claimed: bool
) -> list[str]:
    """Drop the publication, or leave it to the other warehouses that use it.

    One that we did not make stays, unless it is `claimed`: made before we signed publications.
    """
    state = read_publication(connection, name)
    if state is None or (warehouse not in state.warehouses and not claimed):
        return []
    others = [w for w in state.warehouses if w != warehouse]
    if others:
        _sign(connection, name, others)
        return [f'left publication "{name}" to another warehouse']
    _run(connection, source, sql.SQL("DROP PUBLICATION {}").format(sql.Identifier(name)))
    return [f'dropped publication "{name}"']


def _sign(connection: psycopg.Connection, name: str, warehouses: Sequence[str]) -> None:
    comment = json.dumps({_COMMENT: list(warehouses)})
    statement = sql.SQL("COMMENT ON PUBLICATION {} IS {}").format(
        sql.Identifier(name), sql.Literal(comment)
    )
    try:
        connection.execute(statement)
    except psycopg.errors.InsufficientPrivilege:
        # Another warehouse's role owns it, which will not drop it by our leave anyway.
        return


def _orphaned_slot(
    connection: psycopg.Connection, source: str, name: str, slot: str
) -> list[SteadyviewError]:
    if read_slot(connection, slot) is None:
        return []
    return [
        ChangesLost(
            f'source "{source}" has lost its publication "{name}" while its slot stands',
            detail="changes made since then are not in the stream",
            hint=f"run: steadyview source remove {source}, then run again",
        )
    ]


def _partial(source: str, state: Publication, paths: Sequence[Path]) -> list[SourceRefused]:
    members = [p for p in paths if p in state.members]
    fact = f'publication "{state.name}" at source "{source}" leaves some changes out'
    if state.everything:
        detail = "it is FOR ALL TABLES: what is in it changes without a trace"
        hint = f'name another one in steadyview.toml: [sources.{source}] publication = "..."'
        return [SourceRefused(fact, detail=detail, hint=hint)]
    if not any(state.defect(p) for p in members) and state.whole:
        return []
    detail = (
        "it has a row filter, a column list, does not publish every kind of change,"
        " or publishes leaves under their root's name"
    )
    return [SourceRefused(fact, detail=detail, hint=f"run as its owner: {state.mended(members)};")]


def _with_generated(connection: psycopg.Connection, paths: Sequence[Path]) -> bool:
    question = [[p[0] for p in paths], [p[1] for p in paths]]
    row = connection.execute(_GENERATED, question).fetchone()
    return bool(row and row[0])


def _without_generated(connection: psycopg.Connection, source: str, name: str) -> SourceRefused:
    statement = sql.SQL("ALTER PUBLICATION {} SET (publish_generated_columns = stored);")
    return SourceRefused(
        f'publication "{name}" at source "{source}" leaves generated columns out',
        detail="with full identity, PostgreSQL then rejects updates of their tables",
        hint=f"run as its owner: {statement.format(sql.Identifier(name)).as_string(connection)}",
    )


def _create_publication(
    connection: psycopg.Connection, name: str, paths: Sequence[Path]
) -> sql.Composed:
    # From 18 on, a table with stored generated columns and full identity rejects updates otherwise.
    options = (
        sql.SQL(" WITH (publish_generated_columns = stored)")
        if connection.info.server_version >= _GENERATED_PUBLISHED_FROM
        else sql.SQL("")
    )
    return sql.SQL("CREATE PUBLICATION {} FOR TABLE ONLY {}{}").format(
        sql.Identifier(name), _tables(paths), options
    )


def _widen_publication(name: str, missing: Sequence[Path]) -> sql.Composed:
    added = sql.SQL("ALTER PUBLICATION {} ADD TABLE ONLY {}")
    return added.format(sql.Identifier(name), _tables(missing))


def _tables(paths: Sequence[Path]) -> sql.Composed:
    return sql.SQL(", ONLY ").join(sql.Identifier(*p) for p in paths)


def _run(connection: psycopg.Connection, source: str, statement: sql.Composed) -> None:
    try:
        connection.execute(statement)
    except psycopg.errors.InsufficientPrivilege as error:
        raise _may_not_change(connection, source, statement, str(error).strip()) from None


def _not_ours(source: str, state: Publication, paths: Sequence[Path]) -> SourceRefused:
    missing = ", ".join(f'"{".".join(p)}"' for p in paths if p not in state.members)
    return SourceRefused(
        f'publication "{state.name}" at source "{source}" lacks {missing}',
        hint=f"run as its owner: {state.mended(paths)};",
    )


def _may_not_change(
    connection: psycopg.Connection,
    source: str,
    statement: sql.Composed,
    detail: str | None = None,
) -> SourceRefused:
    return SourceRefused(
        f'source "{source}" lacks the right to change its publication',
        detail=detail,
        hint=f"run as the tables' owner: {statement.as_string(connection)};",
    )
