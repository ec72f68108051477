"""What is still to be done to the project's view files: recorded with the views it concerns.

A view is dropped or called otherwise in one transaction with what becomes of its file, and the file
is changed afterwards: whoever ends in between has left it to the next one.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import astuple, dataclass

from steadyview.catalog.database import Database


@dataclass(frozen=True)
class FileChange:
    """The file at `path`, below the project's folder, is to hold `text`; None: it is to go.

    Only if what it holds has the digest `was`, or (None) it is not there: otherwise somebody has
    been quicker.
    """

    path: str
    was: str | None
    text: str | None


class FileChanges:
    """The changes that are recorded and not known to be made."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def all(self) -> list[FileChange]:
        """In the order in which they are to be made."""
        found = self._database.read("SELECT path, was, text FROM file_changes ORDER BY rowid")
        return [FileChange(*row) for row in found]

    def made(self, path: str) -> None:
        """The change of a file was made, or cannot be made any more."""
        with self._database.write() as connection:
            connection.execute("DELETE FROM file_changes WHERE path = ?", (path,))


def record(connection: sqlite3.Connection, changes: Iterable[FileChange]) -> None:
    """Record changes, in the transaction that they belong to."""
    connection.executemany(
        "INSERT OR REPLACE INTO file_changes (path, was, text) VALUES (?, ?, ?)",
        [astuple(change) for change in changes],
    )
