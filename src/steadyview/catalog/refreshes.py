"""Deferred views: how far their changes are propagated, and which tick they were refreshed for.

    a row (view, propagated, tick)  =>  the view's delta holds every change up to `propagated`

What is published of a view, its cn, never passes what is propagated. A tick is a time of the view's
schedule, in microseconds; a later one makes the view due again. Both only grow.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from steadyview.catalog.database import Database

if TYPE_CHECKING:
    import sqlite3


@dataclass(frozen=True)
class Deferred:
    """What is known of the view with this id, beside its published state."""

    view: int
    propagated: int
    tick: int | None


class Refreshes:
    """Of all views."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def all(self) -> dict[int, Deferred]:
        """By the view's id; a view whose changes are all published may be missing."""
        found = self._database.read("SELECT view, propagated, tick FROM refreshes")
        return {row[0]: Deferred(*row) for row in found}

    def ticked(self, views: Iterable[int], tick: int) -> None:
        """These views need not be refreshed for this tick any more, nor for an earlier one."""
        sql = (
            "INSERT INTO refreshes (view, propagated, tick) VALUES (?, -1, ?)"
            " ON CONFLICT DO UPDATE SET tick = max(coalesce(tick, excluded.tick), excluded.tick)"
        )
        with self._database.write() as connection:
            connection.executemany(sql, [(view, tick) for view in views])


def propagate(connection: sqlite3.Connection, reached: Mapping[int, int]) -> None:
    """Part of a publication: the changes of these views lead up to a cn each."""
    sql = (
        "INSERT INTO refreshes (view, propagated) VALUES (?, ?)"
        " ON CONFLICT DO UPDATE SET propagated = max(propagated, excluded.propagated)"
    )
    connection.executemany(sql, list(reached.items()))
