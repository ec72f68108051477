"""Forgetting log rows that are durable elsewhere."""

from __future__ import annotations

import sqlite3

from steadyview.sources.sqlite import log
from steadyview.sources.sqlite.connection import writing
from steadyview.sources.sqlite.proof import Proof
from steadyview.sources.sqlite.triggers import LOG, RELATIONS, displaced_table

_PRUNE_STEP = 20_000


def prune(connection: sqlite3.Connection, until: int, proof: Proof) -> None:
    """Delete the rows before `until`, but for the very last one, of the log that `proof` is of.

    Row `until` itself stays: by it the stream is known again. In short transactions, so that
    writers can come between.
    """
    notes = _notes_of_triggers(connection)
    done = log.pruned(connection)
    while done < until:
        done = min(done + _PRUNE_STEP, until)
        with writing(connection):
            if proof.contradiction(connection):
                return
            connection.execute(
                f"DELETE FROM {LOG} WHERE seq < ? AND seq < (SELECT max(seq) FROM {LOG})", [done]
            )
            connection.execute(f"UPDATE {log.META} SET pruned = ?", [done])
            for table in notes:
                connection.execute(f"DELETE FROM {table}")


def _notes_of_triggers(connection: sqlite3.Connection) -> list[str]:
    """The tables in which triggers note displaced rows, as far as they exist."""
    numbers = connection.execute(f"SELECT number FROM {RELATIONS}").fetchall()
    tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    there = {name for (name,) in tables}
    return [displaced_table(n) for (n,) in numbers if displaced_table(n) in there]
