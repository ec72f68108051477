"""The key-foreign-key join, ours: strong under every fault.

D(x, y, z) of R(x, y) and S(y, z), beside `algorithm_4`. Three things more:

- The read of S(y) brings the number of S(y)'s last entry. The record keeps it, as its stamp's note,
  and z is replaced only by a newer one:   number(record)  =  number of the S entry that z is from.
- *Verify after write*: when R's entry is in, S(y) is read again, and written again if it is newer.
  A change of S before that read is caught by it, and one after it finds x in the view. It is done
  also when the entry is processed already: who did it may have died before it verified.
- Deleting what is not there leaves a tombstone. Otherwise a second copy redrives the insertion,
  finds S(y) back again, writes, and dies.

Needs an index of the view on y. A read of S that is behind the end of the log is done again: it
would not see S(y) that x refers to, nor the change that is to be verified.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from steadyview.algebra import Row
from steadyview.maintenance.records.algorithm_4 import REFERRED, REFERRING
from steadyview.maintenance.records.entries import LogEntry, RecordKey
from steadyview.maintenance.records.requests import (
    Answered,
    BaseRecord,
    Fields,
    ReadBaseRecord,
    ReadLogEnd,
    ReadRecord,
    ReadReferring,
    Stamp,
    Steps,
    UpdateTas,
)
from steadyview.maintenance.records.signatures import is_behind
from steadyview.maintenance.records.tas import SignatureTas
from steadyview.maintenance.records.writing import written


class ForeignKeyJoin:
    """By sig-TAS; the signature has R's entries only."""

    def __init__(self, *, verifies: bool = True) -> None:
        self._tas = SignatureTas()
        self._verifies = verifies

    def touched(self, entry: LogEntry) -> Collection[RecordKey] | None:
        """Of an update of S, only the store knows."""
        return (entry.key,) if entry.relation == REFERRING else None

    def propagate(self, entry: LogEntry) -> Steps:
        """By relation; insertions and deletions in S do nothing."""
        if entry.relation == REFERRING:
            yield from _until_done(self._refer, entry)
            if self._verifies:
                yield from _until_done(self._verify, entry)
        elif entry.old is not None and entry.new is not None:
            yield from self._referred(entry, entry.new)

    def _refer(self, entry: LogEntry) -> Answered:
        record = yield ReadRecord(entry.key)
        if self._tas.has_processed(record.stamp.version, entry):
            return True
        fields, number = None, 0
        if entry.new is not None:
            found = yield from self._looked_up(entry.new[1])
            if found.row is None:
                return True
            fields, number = (entry.new[1], found.row[1]), found.number
        stamp = Stamp(self._tas.generated(record.stamp.version, entry), number)
        return (yield from written(self._tas, entry.key, record, fields, stamp))

    def _looked_up(self, y: Any) -> Answered:
        """S(y) as of now or later."""
        end = yield ReadLogEnd()
        found: BaseRecord = yield ReadBaseRecord(REFERRED, y)
        while is_behind(found.reflected, end):
            found = yield ReadBaseRecord(REFERRED, y)
        return found

    def _verify(self, entry: LogEntry) -> Answered:
        record = yield ReadRecord(entry.key)
        if record.fields is None:
            return True
        found = yield from self._looked_up(record.fields[0])
        if found.row is None or found.number <= record.stamp.note:
            return True
        stamp = record.stamp._replace(note=found.number)
        return (yield UpdateTas(entry.key, record.stamp, found.row, stamp))

    def _referred(self, entry: LogEntry, new: Row) -> Steps:
        keys = yield ReadReferring(new[:1])
        for key in keys:
            done = False
            while not done:
                done = yield from self._update(entry, key, new)

    def _update(self, entry: LogEntry, key: RecordKey, new: Fields) -> Answered:
        record = yield ReadRecord(key)
        if record.fields is None or record.fields[0] != new[0]:
            return True
        if entry.number <= record.stamp.note:
            return True
        stamp = record.stamp._replace(note=entry.number)
        return (yield UpdateTas(key, record.stamp, new, stamp))


def _until_done(part: _Part, entry: LogEntry) -> Steps:
    done = False
    while not done:
        done = yield from part(entry)


_Part = Callable[[LogEntry], Answered]
