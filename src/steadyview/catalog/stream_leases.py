"""Leases of log streams: which view manager has which stream of which served view.

Who keeps the views hands them out, a *generation* at a time: those of an earlier one are gone then.
A manager asks before each poll, and leaves a stream that it has no more. Nothing that is stored
hangs on it: while two have one stream, one of them works for nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

from steadyview.catalog.database import Database


class StreamLeases:
    """The leases part of the catalog."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def hand_out(self, managers: Mapping[str, int]) -> int:
        """Begin a generation with these leases, by stream; its number, greater than all before."""
        with self._database.write() as connection:
            sql = "SELECT coalesce(max(generation), 0) FROM stream_leases"
            ((last,),) = connection.execute(sql).fetchall()
            connection.execute("DELETE FROM stream_leases")
            # keeps the number where nothing is leased
            rows = [("", -1, last + 1), *((s, m, last + 1) for s, m in managers.items())]
            connection.executemany("INSERT INTO stream_leases VALUES (?, ?, ?)", rows)
        return int(last) + 1

    def held(self, manager: int, generation: int) -> frozenset[str] | None:
        """The streams of a manager now; None: its generation is over."""
        sql = "SELECT stream, manager FROM stream_leases WHERE generation = ?"
        rows = self._database.read(sql, (generation,))
        return frozenset(stream for stream, its in rows if its == manager) if rows else None

    def hand_over(self, stream: str, manager: int) -> None:
        """Give a stream to another manager, without a stop."""
        with self._database.write() as connection:
            sql = "UPDATE stream_leases SET manager = ? WHERE stream = ?"
            connection.execute(sql, (manager, stream))

    def all(self) -> dict[str, int]:
        """The manager of each stream."""
        sql = "SELECT stream, manager FROM stream_leases WHERE manager >= 0 ORDER BY stream"
        return dict(self._database.read(sql))
