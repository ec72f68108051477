"""Apply-if-unseen: our one-operation form of Algorithms 1 to 3.

    if signature[s] < e:  fields += amounts, signature[s] = e;  a tombstone where no rows are left

is one statement, or one script, of the store. There is no read, no test that may fail, and so no
contention; the claim is that of `algorithms_1_to_3` under every fault. Needs: the flow rule,
tombstones, the floor for absent records.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import reduce

from steadyview.maintenance.records.additive_views import AdditiveView, added
from steadyview.maintenance.records.algorithms_1_to_3 import by_record
from steadyview.maintenance.records.entries import LogEntry, RecordKey
from steadyview.maintenance.records.requests import (
    Amounts,
    ApplyIfUnseen,
    Stamp,
    Steps,
    StoredRecord,
)
from steadyview.maintenance.records.signatures import generated, has_processed


class ApplyingIfUnseen:
    """One request per record."""

    def __init__(self, view: AdditiveView) -> None:
        self._view = view

    def touched(self, entry: LogEntry) -> Collection[RecordKey]:
        """One record, or two where the row goes from one to another."""
        return self._view.additions(entry)

    def propagate(self, entry: LogEntry) -> Steps:
        """What one entry does to the view."""
        return self.propagate_together((entry,))

    def propagate_together(self, entries: Sequence[LogEntry]) -> Steps:
        """What these entries do, one operation per record."""
        for key, additions in by_record(self._view, entries).items():
            yield ApplyIfUnseen(key, tuple(additions))


def applied(
    view: AdditiveView, before: StoredRecord, additions: Sequence[tuple[LogEntry, Amounts]]
) -> StoredRecord:
    """What the store's operation makes of a record: the meaning that every store must have."""
    version = before.stamp.version
    unseen = [(entry, more) for entry, more in additions if not has_processed(version, entry)]
    if not unseen:
        return before
    amounts = reduce(added, (more for _, more in unseen))
    fields = added(before.fields, amounts)
    version = reduce(generated, (entry for entry, _ in unseen), version)
    alive = fields if view.rows(fields) > 0 else None
    return StoredRecord(alive, Stamp(version))
