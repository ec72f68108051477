"""For whom logs and changes are kept longer than the retention asks for, as last found.

    a hold (kind, name, cn, bytes)  =>  all after `cn` is kept for it, of which `bytes` for it alone

Found by whoever tidies up the warehouse; told by `status`, which needs no file for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple, dataclass

from steadyview.catalog.database import Database


@dataclass(frozen=True)
class Hold:
    """A reader, view, build or audit of that name, which still needs what came after `cn`.

    `bytes`: what of that the retention alone would let go.
    """

    kind: str
    name: str
    cn: int
    bytes: int


class Holds:
    """All that were found last."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def all(self) -> list[Hold]:
        """The one that keeps most first."""
        sql = "SELECT kind, name, cn, bytes FROM holds ORDER BY bytes DESC, kind, name"
        return [Hold(*row) for row in self._database.read(sql)]

    def found(self, holds: Iterable[Hold]) -> None:
        """These are all there are now."""
        with self._database.write() as connection:
            connection.execute("DELETE FROM holds")
            rows = [astuple(hold) for hold in holds]
            connection.executemany("INSERT INTO holds VALUES (?, ?, ?, ?)", rows)
