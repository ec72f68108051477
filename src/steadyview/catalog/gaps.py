"""Gaps: where a view or hidden node that is kept has no state.

    gap (low, high) of a node  =>  the node has no state at any cn with low < cn < high

Gaps of one node do not overlap, and its states end and begin at their ends. A gap is recorded
before anything of its window is written to the node's tables: whatever a crash leaves there, what
is known of it is never too little. What reaches beyond the node's own cn is of a window that was
begun; the next window begins where the node stands, and cuts it there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import astuple, dataclass

from steadyview.catalog.database import Database


@dataclass(frozen=True)
class Gap:
    """The node with this id has no state strictly between cn `low` and cn `high`."""

    view: int
    low: int
    high: int


class Gaps:
    """The gaps of all nodes."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def of(self, views: Collection[int], after: int = -1) -> list[Gap]:
        """The gaps of these nodes that end after cn `after`, per node in ascending order."""
        marks = ", ".join("?" * len(views))
        sql = f"SELECT view, low, high FROM gaps WHERE view IN ({marks}) AND high > ?"
        found = self._database.read(f"{sql} ORDER BY view, low", (*views, after))
        return [Gap(*row) for row in found]

    def around(self, view: int, cn: int) -> Gap | None:
        """The gap in which the cn lies; None: the node has a state there, or it is none of its."""
        sql = "SELECT view, low, high FROM gaps WHERE view = ? AND low < ?"
        latest = self._database.read(f"{sql} ORDER BY low DESC LIMIT 1", (view, cn))
        found = [Gap(*row) for row in latest]
        return found[0] if found and found[0].high > cn else None

    def beside(self, view: int, cn: int) -> tuple[Gap | None, Gap | None]:
        """The node's last gap that ends at the cn or before it, and its first behind it."""
        sql = "SELECT view, low, high FROM gaps WHERE view = ?"
        before = self._database.read(f"{sql} AND high <= ? ORDER BY low DESC LIMIT 1", (view, cn))
        behind = self._database.read(f"{sql} AND low >= ? ORDER BY low LIMIT 1", (view, cn))
        found = [Gap(*rows[0]) if rows else None for rows in (before, behind)]
        return found[0], found[1]

    def begin(self, begun: Mapping[int, int], gaps: Iterable[Gap]) -> None:
        """Nodes, by id, go on from a cn each: what reaches further is cut there; new gaps."""
        with self._database.write() as connection:
            starts = [(after, view) for view, after in begun.items()]
            connection.executemany("DELETE FROM gaps WHERE low >= ? AND view = ?", starts)
            cut = [(after, view, after) for after, view in starts]
            connection.executemany("UPDATE gaps SET high = ? WHERE view = ? AND high > ?", cut)
            connection.executemany(
                "DELETE FROM gaps WHERE view = ? AND high <= low + 1", [(view,) for view in begun]
            )
            rows = [astuple(gap) for gap in gaps]
            connection.executemany("INSERT INTO gaps (view, low, high) VALUES (?, ?, ?)", rows)

    def forget_before(self, view: int, cn: int) -> None:
        """States before cn can no longer be read, nor does anything go on from one."""
        with self._database.write() as connection:
            connection.execute("DELETE FROM gaps WHERE view = ? AND high <= ?", (view, cn))
