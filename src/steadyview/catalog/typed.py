"""What Spark said about a view's types: an unchanged view needs no Spark to be planned again.

The digest names everything the answer depends on; the outcome is the caller's own text. Old ones
are forgotten when there are many.
"""

from __future__ import annotations

from steadyview.catalog.database import Database

_KEPT = 10_000


class Typed:
    """The answers of Spark, by digest."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def find(self, digest: str) -> str | None:
        """The outcome kept under the digest."""
        found = self._database.read("SELECT outcome FROM typed WHERE digest = ?", (digest,))
        return str(found[0][0]) if found else None

    def keep(self, digest: str, outcome: str) -> None:
        """Keep an outcome. Repeating it changes nothing."""
        with self._database.write() as connection:
            connection.execute("INSERT OR REPLACE INTO typed VALUES (?, ?)", (digest, outcome))
            connection.execute(
                "DELETE FROM typed WHERE rowid <= (SELECT max(rowid) FROM typed) - ?", (_KEPT,)
            )
