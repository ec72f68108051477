"""The publication of one source: which tables' changes are in the stream.

Invariant that `prepare_publication` keeps: a change to a watched table that commits after it
returned is published. When a table joins a publication whose slot exists already, every transaction
open at that moment is waited for: its earlier rows were not published, its commit would be.

A table's membership has an oid. A table that was dropped and made anew, or taken out of the
publication and put back, has another one: its changes in between are not in the stream, and
`broken_memberships` says so until the source is removed. The oid is remembered with the relation
(`RelationSchema.membership`) and, where we may write it, in the publication's comment, which also
serves a reader that was not told.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import psycopg
from psycopg import sql

from steadyview.errors import ChangesLost, SourceRefused, SourceUnavailable, SteadyviewError
from steadyview.sources.postgres.slot import read_slot

_GENERATED_PUBLISHED_FROM = 180000
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
LEFT = "it left the publication for a while (was it dropped and made anew?)"
"""The reason for a relation whose membership is another one than remembered."""
_WAIT_STEP = 0.05
_WAIT_STEPS = 1200


def publication_obstacles(
    connection: psycopg.Connection, source: str, name: str, paths: Sequence[tuple[str, str]]
) -> list[SteadyviewError]:
    """A publication that leaves changes out, or was lost while the slot stands."""
    state = _publication(connection, name)
    if state is None:
        return _orphaned_slot(connection, source, name)
    found: list[SteadyviewError] = [] if state.whole else [_partial(source, name)]
    if not state.generated and _with_generated(connection, paths):
        found.append(_without_generated(connection, source, name))
    return found


def memberships(connection: psycopg.Connection, name: str) -> dict[tuple[str, ...], str]:
    """The members of the publication: path to membership."""
    state = _publication(connection, name)
    return {path: str(oid) for path, oid in state.members.items()} if state else {}


def change_obstacles(
    connection: psycopg.Connection, source: str, name: str, paths: Sequence[tuple[str, str]]
) -> list[SteadyviewError]:
    """Why making or widening the publication will probably fail, where that is to be done."""
    state = _publication(connection, name)
    missing = [p for p in paths if state is None or p not in state.members]
    question = [name, [p[0] for p in missing], [p[1] for p in missing]]
    (may,) = connection.execute(_MAY_CHANGE, question).fetchone() or (True,)
    if not missing or may:
        return []
    if state is None:
        return [_may_not_change(connection, source, _create_publication(connection, name, paths))]
    return [_may_not_change(connection, source, _widen_publication(name, missing))]


def prepare_publication(
    connection: psycopg.Connection, source: str, name: str, known: Mapping[tuple[str, str], str]
) -> list[str]:
    """Create the publication, or add the tables it lacks.

    `known`: the tables, each with its membership if that is remembered. Nobody has to be waited for
    if all of them are, or as long as there is no slot.
    """
    paths = list(known)
    state = _publication(connection, name)
    if state is None:
        _run(connection, source, _create_publication(connection, name, paths))
        done = [f'created publication "{name}"']
    else:
        done = _add_missing(connection, source, name, [p for p in paths if p not in state.members])
    new = [p for p in paths if state and _key(p) not in state.recorded and not known[p]]
    if new and read_slot(connection, name) is not None:
        _wait_for_open_transactions(connection, source)
    _record_memberships(connection, name)
    return done


def _add_missing(
    connection: psycopg.Connection, source: str, name: str, missing: Sequence[tuple[str, str]]
) -> list[str]:
    if missing:
        _run(connection, source, _widen_publication(name, missing))
    return [f'added "{".".join(p)}" to publication "{name}"' for p in missing]


def _orphaned_slot(connection: psycopg.Connection, source: str, name: str) -> list[SteadyviewError]:
    if read_slot(connection, name) is None:
        return []
    return [
        ChangesLost(
            f'source "{source}" has lost its publication "{name}" while its slot stands',
            detail="changes made since then are not in the stream",
            hint=f"run: steadyview source remove {source}, then run again",
        )
    ]


def remove_publication(connection: psycopg.Connection, source: str, name: str) -> list[str]:
    """Drop the publication; nothing happens where there is none."""
    if _publication(connection, name) is None:
        return []
    _run(connection, source, sql.SQL("DROP PUBLICATION {}").format(sql.Identifier(name)))
    return [f'dropped publication "{name}"']


def broken_memberships(
    connection: psycopg.Connection, name: str, known: Mapping[tuple[str, str], str]
) -> dict[tuple[str, str], str]:
    """Tables whose changes may be missing in the stream, with the reason."""
    state = _publication(connection, name)
    if state is None:
        return dict.fromkeys(known, f'publication "{name}" does not exist')
    broken = {p: f'it is not in publication "{name}"' for p in known if p not in state.members}
    for path, membership in known.items():
        remembered = {membership, str(state.recorded.get(_key(path), ""))} - {""}
        if path in state.members and remembered - {str(state.members[path])}:
            broken[path] = LEFT
    return broken


@dataclass(frozen=True)
class _Publication:
    members: Mapping[tuple[str, str], int]
    recorded: Mapping[str, int]
    whole: bool
    generated: bool


def _publication(connection: psycopg.Connection, name: str) -> _Publication | None:
    row = connection.execute(
        "SELECT oid, pubinsert AND pubupdate AND pubdelete AND pubtruncate AND NOT puballtables,"
        " obj_description(oid, 'pg_publication'), to_jsonb(p) ->> 'pubgencols' = 's'"
        " FROM pg_publication p WHERE pubname = %s",
        [name],
    ).fetchone()
    if row is None:
        return None
    oid, whole, comment, generated = row
    members = connection.execute(
        "SELECT n.nspname, c.relname, r.oid, to_jsonb(r) ->> 'prqual' IS NOT NULL"
        " OR to_jsonb(r) ->> 'prattrs' IS NOT NULL FROM pg_publication_rel r"
        " JOIN pg_class c ON c.oid = r.prrelid JOIN pg_namespace n ON n.oid = c.relnamespace"
        " WHERE r.prpubid = %s",
        [oid],
    ).fetchall()
    whole = whole and not any(m[3] for m in members)
    oids = {(m[0], m[1]): m[2] for m in members}
    # Before 18 there is no such setting, and generated columns are not watched.
    return _Publication(oids, _read_record(comment), whole, generated is not False)


def _read_record(comment: str | None) -> dict[str, int]:
    try:
        record = json.loads(comment or "{}")
    except ValueError:
        return {}
    return record if isinstance(record, dict) else {}


def _record_memberships(connection: psycopg.Connection, name: str) -> None:
    """Write down memberships that are new; what was written before stays."""
    state = _publication(connection, name)
    if state is None:
        return
    record = {**{_key(p): oid for p, oid in state.members.items()}, **state.recorded}
    if record == state.recorded:
        return
    statement = sql.SQL("COMMENT ON PUBLICATION {} IS {}").format(
        sql.Identifier(name), sql.Literal(json.dumps(record))
    )
    try:
        connection.execute(statement)
    except psycopg.errors.InsufficientPrivilege:
        # Somebody else owns the publication; the relations' own memory must do.
        return


def _key(path: tuple[str, str]) -> str:
    return ".".join(path)


def _partial(source: str, name: str) -> SourceRefused:
    return SourceRefused(
        f'publication "{name}" at source "{source}" leaves some changes out',
        detail="it has a row filter, a column list, or does not publish every kind of change",
        hint=f"run: steadyview source remove {source}",
    )


def _with_generated(connection: psycopg.Connection, paths: Sequence[tuple[str, str]]) -> bool:
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
    connection: psycopg.Connection, name: str, paths: Sequence[tuple[str, str]]
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


def _widen_publication(name: str, missing: Sequence[tuple[str, str]]) -> sql.Composed:
    added = sql.SQL("ALTER PUBLICATION {} ADD TABLE ONLY {}")
    return added.format(sql.Identifier(name), _tables(missing))


def _tables(paths: Sequence[tuple[str, str]]) -> sql.Composed:
    return sql.SQL(", ONLY ").join(sql.Identifier(*p) for p in paths)


def _run(connection: psycopg.Connection, source: str, statement: sql.Composed) -> None:
    try:
        connection.execute(statement)
    except psycopg.errors.InsufficientPrivilege as error:
        raise _may_not_change(connection, source, statement, str(error).strip()) from None


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


def _wait_for_open_transactions(connection: psycopg.Connection, source: str) -> None:
    """Return when every transaction that was open at the call has ended."""
    row = connection.execute("SELECT pg_snapshot_xmax(pg_current_snapshot())::text").fetchone()
    limit = row[0] if row else "0"
    question = "SELECT pg_snapshot_xmin(pg_current_snapshot()) >= %s::xid8, pg_sleep(%s)"
    for step in range(_WAIT_STEPS):
        answer = connection.execute(question, [limit, _WAIT_STEP if step else 0]).fetchone()
        if answer and answer[0]:
            return
    raise SourceUnavailable(
        f'source "{source}" has had a transaction open for a minute',
        detail="a table cannot be added while a transaction is open that began before",
        hint="end it (pg_stat_activity shows it), then try again",
    )
