"""MIN and MAX as printed: keep the first value of a group, scan the base table when it is lost.

Section V-A.2. Claims: weak (Theorem 2); strong where the base table is scanned also for a lower
value (`always_scan`). For *reference counts* (section VI) there is no theorem. What fails:

- Two managers, not even convergent. min = 1 of {k2}; k2 is deleted. A reads (1), scans: nothing. k1
  = 2 is inserted. B reads (1) and ignores 2, *without a trace*; A's deleteTAS passes.
  `marks` mends it: a scanner first marks the record by test-and-set; whoever would ignore an entry
  on a marked record clears the mark instead, so that the scanner's last test fails.
- Reference counts, one manager and no failure. {k1 = 4}; delete k1, insert k2 = 5, delete k2. The
  scan for the first entry already counts k2: (5, 1); the second makes it (5, 2), the third (5, 1).
  `minimum` mends it.

NULL is behind every value, for MIN and for MAX: a group of NULLs alone is there and shows NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Final, NamedTuple

from steadyview.maintenance.records.entries import LogEntry, RecordKey
from steadyview.maintenance.records.requests import (
    MARKED,
    Answered,
    Fields,
    GroupScan,
    ReadRecord,
    ScanGroup,
    Stamp,
    Steps,
    StoredRecord,
)
from steadyview.maintenance.records.tas import Tas
from steadyview.maintenance.records.writing import written

SCAN: Final = object()
"""The decision that only the base table knows."""
Before = Callable[[Any, Any], bool]
Decision = Any
"""Other fields, the same ones (the entry is ignored), or SCAN."""


def lower(one: Any, other: Any) -> bool:
    """The order of MIN."""
    return one is not None and (other is None or one < other)


def higher(one: Any, other: Any) -> bool:
    """The order of MAX.

    >>> higher(3, 2), higher(None, 2), higher(2, None)
    (True, False, True)
    """
    return one is not None and (other is None or one > other)


class GroupChange(NamedTuple):
    """What an entry does to one group: each is a value in a tuple, or empty."""

    key: RecordKey
    gone: tuple[Any, ...]
    come: tuple[Any, ...]


def group_changes(entry: LogEntry) -> list[GroupChange]:
    """One, or two where the row goes from one group to another. R(k, x, y) is grouped by x."""
    old, new = entry.old, entry.new
    if old is not None and new is not None and old[1] == new[1]:
        return [] if old[2] == new[2] else [GroupChange(old[1], (old[2],), (new[2],))]
    gone = [GroupChange(old[1], (old[2],), ())] if old is not None else []
    come = [GroupChange(new[1], (), (new[2],))] if new is not None else []
    return gone + come


class MinimumPrinted:
    """`before`: the order, so that the same is MIN and MAX."""

    def __init__(
        self, tas: Tas, before: Before = lower, *, always_scan: bool = False, marks: bool = False
    ) -> None:
        self._tas = tas
        self._before = before
        self._always_scan = always_scan
        self._marks = marks

    def touched(self, entry: LogEntry) -> Collection[RecordKey]:
        """Its groups."""
        return [change.key for change in group_changes(entry)]

    def propagate(self, entry: LogEntry) -> Steps:
        """Group by group."""
        for change in group_changes(entry):
            done = False
            while not done:
                done = yield from self._change(entry, change)

    def _change(self, entry: LogEntry, change: GroupChange) -> Answered:
        record = yield ReadRecord(change.key)
        if self._tas.has_processed(record.stamp.version, entry):
            return True
        fields = self.decided(record.fields, change)
        if fields is SCAN:
            return (yield from self._scanned(entry, change.key, record))
        if fields == record.fields and not record.stamp.note:
            return True
        stamp = Stamp(self._tas.generated(record.stamp.version, entry))
        return (yield from written(self._tas, change.key, record, fields, stamp))

    def decided(self, fields: Fields | None, change: GroupChange) -> Decision:
        """What the record's own value and the entry say together."""
        come = change.come
        if come and (fields is None or self._before(come[0], fields[0])):
            return SCAN if self._always_scan else come
        if fields is not None and change.gone == fields[:1]:
            return SCAN
        return fields

    def _scanned(self, entry: LogEntry, key: RecordKey, record: StoredRecord) -> Answered:
        if self._marks:
            marked = StoredRecord(record.fields, record.stamp._replace(note=MARKED))
            if not (yield from written(self._tas, key, record, *marked)):
                return False
            record = marked
        scan = yield ScanGroup(key)
        stamp = Stamp(self._tas.generated(record.stamp.version, entry))
        return (yield from written(self._tas, key, record, self._found(scan), stamp))

    def _found(self, scan: GroupScan) -> Fields | None:
        return (scan.first,) if scan.count else None


class ReferenceCountsPrinted(MinimumPrinted):
    """With the number of rows that have the value; a scan only when the last of them goes."""

    def decided(self, fields: Fields | None, change: GroupChange) -> Decision:
        """The value and its count after the entry."""
        return counted(self._before, fields, change)

    def _found(self, scan: GroupScan) -> Fields | None:
        return (scan.first, scan.count) if scan.count else None


def counted(before: Before, fields: Fields | None, change: GroupChange) -> Decision:
    """(value, count) after an entry, or SCAN when no row is left that has the value.

    >>> counted(lower, (3, 2), GroupChange("x", (3,), (5,)))
    (3, 1)
    """
    if fields is None:
        return (*change.come, 1) if change.come else None
    first, count = fields
    if change.come and before(change.come[0], first):
        return (*change.come, 1)
    count += (change.come == (first,)) - (change.gone == (first,))
    return (first, count) if count else SCAN
