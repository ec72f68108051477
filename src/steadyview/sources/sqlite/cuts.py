"""Where snapshots were taken: the places at which the monitor must end a transaction.

SQLite's log does not show where transactions end; a poll takes everything committed since the last
one as one transaction. A snapshot taken between two polls would then show half of it. So snapshot
and poll look at the database under one lock, and the snapshot leaves its log position behind:

    snapshot:  lock { begin read;  note max(log) }         poll:  lock { begin read;  take notes }

Every poll that reads past a snapshot's position begins after it, finds the note, and ends a
transaction there. A note carries what was drawn for its row (`proof.py`): in a file that was
restored row numbers come again, and old notes mean nothing. The lock and the notes live in a small
file of their own beside the database, so that they work between processes and no writer of the
database ever waits for us.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

_WAIT_SECONDS = 30.0


class Cuts:
    """The notes of one database file."""

    def __init__(self, database: Path) -> None:
        self.path = database.with_name(database.name + "-steadyview")

    @contextlib.contextmanager
    def locked(self) -> Iterator[sqlite3.Connection]:
        """The lock, as a connection to the notes; they are kept if the block ends well."""
        connection = self._open()
        try:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(
                "CREATE TABLE IF NOT EXISTS cuts"
                " (log INTEGER, row INTEGER, nonce INTEGER, PRIMARY KEY (log, row, nonce))"
            )
            yield connection
            connection.execute("COMMIT")
        finally:
            connection.close()

    @staticmethod
    def note(connection: sqlite3.Connection, log: int, row: int, nonce: int | None) -> None:
        """A snapshot shows the log up to `row`."""
        connection.execute("INSERT OR IGNORE INTO cuts VALUES (?, ?, ?)", [log, row, nonce])

    @staticmethod
    def between(
        connection: sqlite3.Connection, log: int, after: int, until: int
    ) -> list[tuple[int, int | None]]:
        """Noted rows in (after, until), ascending, each with what was drawn for it."""
        return connection.execute(
            "SELECT row, nonce FROM cuts WHERE log = ? AND row > ? AND row < ? ORDER BY row",
            [log, after, until],
        ).fetchall()

    def forget(self, log: int, until: int) -> None:
        """Nothing up to `until` will be polled again."""
        with self.locked() as connection:
            connection.execute("DELETE FROM cuts WHERE log <> ? OR row <= ?", [log, until])

    def remove(self) -> None:
        """Delete the file."""
        self.path.unlink(missing_ok=True)

    def _open(self) -> sqlite3.Connection:
        # At worst lost with the machine's power: then no snapshot is left that a note could serve.
        connection = sqlite3.connect(self.path, timeout=_WAIT_SECONDS, isolation_level=None)
        connection.execute("PRAGMA synchronous = OFF")
        return connection
