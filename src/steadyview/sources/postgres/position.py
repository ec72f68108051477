"""Positions in a PostgreSQL change stream: log sequence numbers."""

from __future__ import annotations

from dataclasses import dataclass

from steadyview.changes import StreamPosition


@dataclass(frozen=True)
class Lsn(StreamPosition):
    """A place in the write-ahead log.

    >>> str(Lsn.parse("0/15D68C50")), Lsn.parse("1/0") <= Lsn.parse("0/FFFFFFFF")
    ('0/15D68C50', False)
    """

    value: int

    @staticmethod
    def parse(text: str) -> Lsn:
        """Read PostgreSQL's notation, two hexadecimal halves around a slash."""
        high, low = text.split("/")
        return Lsn(int(high, 16) << 32 | int(low, 16))

    def __le__(self, other: StreamPosition) -> bool:
        if not isinstance(other, Lsn):
            return NotImplemented
        return self.value <= other.value

    def __str__(self) -> str:
        return f"{self.value >> 32:X}/{self.value & 0xFFFFFFFF:X}"
