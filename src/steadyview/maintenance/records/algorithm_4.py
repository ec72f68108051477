"""Algorithm 4: the key-foreign-key join D(x, y, z) of R(x, y) and S(y, z), as printed.

Section V-B. Claim (Theorem 3): weak. So it is with one manager, if z is not matched (below).
With two it does not converge: A (insert R(x, y)) reads S(y) = 2; S(y) becomes 0; B scans the view
for y, and x is not there; A inserts (x, y, 2). No test-and-set can see it.
`matches_z`: as printed, an update of S looks for records with y *and its old z*. That fails with
one manager too: S(y) goes 2 -> 0, is deleted, inserted as 1, and becomes 2; R reads 2; the entry 2
-> 0 matches and 1 -> 2 does not.
Where S(y) is gone when it is read, R's entry is left out: x has left y since, and has a later
entry. Departs from the print: it writes V for D, and "the entire base table" is the view.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from steadyview.algebra import Row
from steadyview.maintenance.records.entries import LogEntry, RecordKey
from steadyview.maintenance.records.requests import (
    Answered,
    BaseRecord,
    Fields,
    ReadBaseRecord,
    ReadRecord,
    ReadReferring,
    Stamp,
    Steps,
    UpdateTas,
)
from steadyview.maintenance.records.tas import Tas
from steadyview.maintenance.records.writing import written

REFERRING: Final = "R"
REFERRED: Final = "S"


class Algorithm4:
    """R's entries change one record; updates of S all that refer to it."""

    def __init__(self, tas: Tas, *, matches_z: bool = True) -> None:
        self._tas = tas
        self._matches_z = matches_z

    def touched(self, entry: LogEntry) -> Collection[RecordKey] | None:
        """Of an update of S, only the store knows."""
        return (entry.key,) if entry.relation == REFERRING else None

    def propagate(self, entry: LogEntry) -> Steps:
        """By relation; insertions and deletions in S do nothing."""
        if entry.relation == REFERRING:
            done = False
            while not done:
                done = yield from self._refer(entry)
        elif entry.old is not None and entry.new is not None:
            yield from self._referred(entry, entry.old, entry.new)

    def _refer(self, entry: LogEntry) -> Answered:
        record = yield ReadRecord(entry.key)
        if self._tas.has_processed(record.stamp.version, entry):
            return True
        fields: Fields | None = None
        if entry.new is not None:
            found: BaseRecord = yield ReadBaseRecord(REFERRED, entry.new[1])
            if found.row is None:
                return True
            fields = (entry.new[1], found.row[1])
        stamp = Stamp(self._tas.generated(record.stamp.version, entry))
        return (yield from written(self._tas, entry.key, record, fields, stamp))

    def _referred(self, entry: LogEntry, old: Row, new: Row) -> Steps:
        wanted = old if self._matches_z else old[:1]
        keys = yield ReadReferring(wanted)
        for key in keys:
            done = False
            while not done:
                done = yield from self._update(entry, key, wanted, new)

    def _update(self, entry: LogEntry, key: RecordKey, wanted: Row, new: Row) -> Answered:
        record = yield ReadRecord(key)
        if record.fields is None or record.fields[: len(wanted)] != wanted:
            return True
        if self._tas.has_processed(record.stamp.version, entry):
            return True
        stamp = Stamp(self._tas.generated(record.stamp.version, entry))
        return (yield UpdateTas(key, record.stamp, new, stamp))
