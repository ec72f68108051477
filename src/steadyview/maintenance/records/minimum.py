"""MIN and MAX, ours: strong, one scan per lost value, no snapshot over streams.

A record holds (value, number of rows that have it). A scan knows what it reflects: P, per stream
the last entry. It is done under a mark (`minimum_printed`), and

    signature'  =  max(signature, P, entry);   entries up to P are "already processed" from then on

so that the counts are exact where the printed ones count a row twice. Assumes: a scan shows one
state per stream (any vector of them is a base state), and says P truthfully. A scan that is
*behind* the record must not be used: P >= the end of the log at the moment of the mark, else scan
again. P >= signature is not enough, for ignored entries are in no signature.
Needs the mark, tombstones, the signature, the flow rule. Strong under every fault.
"""

from __future__ import annotations

from steadyview.maintenance.records.entries import LogEntry, RecordKey
from steadyview.maintenance.records.minimum_printed import Before, ReferenceCountsPrinted, lower
from steadyview.maintenance.records.requests import (
    MARKED,
    Answered,
    GroupScan,
    ReadLogEnd,
    ScanGroup,
    Stamp,
    StoredRecord,
)
from steadyview.maintenance.records.signatures import is_behind, latest
from steadyview.maintenance.records.tas import SignatureTas
from steadyview.maintenance.records.writing import written


class Minimum(ReferenceCountsPrinted):
    """Reference counts with scans that know what they reflect."""

    def __init__(self, before: Before = lower) -> None:
        super().__init__(SignatureTas(), before, marks=True)

    def _scanned(self, entry: LogEntry, key: RecordKey, record: StoredRecord) -> Answered:
        marked = StoredRecord(record.fields, record.stamp._replace(note=MARKED))
        if not (yield from written(self._tas, key, record, *marked)):
            return False
        scan = yield from self._fresh(key)
        version = self._tas.generated(marked.stamp.version, entry)
        stamp = Stamp(latest(version, scan.reflected))
        return (yield from written(self._tas, key, marked, self._found(scan), stamp))

    def _fresh(self, key: RecordKey) -> Answered:
        """A scan that shows all that was in the log when the record was marked."""
        end = yield ReadLogEnd()
        scan: GroupScan = yield ScanGroup(key)
        while is_behind(scan.reflected, end):
            scan = yield ScanGroup(key)
        return scan

