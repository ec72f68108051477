"""Positions in a SQLite change stream: numbers of log rows."""

from __future__ import annotations

from dataclasses import dataclass

from steadyview.changes import StreamPosition


@dataclass(frozen=True)
class LogPosition(StreamPosition):
    """A row of one log. `log` tells logs apart that were removed and set up anew.

    >>> LogPosition.parse("7/12") <= LogPosition(7, 13)
    True
    """

    log: int
    row: int

    @staticmethod
    def parse(text: str) -> LogPosition:
        """Read back `str(position)`."""
        log, row = text.split("/")
        return LogPosition(int(log), int(row))

    def __le__(self, other: StreamPosition) -> bool:
        if not isinstance(other, LogPosition):
            return NotImplemented
        if self.log != other.log:
            raise ValueError(f"positions of two logs: {self} and {other}")
        return self.row <= other.row

    def __str__(self) -> str:
        return f"{self.log}/{self.row}"
