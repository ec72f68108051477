"""What batches cost: numbers for `status`, never read by the maintenance itself."""

from __future__ import annotations

from dataclasses import astuple, dataclass

from steadyview.catalog.database import Database

_KEPT = 10_000


@dataclass(frozen=True)
class BatchRecord:
    """The transactions (from_cn, to_cn] were propagated and published; times in microseconds."""

    from_cn: int
    to_cn: int
    transactions: int
    lookups: int
    lookup_rows: int
    started: int
    finished: int


class BatchRecords:
    """The newest batches; old ones are forgotten."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def record(self, batch: BatchRecord) -> int:
        """Keep the batch; its number."""
        with self._database.write() as connection:
            sql = (
                "INSERT INTO batches (from_cn, to_cn, transactions, lookups, lookup_rows,"
                " started, finished) VALUES (?, ?, ?, ?, ?, ?, ?)"
            )
            number = connection.execute(sql, astuple(batch)).lastrowid or 0
            connection.execute("DELETE FROM batches WHERE number <= ?", (number - _KEPT,))
        return number

    def recent(self, count: int) -> list[BatchRecord]:
        """The newest `count` batches, newest first."""
        sql = (
            "SELECT from_cn, to_cn, transactions, lookups, lookup_rows, started, finished"
            " FROM batches ORDER BY number DESC LIMIT ?"
        )
        return [BatchRecord(*row) for row in self._database.read(sql, (count,))]
