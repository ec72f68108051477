"""What was handed out lately to streams, which keep their own positions (Spark's checkpoints).

    a row (reader, view, after, upto)  =>  the changes of (after, upto] may be asked for once more

Nothing is kept for a stream beyond the retention, but what it may ask for stays as it was given:
no range is compressed over it. A reader is one life of a stream; another life asks for what the one
before has left open, and so has it recorded again.
"""

from __future__ import annotations

from steadyview.catalog.clock import Clock
from steadyview.catalog.database import Database
from steadyview.catalog.subscriptions import compressed

_OPEN = 2
"""Batches that a stream may ask for again: the one at hand, and the one before."""


class Streams:
    """All streams of a warehouse."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    def hand_out(self, reader: str, view: int, after: int, upto: int) -> bool:
        """The changes of (after, upto] are about to be handed out; of a state both are its cn.

        False: an end lies inside a range that was compressed meanwhile.
        """
        insert = (
            "INSERT INTO streams VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE"
            " SET after = min(after, excluded.after), moved = excluded.moved"
        )
        old = (
            "DELETE FROM streams WHERE reader = ?1 AND upto NOT IN (SELECT upto FROM streams"
            " WHERE reader = ?1 ORDER BY upto DESC LIMIT ?2)"
        )
        with self._database.write() as connection:
            if compressed(connection, view, after) or compressed(connection, view, upto):
                return False
            connection.execute(insert, (reader, view, after, upto, self._clock.now_us()))
            connection.execute(old, (reader, _OPEN))
        return True

    def handed_out(self, view: int) -> list[tuple[int, int]]:
        """What streams of the view may ask for again."""
        sql = "SELECT DISTINCT after, upto FROM streams WHERE view = ?"
        return [(after, upto) for after, upto in self._database.read(sql, (view,))]

    def forget_before(self, time: int) -> None:
        """What was handed out before a time, in microseconds."""
        with self._database.write() as connection:
            connection.execute("DELETE FROM streams WHERE moved < ?", (time,))
