"""What happens in a run, in words."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from steadyview.algebra import Row
from steadyview.maintenance.records.entries import LogEntry, LogStream
from steadyview.maintenance.records.requests import (
    ApplyIfUnseen,
    DeleteTas,
    GuardedUpsert,
    InsertTas,
    PutRecord,
    ReadBaseRecord,
    ReadRecord,
    RegisterPositions,
    ScanGroup,
    StoredRecord,
    UpdateTas,
)


def told_lane(lane: Hashable) -> str:
    """A stream by its bucket; after a new partitioning, by both.

    >>> told_lane(LogStream("base", 1, 1, 2)), told_lane(LogStream("base", 1, 2, 0)), told_lane(1)
    ('s2', "s'0", 'queue 1')
    """
    if isinstance(lane, LogStream):
        return f"s{chr(39) * (lane.partitioning - 1)}{lane.bucket}"
    return f"queue {lane}" if isinstance(lane, int) else f"{lane[1]}"  # type: ignore[index]


def told_change(entry: LogEntry) -> str:
    """A change of a base record."""
    what = f"{entry.relation} {entry.key}: {told_row(entry.old)} becomes {told_row(entry.new)}"
    return f"base: {what} ({told_lane(entry.stream)}:{entry.number})"


def told_request(request: Any, answer: Any) -> str:
    """What was asked and answered; nothing for what changes and shows nothing."""
    kind = type(request)
    if kind is ReadRecord:
        return f"reads {request.key}: {_record(answer)}"
    if kind in (InsertTas, UpdateTas, DeleteTas):
        fields = None if kind is DeleteTas else request.fields
        stamp = request.stamp
        if not answer:
            return f"fails to write {request.key}"
        record = "gone" if stamp is None else _record(StoredRecord(fields, stamp))
        return f"writes {request.key}: {record}"
    if kind is ScanGroup:
        found = f"{answer.first} ({answer.count} rows)" if answer.count else "nothing"
        return f"scans {request.key}: {found}"
    if kind is ReadBaseRecord:
        return f"reads {request.relation} {request.key}: {told_row(answer.row)}"
    if kind is RegisterPositions:
        there = [(told_lane(lane), number) for lane, number in request.positions.items() if number]
        positions = ", ".join(f"{lane}:{number}" for lane, number in there)
        return f"registers {positions}" if positions else ""
    if kind in (PutRecord, GuardedUpsert):
        return f"writes {request.key}: {told_row(request.fields)}"
    if kind is ApplyIfUnseen:
        amounts = " and ".join(told_row(amounts) for _, amounts in request.additions)
        return f"adds to {request.key}: {amounts}"
    return ""


def told_row(row: Row | None) -> str:
    """Columns, NULL as SQL has it."""
    if row is None:
        return "absent"
    return f"({', '.join('NULL' if part is None else str(part) for part in row)})"


def _record(record: StoredRecord) -> str:
    version = record.stamp.version
    if isinstance(version, dict):
        signature = ", ".join(f"{told_lane(stream)}:{n}" for stream, n in version.items())
        version = f"{{{signature}}}"
    mark = f", note {record.stamp.note}" if record.stamp.note else ""
    return told_row(record.fields) + (f" {version}{mark}" if version is not None else "")
