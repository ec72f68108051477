"""Rows by their own write time: the first idea of section 4, and its fault.

Beyer et al., section 4, before Algorithm 1. The apply process takes what is there with a timestamp
in (t1, t2]. A record gets its timestamp when it is written, and is seen when its transaction ends;
what ends behind t2 is never looked for again.
Not promised: anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from steadyview.maintenance.ipda.records import DeltaRecord
from steadyview.maintenance.ipda.requests import (
    ApplyRecords,
    EndTransaction,
    InsertRecord,
    ReadClock,
    ReadRecords,
    Steps,
)


class ByWriteTime:
    """Polls the delta by its timestamps."""

    def propagate(self, records: Sequence[DeltaRecord]) -> Steps:
        """What a statement of a transaction does for the views' deltas."""
        for record in records:
            timestamp = yield ReadClock()
            yield InsertRecord(replace(record, timestamp=timestamp))

    def commit(self, xid: str) -> Steps:
        """What a transaction does when its work is done."""
        yield EndTransaction()

    def apply(self, view: str, after: int, upto: int) -> Steps:
        """Roll the view from its refresh time `after` to `upto`, which has passed."""
        records = yield ReadRecords(view, after, upto, waits=False)
        yield ApplyRecords(view, upto, tuple(records))
