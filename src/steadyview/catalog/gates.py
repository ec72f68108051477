"""Times that are bound to commit numbers, and those that are to be: see `timing/gates.py`.

    a row (time, cn)  =>  the time means this cn, for good, wherever a time is asked for

A row without cn is an open gate: until it is bound, nobody is told what its time means. It is made
before any commit gets a time beyond it, and so before the time could be answered otherwise. For one
that is settled already no gate is opened, nor before a time that is bound: later times never have
earlier cns.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from steadyview.catalog.database import Database
from steadyview.crash_points import crash_point
from steadyview.timing.gates import AHEAD

_ROW = "SELECT time, sources, cn, told, bound FROM gates"


@dataclass(frozen=True)
class BoundTime:
    """A time and the cn that it is bound to; None: not yet. `bound`: when, by our clock.

    `told`: the sources that it is not exact for, each with why: "silent", "ahead" or "mixed".
    """

    time: int
    sources: tuple[str, ...]
    cn: int | None
    told: Mapping[str, str]
    bound: int | None


class BoundTimes:
    """Of one warehouse."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def keep(self, wanted: Mapping[int, Collection[str]]) -> list[BoundTime]:
        """Have open gates at these times for these sources, and no others; those that are open.

        A time that is bound, or settled without having been bound, gets none.
        """
        texts = {time: json.dumps(sorted(sources)) for time, sources in wanted.items()}
        found = {gate.time: gate for gate in self.open()}
        if {time: json.dumps(gate.sources) for time, gate in found.items()} == texts:
            return [*found.values()]
        with self._database.write() as connection:
            for time in found.keys() - texts.keys():
                connection.execute("DELETE FROM gates WHERE time = ? AND cn IS NULL", (time,))
            for time, sources in sorted(texts.items()):
                _open(connection, time, sources)
        crash_point("gate-opened")
        return self.open()

    def open(self) -> list[BoundTime]:
        """The gates that are not bound yet, by time."""
        return self._read(f"{_ROW} WHERE cn IS NULL ORDER BY time")

    def at(self, time: int) -> BoundTime | None:
        """The gate of a time, bound or open."""
        found = self._read(f"{_ROW} WHERE time = ?", time)
        return found[0] if found else None

    def of(self, cn_from: int, cn_to: int) -> list[BoundTime]:
        """What is bound to these commits, by time."""
        return self._read(f"{_ROW} WHERE cn BETWEEN ? AND ? ORDER BY time", cn_from, cn_to)

    def bind(self, time: int, told: Mapping[str, str], now: int) -> int | None:
        """The newest cn is the time's, for good; which that is. None if there is no gate."""
        with self._database.write() as connection:
            connection.execute(
                "UPDATE gates SET cn = (SELECT last_cn FROM warehouse), told = ?, bound = ?"
                " WHERE time = ? AND cn IS NULL",
                (json.dumps(dict(sorted(told.items()))), now, time),
            )
            found = connection.execute("SELECT cn FROM gates WHERE time = ?", (time,)).fetchone()
        crash_point("gate-bound")
        return None if found is None else found[0]

    def _read(self, sql: str, *values: int) -> list[BoundTime]:
        return [
            BoundTime(time, tuple(json.loads(sources)), cn, json.loads(told), bound)
            for time, sources, cn, told, bound in self._database.read(sql, values)
        ]


def left_behind(connection: sqlite3.Connection, source: str, dated: int) -> None:
    """Part of an admission: open gates that the source has passed are not exact for it."""
    sql = "SELECT time, sources, told FROM gates WHERE cn IS NULL AND time < ?"
    for time, sources, told in connection.execute(sql, (dated,)).fetchall():
        known = json.loads(told)
        if source in json.loads(sources) and source not in known:
            text = json.dumps({**known, source: AHEAD})
            connection.execute("UPDATE gates SET told = ? WHERE time = ?", (text, time))


def forget_bound(connection: sqlite3.Connection, cn: int, time: int) -> None:
    """Forget what is bound to commits before a cn, of times before its own."""
    connection.execute("DELETE FROM gates WHERE cn < ? AND time < ?", (cn, time))


def _open(connection: sqlite3.Connection, time: int, sources: str) -> None:
    """A gate, if the time can still be bound; one that is open gets these sources."""
    connection.execute(
        "INSERT INTO gates (time, sources) SELECT ?1, ?2 FROM warehouse"
        " WHERE (max(last_time, floor) < ?1 AND NOT EXISTS (SELECT 1 FROM gates WHERE cn IS NOT"
        " NULL AND time > ?1)) OR EXISTS (SELECT 1 FROM gates WHERE time = ?1)"
        " ON CONFLICT DO UPDATE SET sources = excluded.sources WHERE cn IS NULL",
        (time, sources),
    )
    dated = connection.execute("SELECT name FROM sources WHERE dated > ?", (time,)).fetchall()
    for (source,) in dated:
        left_behind(connection, source, time + 1)
