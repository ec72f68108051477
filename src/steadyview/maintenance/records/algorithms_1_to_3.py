"""Algorithms 1, 2 and 3: COUNT and all views that are sums, by read and test-and-set.

Section V-A. Claim (Theorem 1): strong. It holds with failures only for sig-TAS with tombstones
(`tas`), and only under the flow rule.

    a passed test-and-set:  fields' = fields + amounts of the entries,  signature' = signature +
    them

Departs from the print: insertion, deletion and update are one program; an update within a group is
one operation where Algorithm 3 does nothing (right for COUNT(*), wrong for SUM and for COUNT(y)
with NULLs); Algorithm 2 gives the deleted record no new signature, here it is the tombstone's.

*Group commit*: entries are taken together, and one record has one operation for all of them. Those
it has seen are dropped *one by one*: after a redrive groups are cut elsewhere, so that neither the
last nor the first entry tells of the others. A net of zero is written too, on an absent record as a
tombstone: another copy that does only the first half must find it done.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import reduce

from steadyview.maintenance.records.additive_views import AdditiveView, added
from steadyview.maintenance.records.entries import LogEntry, RecordKey
from steadyview.maintenance.records.requests import Amounts, Answered, ReadRecord, Stamp, Steps
from steadyview.maintenance.records.requests import StoredRecord as Stored
from steadyview.maintenance.records.tas import Tas
from steadyview.maintenance.records.writing import written

Additions = Sequence[tuple[LogEntry, Amounts]]


class Algorithms1To3:
    """Read, test whether it is processed, test-and-set; again if somebody else was faster."""

    def __init__(self, view: AdditiveView, tas: Tas) -> None:
        self._view = view
        self._tas = tas

    def touched(self, entry: LogEntry) -> Collection[RecordKey]:
        """One record, or two where the row goes from one to another."""
        return self._view.additions(entry)

    def propagate(self, entry: LogEntry) -> Steps:
        """A row that leaves a record for another changes both, each with its own memory."""
        return self.propagate_together((entry,))

    def propagate_together(self, entries: Sequence[LogEntry]) -> Steps:
        """One operation per record."""
        for key, additions in by_record(self._view, entries).items():
            while not (yield from self._add(key, additions)):
                pass

    def _add(self, key: RecordKey, additions: Additions) -> Answered:
        record = yield ReadRecord(key)
        version = record.stamp.version
        unseen = [(e, a) for e, a in additions if not self._tas.has_processed(version, e)]
        if not unseen:
            return True
        amounts = reduce(added, (amounts for _, amounts in unseen))
        if record.fields is None and self._view.rows(amounts) < 0:
            return True  # printed: what is not there cannot be deleted
        return (yield from self._write(key, record, amounts, [entry for entry, _ in unseen]))

    def _write(
        self, key: RecordKey, record: Stored, amounts: Amounts, entries: Sequence[LogEntry]
    ) -> Answered:
        fields = added(record.fields, amounts)
        stamp = Stamp(reduce(self._tas.generated, entries, record.stamp.version))
        alive = fields if self._view.rows(fields) > 0 else None
        return (yield from written(self._tas, key, record, alive, stamp))


def by_record(view: AdditiveView, entries: Sequence[LogEntry]) -> dict[RecordKey, Additions]:
    """What the entries add to each record, in their order."""
    found: dict[RecordKey, list[tuple[LogEntry, Amounts]]] = {}
    for entry in entries:
        for key, amounts in view.additions(entry).items():
            found.setdefault(key, []).append((entry, amounts))
    return dict(found)
