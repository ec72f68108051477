"""The proof of a SQLite stream: the last log row that was delivered, and what was drawn for it.

Every log row carries a number drawn by the database when it was written. Writers of a file are
serial, so two files that agree in row r's number have one history up to r. A file that was restored
from a backup, or replaced by another one, and written again has no such row, or one with another
number, however far its log has come.
Every row is counted, too: of rows that were deleted from the log's end before they were captured,
the count still tells.
Not seen: a restored file that still has row r. Then nothing that was captured is missing in it.
"""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass

from steadyview.errors import SourceDiverged
from steadyview.sources.sqlite import log
from steadyview.sources.sqlite.position import LogPosition

_FORMAT = 2


@dataclass(frozen=True)
class Proof:
    """A row of a log; `kept` False: it was not there (row 0, or pruned by an older version)."""

    log: int
    row: int
    nonce: int | None
    kept: bool = True

    def __str__(self) -> str:
        return json.dumps(
            {
                "format": _FORMAT,
                "log": self.log,
                "row": self.row,
                "nonce": self.nonce,
                "kept": self.kept,
            }
        )

    @staticmethod
    def parse(text: str) -> Proof | None:
        """Read back `str(proof)`; None where nothing is to be proved."""
        data = json.loads(text or "{}")
        if data.get("format") != _FORMAT:
            return None
        return Proof(data["log"], data["row"], data["nonce"], data["kept"])

    @staticmethod
    def of(connection: sqlite3.Connection, position: LogPosition) -> Proof:
        """The proof that everything up to the position was delivered."""
        found = log.nonce(connection, position.row)
        if found is None:  # row 0, or pruned by an older version
            return Proof(position.log, position.row, None, kept=False)
        return Proof(position.log, position.row, found[0])

    def contradiction(self, connection: sqlite3.Connection) -> str | None:
        """Why the present transaction does not see the log's past as it was; None if it does."""
        if not log.is_current(connection):
            return "it has no log"
        if log.identity(connection) != self.log:
            return "its log was removed and set up anew"
        last = log.last_row(connection)
        if self.row > last:
            return f"row {self.row} of its log was captured, but the log ends at row {last}"
        if self.kept and log.nonce(connection, self.row) != (self.nonce,):
            return f"row {self.row} of its log is not the one that was captured"
        written = log.written(connection)
        if written is not None and written != last:
            return f"{written} rows of its log were written, but it ends at row {last}"
        return None

    def require(self, connection: sqlite3.Connection, source: str) -> None:
        """Raise SourceDiverged if the log is not the continuation of what was captured."""
        reason = self.contradiction(connection)
        if reason:
            raise diverged(source, reason)


def diverged(source: str, reason: str) -> SourceDiverged:
    """The file has another past than the one that was captured."""
    return SourceDiverged(
        f'file of source "{source}" has another past than the one captured from it '
        "(was it restored, or replaced?)",
        detail=reason,
        hint=f"run: steadyview source resnapshot {source}",
        source=source,
    )
