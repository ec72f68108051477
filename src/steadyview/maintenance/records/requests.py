"""What an update program asks, one request at a time.

Requests to the store are atomic on their one record. Those of test-and-set say what was read: the
*stamp*. They are answered by whether it still was so; then the record is as they say.

    read            ->  StoredRecord; of an absent record no fields, and the floor as its version
    insertTAS       ->  done, if there is no living record and the stamp is the expected one
    updateTAS       ->  done, if there is a living record with the expected stamp
    deleteTAS       ->  the same; leaves a tombstone with the new stamp, or nothing at all
"""

from __future__ import annotations

from collections.abc import Generator, Hashable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

from steadyview.algebra import Row
from steadyview.maintenance.records.entries import LogEntry, RecordKey
from steadyview.maintenance.records.signatures import Positions

Fields: TypeAlias = tuple[Any, ...]
"""What a living record holds, hidden fields too."""
Amounts: TypeAlias = tuple[int, ...]
Version: TypeAlias = Any
"""A signature, a counter, or a list of tags: whatever the kind of test-and-set compares."""


class Stamp(NamedTuple):
    """What a test-and-set tests: the version, and a note.

    The note is a scanner's mark (`minimum`), or the number of the looked-up entry
    (`foreign_key_join`).
    """

    version: Version
    note: int = 0


MARKED: Final = 1
"""The note of a record while somebody scans for it."""


class StoredRecord(NamedTuple):
    """A record as the store has it; without fields it is absent, or a tombstone."""

    fields: Fields | None
    stamp: Stamp


class ReadRecord(NamedTuple):
    """Answer: the StoredRecord."""

    key: RecordKey


class InsertTas(NamedTuple):
    """Without fields: a tombstone where none was, or another over it."""

    key: RecordKey
    expected: Stamp
    fields: Fields | None
    stamp: Stamp


class UpdateTas(NamedTuple):
    """Other fields for a living record."""

    key: RecordKey
    expected: Stamp
    fields: Fields
    stamp: Stamp


class DeleteTas(NamedTuple):
    """`stamp`: the tombstone's; without one the record is gone and remembers nothing."""

    key: RecordKey
    expected: Stamp
    stamp: Stamp | None


class PutRecord(NamedTuple):
    """Write or remove, whatever is there."""

    key: RecordKey
    fields: Fields | None


class GuardedUpsert(NamedTuple):
    """Write, or leave a tombstone, if the record has not seen the entry. Answer: nothing."""

    key: RecordKey
    entry: LogEntry
    fields: Fields | None


class ApplyIfUnseen(NamedTuple):
    """Add those amounts whose entries the record has not seen (`apply_if_unseen`)."""

    key: RecordKey
    additions: tuple[tuple[LogEntry, Amounts], ...]


class ReadReferring(NamedTuple):
    """Answer: the keys of living records whose first fields are these."""

    first: Fields


class ScanGroup(NamedTuple):
    """Answer: the GroupScan of a group of the base table, at one moment."""

    key: RecordKey


@dataclass(frozen=True, slots=True)
class GroupScan:
    """The first value of a group and how many rows have it; `reflected`: what the scan shows.

    `count` is 0 for a group without rows.
    """

    first: Any
    count: int
    reflected: Positions


class ReadLogEnd(NamedTuple):
    """Answer: Positions, the last entry of every stream now."""


class ReadBaseRecord(NamedTuple):
    """Answer: the BaseRecord now."""

    relation: str
    key: Hashable


class BaseRecord(NamedTuple):
    """A base record, the number of its last entry, and what the read reflects."""

    row: Row | None
    number: int
    reflected: Positions


class RegisterPositions(NamedTuple):
    """Remember per lane the last entry done; a smaller one than is known changes nothing."""

    positions: dict[Hashable, int]


Steps: TypeAlias = Generator[Any, Any, None]
"""An update program: it gives requests and is sent their answers."""
Answered: TypeAlias = Generator[Any, Any, Any]
"""A part of one that comes to a result."""
