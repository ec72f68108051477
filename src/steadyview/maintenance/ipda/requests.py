"""What processes ask of the database, one request at a time; each is done at one moment.

Locked reads see committed records and wait for transactions that wrote others in their range; dirty
reads see everything and wait for nothing. IPDA locks are none of transactions': those who hold one
for writing do not hinder each other, and each has the time at which it was obtained; a reader waits
until all of these lie behind its range.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, TypeAlias

from steadyview.maintenance.ipda.records import DeltaRecord

COMMITS = "commit table"
"""What IPDA locks call the commit table; a delta table goes by its view's name."""


@dataclass(frozen=True)
class ReadClock:
    """Answer: the time, by the clock of the node at which the process is."""


@dataclass(frozen=True)
class LockForWriting:
    """Obtain the IPDA lock of a table."""

    table: str


@dataclass(frozen=True)
class Unlock:
    """Release it."""

    table: str


@dataclass(frozen=True)
class LockForReading:
    """Wait until no writer holds the table's IPDA lock since a time up to `upto`; keep nothing."""

    table: str
    upto: int


@dataclass(frozen=True)
class InsertRecord:
    """Add a record to its view's delta; nobody but dirty reads sees it before the end."""

    record: DeltaRecord


@dataclass(frozen=True)
class InsertCommitRecord:
    """Add a transaction's record to the commit table, to be seen at its end."""

    xid: str
    timestamp: int


@dataclass(frozen=True)
class EndTransaction:
    """Commit: everything is seen, and the transaction's locks are released."""


@dataclass(frozen=True)
class ReadRecords:
    """Answer: committed records with after < timestamp <= upto.

    It waits for those who wrote others there. Not so without `waits`.
    """

    view: str
    after: int
    upto: int
    waits: bool = True


@dataclass(frozen=True)
class ReadLaterRecords:
    """Answer: records with a timestamp greater than `after`, by a dirty read."""

    view: str
    after: int


@dataclass(frozen=True)
class ReadCommitRecords:
    """Answer: the xids of commit records with after < timestamp <= upto, by a locked read."""

    after: int
    upto: int


@dataclass(frozen=True)
class RetrieveRecords:
    """Answer: all records of these transactions in the view's delta, without locks."""

    view: str
    xids: frozenset[str]


@dataclass(frozen=True)
class ApplyRecords:
    """Roll the view to `upto` by the net effect of these records, in one transaction."""

    view: str
    upto: int
    records: tuple[DeltaRecord, ...]


@dataclass(frozen=True)
class PurgeCommitRecords:
    """Forget commit records with timestamps up to `upto`."""

    upto: int


Steps: TypeAlias = Generator[Any, Any, None]
"""A process: it gives requests and is sent their answers."""
