"""MIN and MAX: of every group the least or the greatest of its values, at every cn.

The operand has a row per group and value (a fold keeps it). Values are better or worse than others:
for MIN the less the better; NULL is worse than all. For a version (g, v, from, to) let

    F  =  the latest end of a better value of g that was there from the beginning
    T  =  the earliest start of a better value of g that stays for ever

Before F and from T on v is not what is shown, so the version is *trimmed* to the time between; the
best value of a cn has no better one there, and stays. What is left of a group falls into *islands*,
whose versions overlap one another; an island is cut at all starts and ends of its versions, and
between two neighbouring cuts nothing changes:

    V(MIN(R))  =  { (g, least v of the piece, 1, piece) : pieces of the islands of g }

Values that come in ascending or descending order, or go in it, do not overlap once they are
trimmed; a value that stays trims all that are worse. So little is ever cut.

Needed: of every group that the window touches, the values that it touches and the best of those
that it does not (`ends.py`). Groups are found by a number, `group`, which is one of the keys.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from steadyview.plans.moves import BEGINNING, FOREVER, FROM, TO, N
from steadyview.plans.operator import Operator, Rendering

_FIRST, _ISLAND = "_first", "_island"
_BEFORE = "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING"


@dataclass(frozen=True)
class Extreme:
    """Per key: the least or greatest value in `column`, under a name."""

    operand: Operator
    group: str
    keys: tuple[str, ...]
    function: Literal["min", "max"]
    column: str
    name: str

    @property
    def columns(self) -> tuple[str, ...]:
        """Keys, then the extreme."""
        return (*self.keys, self.name)

    @property
    def operands(self) -> tuple[Operator, ...]:
        """What has the values."""
        return (self.operand,)

    def versions(self, rendering: Rendering) -> str:
        """Trim, find the islands, cut them, then one aggregate per group and piece."""
        rows = rendering.part(self.operand.versions(rendering))
        rows = rendering.part(self._trimmed(rows))
        rows = rendering.part(self._begun(f"(SELECT * FROM {rows} WHERE {FROM} < {TO})"))
        rows = rendering.part(self._numbered(rows))
        island = (*self.keys, _ISLAND)
        cut = rendering.part(rendering.dialect.cut(rows, island, (*self.keys, self.column)))
        keys, best = ", ".join(self.keys), f"{self.function.upper()}({self.column})"
        return (
            f"SELECT {keys}, {best} AS {self.name}, CAST(1 AS BIGINT) AS {N}, {FROM}, {TO} "
            f"FROM {cut} GROUP BY {keys}, {FROM}, {TO}"
        )

    def _trimmed(self, rows: str) -> str:
        """Nothing of a version while a better one was there all along, or once one stays."""
        best_first = f"{self.column} IS NULL, {self.column}"
        better = self._window(best_first + (" DESC" if self.function == "max" else ""), _BEFORE)
        until = f"MAX(CASE WHEN {FROM} = {BEGINNING} THEN {TO} END) OVER ({better})"
        since = f"MIN(CASE WHEN {TO} = {FOREVER} THEN {FROM} END) OVER ({better})"
        return (
            f"SELECT {', '.join([*self.keys, self.column])}, "
            f"GREATEST({FROM}, COALESCE({until}, {FROM})) AS {FROM}, "
            f"LEAST({TO}, COALESCE({since}, {TO})) AS {TO} FROM {rows}"
        )

    def _begun(self, rows: str) -> str:
        """Beside each version whether no earlier one of its group reaches into it."""
        reached = f"MAX({TO}) OVER ({self._window(f'{FROM}, {TO}', _BEFORE)})"
        return f"SELECT *, CASE WHEN {FROM} < {reached} THEN 0 ELSE 1 END AS {_FIRST} FROM {rows}"

    def _numbered(self, rows: str) -> str:
        """Beside each version how many islands have begun."""
        return f"SELECT *, SUM({_FIRST}) OVER ({self._window(FROM)}) AS {_ISLAND} FROM {rows}"

    def _window(self, order: str, frame: str = "") -> str:
        return f"PARTITION BY {', '.join(self.keys)} ORDER BY {order} {frame}"
