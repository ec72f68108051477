"""Long first builds: which views, at which cn, and the spans of their relations read so far.

A build's cn is fixed when it begins. Its spans cover the relations that are read span by span; a
span with `rows` is stored, and holds its relation's rows after precisely the transactions up to cn:

    stored spans of R together  ==  R(cn)

A build is a fact about the past of its relations. When changes of one of them are lost, that past
can no longer be told, and the build goes in the same transaction.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from steadyview.catalog.database import Database
from steadyview.changes import RelationName


@dataclass(frozen=True)
class StoredSpan:
    """Span `number` of a relation: the rows with low <= value < high in column `key`.

    `columns` are those that were or will be read. `about`: how many rows are expected; `rows`,
    `size` and `digest` are of the stored file, None as long as there is none.
    """

    relation: RelationName
    number: int
    columns: tuple[int, ...]
    key: int
    low: int | None
    high: int | None
    about: int
    rows: int | None = None
    size: int | None = None
    digest: int | None = None


@dataclass(frozen=True)
class Build:
    """The views with these ids get their first state at `cn`; they read these relations."""

    id: int
    cn: int
    views: frozenset[int]
    relations: frozenset[RelationName]
    spans: tuple[StoredSpan, ...]


class Builds:
    """The builds under way."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def begin(
        self,
        cn: int,
        views: Iterable[int],
        relations: Iterable[RelationName],
        spans: Sequence[StoredSpan],
    ) -> None:
        """A new build, none of its spans stored."""
        read = [[r.source, list(r.path)] for r in sorted(relations)]
        with self._database.write() as connection:
            build = connection.execute(
                "INSERT INTO builds (cn, views, relations) VALUES (?, ?, ?)",
                (cn, json.dumps(sorted(views)), json.dumps(read)),
            ).lastrowid
            connection.executemany(
                "INSERT INTO spans VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, NULL, NULL, NULL)",
                [
                    (build, *_key(s), json.dumps(s.columns), s.key, s.low, s.high, s.about)
                    for s in spans
                ],
            )

    def all(self) -> list[Build]:
        """Every build, the oldest first."""
        spans: dict[int, list[StoredSpan]] = {}
        for build, source, path, number, columns, *rest in self._database.read(
            "SELECT * FROM spans ORDER BY build, source, path, number"
        ):
            name = RelationName(source, tuple(json.loads(path)))
            span = StoredSpan(name, number, tuple(json.loads(columns)), *rest)
            spans.setdefault(build, []).append(span)
        found = self._database.read("SELECT id, cn, views, relations FROM builds ORDER BY id")
        return [
            Build(i, cn, frozenset(json.loads(views)), _names(names), tuple(spans.get(i, ())))
            for i, cn, views, names in found
        ]

    def stored(self, build: int, span: StoredSpan) -> bool:
        """Keep whether the span has a file and which; False if the build is there no more."""
        with self._database.write() as connection:
            changed = connection.execute(
                "UPDATE spans SET rows = ?, size = ?, digest = ?"
                " WHERE build = ? AND source = ? AND path = ? AND number = ?",
                (span.rows, span.size, span.digest, build, *_key(span)),
            )
            return changed.rowcount > 0

    def end(self, build: int, views: Iterable[int] | None = None) -> None:
        """The build is over for these views; after the last of them (or None) it is forgotten."""
        with self._database.write() as connection:
            sql = "SELECT views FROM builds WHERE id = ?"
            found = connection.execute(sql, (build,)).fetchone()
            left = set(json.loads(found[0])) - set(views) if found and views is not None else set()
            if left:
                sql = "UPDATE builds SET views = ? WHERE id = ?"
                connection.execute(sql, (json.dumps(sorted(left)), build))
            else:
                connection.execute("DELETE FROM builds WHERE id = ?", (build,))


def end_readers(connection: sqlite3.Connection, lost: Iterable[RelationName | str]) -> None:
    """Forget the builds that read one of the relations, or any of a source (given by name)."""
    gone = frozenset(lost)
    for build, names in connection.execute("SELECT id, relations FROM builds").fetchall():
        read = _names(names)
        if gone & (read | {r.source for r in read}):
            connection.execute("DELETE FROM builds WHERE id = ?", (build,))


def _key(span: StoredSpan) -> tuple[str, str, int]:
    return span.relation.source, json.dumps(span.relation.path), span.number


def _names(text: str) -> frozenset[RelationName]:
    return frozenset(RelationName(source, tuple(path)) for source, path in json.loads(text))
