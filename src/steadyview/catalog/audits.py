"""Audits: how many rows a relation had at a cn, and the sum of their hashes.

audit(R, cn)  ==  audit(R, earlier cn)  +  the log of R between the two
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from steadyview.catalog.database import Database
from steadyview.changes import RelationName


@dataclass(frozen=True)
class Audit:
    """A relation at `cn`: its rows and the sum of the hashes of their `columns` (numbers).

    `at`: when it was read, in microseconds.
    """

    relation: RelationName
    cn: int
    rows: int
    hashes: int
    columns: tuple[int, ...]
    at: int


class Audits:
    """The last audit of every relation."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def last(self, source: str) -> dict[RelationName, Audit]:
        """The last audits of the source's relations."""
        sql = "SELECT path, cn, rows, hashes, columns, at FROM audits WHERE source = ?"
        found = {}
        for path, cn, rows, hashes, columns, at in self._database.read(sql, (source,)):
            name = RelationName(source, tuple(json.loads(path)))
            columns = tuple(json.loads(columns))
            found[name] = Audit(name, cn, int(rows), int(hashes), columns, at)
        return found

    def keep(self, audit: Audit) -> None:
        """This audit in the place of the last one."""
        name = audit.relation
        values = (
            name.source,
            json.dumps(name.path),
            audit.cn,
            str(audit.rows),
            str(audit.hashes),
            json.dumps(audit.columns),
            audit.at,
        )
        with self._database.write() as connection:
            connection.execute("INSERT OR REPLACE INTO audits VALUES (?, ?, ?, ?, ?, ?, ?)", values)
