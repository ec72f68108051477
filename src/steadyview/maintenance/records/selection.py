"""Selection and key-preserving projection: a view record has one base record.

Section V-C. As printed they need no signatures, "since the update programs are idempotent".
Redriven writes are, one by one; but redrive two of them and a reader sees the older value after the
newer (5, 10, 5, 10); let one arrive late, or a second copy live, and the older one stays.
Ours is one request, the *guarded upsert*: write or leave a tombstone if the record's entry is
older.

    value(record)  =  the post-image of the greatest entry that ever arrived
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from steadyview.algebra import Row
from steadyview.maintenance.records.entries import LogEntry, RecordKey
from steadyview.maintenance.records.requests import (
    Fields,
    GuardedUpsert,
    PutRecord,
    ReadRecord,
    Stamp,
    Steps,
)
from steadyview.maintenance.records.tas import Tas
from steadyview.maintenance.records.writing import written


@dataclass(frozen=True)
class KeyedView:
    """`image`: what a base row shows as, None where the condition leaves it out."""

    name: str
    image: Callable[[Row], Fields | None]

    def post_image(self, entry: LogEntry) -> Fields | None:
        """What the view record is after the entry."""
        return None if entry.new is None else self.image(entry.new)


class _OfOneBaseRecord:
    def __init__(self, view: KeyedView) -> None:
        self._view = view

    def touched(self, entry: LogEntry) -> Collection[RecordKey]:
        """The record of the same key."""
        return (entry.key,)


class SelectionPrinted(_OfOneBaseRecord):
    """Plain writes."""

    def propagate(self, entry: LogEntry) -> Steps:
        """Whatever is there is replaced."""
        yield PutRecord(entry.key, self._view.post_image(entry))


class SelectionByTas(_OfOneBaseRecord):
    """Read and test-and-set, for the comparison."""

    def __init__(self, view: KeyedView, tas: Tas) -> None:
        super().__init__(view)
        self._tas = tas

    def propagate(self, entry: LogEntry) -> Steps:
        """Again until the test passes."""
        done = False
        while not done:
            record = yield ReadRecord(entry.key)
            if self._tas.has_processed(record.stamp.version, entry):
                return
            stamp = Stamp(self._tas.generated(record.stamp.version, entry))
            image = self._view.post_image(entry)
            done = yield from written(self._tas, entry.key, record, image, stamp)


class Selection(_OfOneBaseRecord):
    """Ours."""

    def propagate(self, entry: LogEntry) -> Steps:
        """One guarded request; it never fails and is never repeated."""
        return self.propagate_together((entry,))

    def propagate_together(self, entries: Sequence[LogEntry]) -> Steps:
        """A request per entry, in order: of one record, the last one stays."""
        for entry in entries:
            yield GuardedUpsert(entry.key, entry, self._view.post_image(entry))
