"""Audits: how many rows a relation had at a cn, and sums of their hashes.

audit(R, cn)  ==  audit(R, earlier cn)  +  the log of R between the two

There is a sum per column, by the column's name, and one of whole rows (`WHOLE`), so that a column
whose values are lost can be left out, and the others still be compared.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from steadyview.catalog.database import Database
from steadyview.changes import Loss, RelationName

WHOLE = ""
"""In the place of a column's name: the sum over whole rows, of all the columns audited."""


@dataclass(frozen=True)
class Audit:
    """A relation at `cn`: its rows, and sums of hashes by column. Without any, nothing is known.

    `at`: when it was read, in microseconds. `error`: what could not be audited then, and why.
    """

    relation: RelationName
    cn: int
    rows: int
    hashes: Mapping[str, int]
    at: int
    error: str | None = None

    @property
    def columns(self) -> frozenset[str]:
        """The columns that were audited."""
        return frozenset(self.hashes) - {WHOLE}


class Audits:
    """The last audit of every relation."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def last(self, source: str) -> dict[RelationName, Audit]:
        """The last audits of the source's relations."""
        sql = "SELECT path, cn, rows, hashes, at, error FROM audits WHERE source = ?"
        found = {}
        for path, cn, rows, hashes, at, error in self._database.read(sql, (source,)):
            name = RelationName(source, tuple(json.loads(path)))
            found[name] = Audit(name, cn, int(rows), json.loads(hashes), at, error)
        return found

    def keep(self, audit: Audit) -> None:
        """This audit in the place of the last one."""
        name = audit.relation
        values = (
            name.source,
            json.dumps(name.path),
            audit.cn,
            str(audit.rows),
            json.dumps(audit.hashes),
            audit.at,
            audit.error,
        )
        with self._database.write() as connection:
            connection.execute("INSERT OR REPLACE INTO audits VALUES (?, ?, ?, ?, ?, ?, ?)", values)


def leave_out(connection: sqlite3.Connection, losses: Iterable[Loss]) -> None:
    """Forget what the audits say of lost columns, and of lost relations all of it.

    The log does not lead from there to the next audit.
    """
    for lost in losses:
        key = (lost.relation.source, json.dumps(lost.relation.path))
        if lost.column is None:
            connection.execute("DELETE FROM audits WHERE source = ? AND path = ?", key)
            continue
        sql = "SELECT hashes FROM audits WHERE source = ? AND path = ?"
        for (text,) in connection.execute(sql, key).fetchall():
            left = json.loads(text)
            for gone in (lost.column, WHOLE):
                left.pop(gone, None)
            sql = "UPDATE audits SET hashes = ? WHERE source = ? AND path = ?"
            connection.execute(sql, (json.dumps(left), *key))
