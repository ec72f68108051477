"""A live store in the place of the simulator's: update programs on a store's own operations.

A test-and-set's note stands in the signature, under a name that no stream has. Fields are one text,
or, where they are added up, sums.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from steadyview.maintenance.records.entries import LogStream
from steadyview.maintenance.records.requests import (
    ApplyIfUnseen,
    DeleteTas,
    GuardedUpsert,
    InsertTas,
    ReadRecord,
    RegisterPositions,
    Stamp,
    StoredRecord,
    UpdateTas,
)
from steadyview.serving.contract import Addition, Position, Put, RecordStore, TestAndSet
from steadyview.serving.layout import ROWS, RecordLayout

NOTE = "note"
COLUMNS = (("k", "STRING"), ("fields", "STRING"))


def text_of(stream: LogStream) -> str:
    return ":".join(map(str, stream))


def stream_of(text: str) -> LogStream:
    source, incarnation, partitioning, bucket = text.split(":")
    return LogStream(source, int(incarnation), int(partitioning), int(bucket))


class LiveRecords:
    """What `RecordRun` needs of a store, over one view's records in `live`."""

    live: RecordStore

    def __init__(self, tas, shows, records, additive=None) -> None:
        self._shows, self._additive = shows, additive
        self.contentions = 0
        self.registered: dict[Any, int] = {}
        width = len(additive.amounts("L", ("k", "x", None))) if additive else 0
        self._sums = [f"a{n}" for n in range(width)]
        sums = ((ROWS, "BIGINT"), *((name, "BIGINT") for name in self._sums))
        layout = RecordLayout("kept", COLUMNS if not additive else COLUMNS[:1], ("k",), sums)
        self.live.forget("kept")
        self._records = self.live.begin(layout, "w", 1, "a test")
        self.live.switch(self._records, "changes", Position(0, 0, 0))
        self.shown = {key: [shows(record.fields)] for key, record in records.items()}
        for key, record in records.items():
            assert self._tested(InsertTas(key, Stamp({}), record.fields, Stamp({})))

    def asked(self, request: Any) -> Any:
        kind = type(request)
        if kind is ReadRecord:
            return self._read(request.key)
        if kind is RegisterPositions:
            for lane, entry in request.positions.items():
                self.registered[lane] = max(self.registered.get(lane, 0), entry)
                self.live.move(self._records, text_of(lane), entry, 0)
            return None
        if kind in (InsertTas, UpdateTas, DeleteTas):
            answer: Any = self._tested(request)
            self.contentions += not answer
        elif kind is GuardedUpsert:
            entry, values = request.entry, self._values(request.fields)
            put = Put((request.key,), entry.number, values)
            answer = self.live.put(self._records, text_of(entry.stream), [put])
        else:
            assert kind is ApplyIfUnseen
            answer = self._added(request)
        self._look(request.key)
        return answer

    def reclaim(self, registered: Mapping[LogStream, int]) -> None:
        for stream, entry in registered.items():
            self.live.reclaim(self._records, text_of(stream), entry)

    def _read(self, key: Any) -> StoredRecord:
        (found,) = self.live.signed(self._records, [(key,)])
        entries = dict(found.signature)
        entries.pop("changes", None)
        note = entries.pop(NOTE, 0)
        version = {stream_of(text): entry for text, entry in entries.items()}
        return StoredRecord(self._fields(found.values), Stamp(version, note))

    def _tested(self, request: Any) -> bool:
        there = type(request) is not InsertTas
        fields = None if type(request) is DeleteTas else request.fields
        test = TestAndSet(
            (request.key,),
            entries_of(request.expected),
            there,
            self._values(fields),
            entries_of(request.stamp),
        )
        (passed,) = self.live.test_and_set(self._records, [test])
        return passed

    def _added(self, request: ApplyIfUnseen) -> None:
        for entry, amounts in request.additions:
            addition = Addition((request.key,), entry.number, self._values(amounts))
            self.live.add(self._records, text_of(entry.stream), [addition])

    def _values(self, fields: Any) -> dict[str, Any] | None:
        if fields is None:
            return None
        if self._additive is None:
            return {ROWS: 1, "fields": json.dumps(fields)}
        return dict(zip([ROWS, *self._sums], [self._additive.rows(fields), *fields], strict=True))

    def _fields(self, values: Mapping[str, Any] | None) -> Any:
        if values is None:
            return None
        if self._additive is None:
            return tuple(json.loads(values["fields"]))
        return tuple(int(values[name]) for name in self._sums)

    def _look(self, key: Any) -> None:
        """What a reader sees now."""
        fields = self._read(key).fields
        value = None if fields is None else self._shows(fields)
        history = self.shown.setdefault(key, [None])
        if history[-1] != value:
            history.append(value)


def entries_of(stamp: Stamp) -> dict[str, int]:
    entries = {text_of(stream): entry for stream, entry in stamp.version.items()}
    return entries | ({NOTE: stamp.note} if stamp.note else {})
