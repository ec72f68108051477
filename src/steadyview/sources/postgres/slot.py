"""The replication slot of one source, and what the server must provide for it.

A slot keeps the write-ahead log from its confirmed position on, so nothing is lost while nobody
reads; and it keeps it for ever, so it must not be forgotten (`remove_slot`).
"""

from __future__ import annotations

import contextlib
import threading
import time
from dataclasses import dataclass

import psycopg
from psycopg import sql

from steadyview.errors import SourceRefused, SourceUnavailable, SteadyviewError
from steadyview.sources.postgres import open_transactions
from steadyview.sources.postgres.connection import LOCK_TIMEOUT
from steadyview.sources.postgres.position import Lsn

_FIRST_VERSION = 140000
NOTICED = 10.0
"""Seconds after which a server has noticed that a reader is gone."""
# A hosted server may give the right by a role of its own.
_MAY_CREATE = """
SELECT (SELECT rolsuper OR rolreplication FROM pg_roles WHERE rolname = current_user)
       OR EXISTS (SELECT FROM pg_roles g
                  WHERE g.rolname = 'rds_replication' AND pg_has_role(g.oid, 'MEMBER')),
       (SELECT count(*) FROM pg_replication_slots)
       < current_setting('max_replication_slots')::int"""


@dataclass(frozen=True)
class Slot:
    """The slot as the server shows it."""

    name: str
    plugin: str
    database: str
    active: bool
    confirmed: Lsn | None
    lost: bool
    held: str
    """How much log it keeps the server from forgetting, for people."""


def read_slot(connection: psycopg.Connection, name: str) -> Slot | None:
    """The slot of that name at the server, whatever database it belongs to."""
    row = connection.execute(
        "SELECT slot_name, plugin, database, active, confirmed_flush_lsn::text, wal_status,"
        " pg_size_pretty(CASE WHEN NOT pg_is_in_recovery()"
        " THEN pg_current_wal_lsn() - restart_lsn END) FROM pg_replication_slots"
        " WHERE slot_name = %s",
        [name],
    ).fetchone()
    if row is None:
        return None
    slot, plugin, database, active, at, status, held = row
    confirmed = Lsn.parse(at) if at else None
    return Slot(slot, plugin, database, active, confirmed, status == "lost", held or "nothing")


def server_obstacles(connection: psycopg.Connection, source: str) -> list[SteadyviewError]:
    """What keeps the server from decoding changes, or from naming what an answer reflects."""
    version, wal_level, standby, encoding = connection.execute(
        "SELECT current_setting('server_version_num')::int, current_setting('wal_level'),"
        " pg_is_in_recovery(), current_setting('server_encoding')"
    ).fetchone() or (0, "", False, "")
    found: list[SteadyviewError] = []
    if version < _FIRST_VERSION:
        fact = f'source "{source}" runs PostgreSQL {version // 10000}; 14 or later is needed'
        found.append(SourceRefused(fact))
    if standby:
        fact = f'source "{source}" is a hot standby, whose answers do not know what they reflect'
        found.append(SourceRefused(fact, hint="point the url at the primary"))
    if wal_level != "logical":
        fact = f'source "{source}" has wal_level "{wal_level}"; "logical" is needed'
        hint = "run: ALTER SYSTEM SET wal_level = 'logical'; then restart the server"
        found.append(SourceRefused(fact, hint=hint))
    if encoding == "SQL_ASCII":
        fact = f'database of source "{source}" has no encoding (SQL_ASCII)'
        found.append(SourceRefused(fact))
    return found


def prepare_slot(connection: psycopg.Connection, source: str, name: str) -> list[str]:
    """Create the slot if there is none, or one that the server has invalidated."""
    found = read_slot(connection, name)
    if found is not None and not found.lost:
        return []
    done = remove_slot(connection, source, name)
    _create_slot(connection, source, name)
    return [*done, f'created replication slot "{name}"']


def slot_obstacles(
    connection: psycopg.Connection, source: str, name: str, *, ours: bool
) -> list[SteadyviewError]:
    """A slot of that name that is not ours, or of another database or another kind of reader."""
    slot = read_slot(connection, name)
    if slot is None:
        return []
    here = slot.plugin == "pgoutput" and slot.database == connection.info.dbname
    if here and ours:
        return []
    detail = f'its database is "{slot.database}", its plugin "{slot.plugin}"'
    if here:
        detail = "it was not made by this warehouse, and may be read by somebody"
    return [
        SourceRefused(
            f'replication slot "{name}" belongs to something else',
            detail=detail,
            hint=f'name another one in steadyview.toml: [sources.{source}] slot = "..."',
        )
    ]


def creation_obstacles(
    connection: psycopg.Connection, source: str, name: str
) -> list[SteadyviewError]:
    """Why making the slot will probably fail, if there is none. Only trying tells for sure."""
    if read_slot(connection, name) is not None:
        return []
    may, free = connection.execute(_MAY_CREATE).fetchone() or (True, True)
    found: list[SteadyviewError] = [] if may else [_may_not_create(connection, source)]
    return found if free else [*found, _none_left(source)]


def unread_slot(connection: psycopg.Connection, name: str) -> Slot | None:
    """The slot once nobody reads it: a reader that has just ended may still seem to.

    Active, it is returned if somebody reads it all the time.
    """
    pause, deadline = threading.Event(), time.monotonic() + NOTICED
    while (found := read_slot(connection, name)) and found.active:
        if time.monotonic() > deadline:
            break
        pause.wait(0.05)
    return found


def remove_slot(connection: psycopg.Connection, source: str, name: str) -> list[str]:
    """Drop the slot; nothing happens where there is none, or where it is another database's."""
    slot = read_slot(connection, name)
    if slot is None or slot.database != connection.info.dbname:
        return []
    unread_slot(connection, name)
    try:
        connection.execute("SELECT pg_drop_replication_slot(%s)", [name])
    except psycopg.errors.ObjectInUse:
        raise SourceUnavailable(
            f'replication slot "{name}" of source "{source}" is being read',
            hint="stop the process that runs this project first",
        ) from None
    return [f'dropped replication slot "{name}"']


def advance(connection: psycopg.Connection, name: str) -> None:
    """Skip everything up to now: nothing of it is needed."""
    statement = "SELECT pg_replication_slot_advance(%s, pg_current_wal_flush_lsn())"
    # Somebody reads it, or it stands there already.
    with contextlib.suppress(
        psycopg.errors.ObjectInUse, psycopg.errors.ObjectNotInPrerequisiteState
    ):
        connection.execute(statement, [name])


def _create_slot(connection: psycopg.Connection, source: str, name: str) -> None:
    """Make the slot; it begins when every transaction that is open now has ended."""
    try:
        connection.execute(f"SET lock_timeout = '{open_transactions.PATIENCE}s'")
        connection.execute("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", [name])
    except psycopg.errors.LockNotAvailable:
        raise open_transactions.still_open(
            connection, source, "a replication slot cannot be made"
        ) from None
    except psycopg.errors.InsufficientPrivilege:
        raise _may_not_create(connection, source) from None
    except psycopg.errors.ConfigurationLimitExceeded:
        raise _none_left(source) from None
    finally:
        connection.execute(f"SET lock_timeout = '{LOCK_TIMEOUT}'")


def _may_not_create(connection: psycopg.Connection, source: str) -> SourceRefused:
    role = sql.Identifier(connection.info.user).as_string(connection)
    return SourceRefused(
        f'source "{source}" lacks the right to make a replication slot',
        hint=f"run as a superuser: ALTER ROLE {role} REPLICATION;",
    )


def _none_left(source: str) -> SourceRefused:
    return SourceRefused(
        f'source "{source}" has no replication slot left',
        detail="every one of max_replication_slots is in use",
        hint="drop an unused slot, or raise max_replication_slots and restart the server",
    )
