"""Algorithm 1, the initial apply process, as printed: by records' write times and lists of xids.

Beyer et al., section 4. Assumes: locked reads wait for transactions that wrote in their range.
Promised: no row is applied twice, and a transaction is atomic in each view.
Not promised, as sections 4.1 to 4.6 tell: a record stamped and then suspended is lost (4.1); a
transaction's last record in a delta stands for its commit, so that views disagree (4.3) and
dependent transactions are reordered (4.4); clocks of several nodes lose and reorder (4.6).

`atomic`: with the fine-grained lock of section 4.2. The clock is read and the record inserted under
the delta's IPDA lock, and the apply process passes that lock first. This mends 4.1 alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from steadyview.maintenance.ipda.records import DeltaRecord
from steadyview.maintenance.ipda.requests import (
    ApplyRecords,
    EndTransaction,
    InsertRecord,
    LockForReading,
    LockForWriting,
    ReadClock,
    ReadLaterRecords,
    ReadRecords,
    RetrieveRecords,
    Steps,
    Unlock,
)


class Algorithm1:
    """By write times; a transaction counts as committed at its last record in the delta."""

    def __init__(self, *, atomic: bool = False) -> None:
        self._atomic = atomic

    def propagate(self, records: Sequence[DeltaRecord]) -> Steps:
        """What a statement of a transaction does for the views' deltas."""
        for record in records:
            if self._atomic:
                yield LockForWriting(record.view)
            timestamp = yield ReadClock()
            yield InsertRecord(replace(record, timestamp=timestamp))
            if self._atomic:
                yield Unlock(record.view)

    def commit(self, xid: str) -> Steps:
        """What a transaction does when its work is done."""
        yield EndTransaction()

    def apply(self, view: str, after: int, upto: int) -> Steps:
        """Roll the view from its refresh time `after` to `upto`, which has passed."""
        if self._atomic:
            yield LockForReading(view, upto)
        written = yield ReadRecords(view, after, upto)  # step 1
        later = yield ReadLaterRecords(view, upto)  # step 2
        xids = {record.xid for record in written} - {record.xid for record in later}
        records = yield RetrieveRecords(view, frozenset(xids))  # step 3
        yield ApplyRecords(view, upto, tuple(records))
