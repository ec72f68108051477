"""Algorithm 2, the corrected apply process: a commit table, an IPDA lock around it, one clock.

Beyer et al., section 4.8. Assumes: one clock for all nodes; transactions hold their locks to the
end; locked reads wait for transactions that wrote in their range. With t(x) the time in x's commit
record, read after x's last lock and before its end,

    the step of v from t1 to t2 applies  { rows of x in delta(v) : t1 < t(x) <= t2 }   (Lemma 5)

The IPDA lock covers the time between reading the clock and inserting the commit record, the locked
read of step 2 that between inserting and the end. Without either, a commit record may come behind
the step that should have seen it. Promised: all six properties of section 3 (Theorem 1).

`locked`: without it, step 1 and the writers' lock are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from steadyview.maintenance.ipda.records import DeltaRecord
from steadyview.maintenance.ipda.requests import (
    COMMITS,
    ApplyRecords,
    EndTransaction,
    InsertCommitRecord,
    InsertRecord,
    LockForReading,
    LockForWriting,
    PurgeCommitRecords,
    ReadClock,
    ReadCommitRecords,
    RetrieveRecords,
    Steps,
    Unlock,
)


class Algorithm2:
    """By commit times."""

    def __init__(self, *, locked: bool = True) -> None:
        self._locked = locked

    def propagate(self, records: Sequence[DeltaRecord]) -> Steps:
        """What a statement of a transaction does for the views' deltas."""
        for record in records:
            yield InsertRecord(record)

    def commit(self, xid: str) -> Steps:
        """What a transaction does when its work is done."""
        if self._locked:
            yield LockForWriting(COMMITS)
        timestamp = yield ReadClock()
        yield InsertCommitRecord(xid, timestamp)
        if self._locked:
            yield Unlock(COMMITS)
        yield EndTransaction()

    def apply(self, view: str, after: int, upto: int) -> Steps:
        """Roll the view from its refresh time `after` to `upto`, which has passed."""
        if self._locked:
            yield LockForReading(COMMITS, upto)  # step 1
        xids = yield ReadCommitRecords(after, upto)  # step 2
        records = yield RetrieveRecords(view, frozenset(xids))  # step 3
        yield ApplyRecords(view, upto, tuple(records))

    def purge(self, refreshed: Iterable[int]) -> Steps:
        """Forget what no view needs any more, given the refresh times of all of them (4.5)."""
        yield PurgeCommitRecords(min(refreshed))
