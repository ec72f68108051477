"""One test-and-set that makes a record as it should be: inserted, updated or deleted."""

from __future__ import annotations

from steadyview.maintenance.records.entries import RecordKey
from steadyview.maintenance.records.requests import (
    Answered,
    DeleteTas,
    Fields,
    InsertTas,
    Stamp,
    StoredRecord,
    UpdateTas,
)
from steadyview.maintenance.records.tas import Tas


def written(
    tas: Tas, key: RecordKey, before: StoredRecord, fields: Fields | None, stamp: Stamp
) -> Answered:
    """From `before`, as it was read, to these fields and this stamp; whether it was still so.

    Where nothing is and nothing is to be, a tombstone is written if there are tombstones at all.
    """
    if fields is not None:
        if before.fields is None:
            return (yield InsertTas(key, before.stamp, fields, stamp))
        return (yield UpdateTas(key, before.stamp, fields, stamp))
    if before.fields is not None:
        return (yield DeleteTas(key, before.stamp, tas.buried(stamp)))
    if tas.buried(stamp) is None:
        return True
    return (yield InsertTas(key, before.stamp, None, stamp))
