"""Transactions that others have open, where their end has to be waited for.

A slot can begin, and a table can join the stream, only when every transaction that was open then
has ended. Such a wait ends after `PATIENCE` seconds, with the transactions that it is for.
"""

from __future__ import annotations

import time

import psycopg

from steadyview.errors import SourceUnavailable

PATIENCE = 60.0
"""Seconds."""
_STEP = 0.05
# Whose session it is, and since when, is told to members of pg_read_all_stats; pg_locks to all.
_OPEN = """
SELECT coalesce('process ' || l.pid, 'prepared transaction "' || p.gid || '"')
       || coalesce(' of role "' || coalesce(a.usename, p.owner) || '"', '')
       || coalesce(' in database "' || coalesce(a.datname, p.database) || '"', '')
       || coalesce(', open since ' || date_trunc('second', coalesce(a.xact_start, p.prepared)), '')
FROM pg_locks l LEFT JOIN pg_stat_activity a ON a.pid = l.pid
LEFT JOIN pg_prepared_xacts p ON l.pid IS NULL AND p.transaction = l.transactionid
WHERE l.locktype = 'transactionid' AND l.mode = 'ExclusiveLock' AND l.granted
  AND l.pid IS DISTINCT FROM pg_backend_pid()
ORDER BY coalesce(a.xact_start, p.prepared) NULLS LAST LIMIT 3"""


def wait_for_open_transactions(connection: psycopg.Connection, source: str) -> None:
    """Return when every transaction that was open at the call has ended."""
    row = connection.execute("SELECT pg_snapshot_xmax(pg_current_snapshot())::text").fetchone()
    limit = row[0] if row else "0"
    question = "SELECT pg_snapshot_xmin(pg_current_snapshot()) >= %s::xid8, pg_sleep(%s)"
    pause, deadline = 0.0, time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        answer = connection.execute(question, [limit, pause]).fetchone()
        if answer and answer[0]:
            return
        pause = _STEP
    raise still_open(connection, source, "a table cannot be added to the stream")


def still_open(connection: psycopg.Connection, source: str, what: str) -> SourceUnavailable:
    """The error for people: what had to wait, and for whom."""
    found = [str(r[0]) for r in connection.execute(_OPEN).fetchall()]
    return SourceUnavailable(
        f'source "{source}" has had a transaction open for {PATIENCE:.0f} s: {what} meanwhile',
        detail="; ".join(found) or None,
        hint="end it (SELECT pg_terminate_backend(...) ends a forgotten one), then try again",
        source=source,
    )
