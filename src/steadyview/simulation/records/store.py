"""A store: operations on one record each, atomic; the floor; and what readers saw of every record.

Signatures are kept only as far as they are above the floor; who reads a record gets both together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from steadyview.maintenance.records.additive_views import AdditiveView
from steadyview.maintenance.records.apply_if_unseen import applied
from steadyview.maintenance.records.entries import RecordKey
from steadyview.maintenance.records.requests import (
    ApplyIfUnseen,
    DeleteTas,
    Fields,
    GuardedUpsert,
    InsertTas,
    PutRecord,
    ReadRecord,
    ReadReferring,
    RegisterPositions,
    Stamp,
    StoredRecord,
    UpdateTas,
)
from steadyview.maintenance.records.signatures import (
    NO_SIGNATURE,
    Positions,
    Signature,
    above,
    generated,
    has_processed,
    is_covered,
    latest,
)
from steadyview.maintenance.records.tas import Tas

Shows = Callable[[Fields], Fields | None]


class SimulatedStore:
    """`shows`: what readers see of fields; `additive`: what apply-if-unseen adds up."""

    def __init__(
        self,
        tas: Tas,
        shows: Shows,
        records: Mapping[RecordKey, StoredRecord],
        additive: AdditiveView | None = None,
    ) -> None:
        self.registered: dict[Any, int] = {}
        """By lane; under the flow rule, Positions."""
        self.floor: Signature = NO_SIGNATURE
        self.contentions = 0
        self.is_being_copied = False
        self._absent = StoredRecord(None, Stamp(tas.first))
        self._tests = tas.tests
        self._shows = shows
        self._additive = additive
        self.records = dict(records)
        self.shown: dict[RecordKey, list[Fields | None]] = {
            key: [self._visible(record.fields)] for key, record in records.items()
        }

    def asked(self, request: Any) -> Any:
        """Do the request, now; its answer."""
        return _ANSWERS[type(request)](self, request)

    def record(self, key: RecordKey) -> StoredRecord:
        """What a reader of the record gets; its signature is at least the floor."""
        record = self.records.get(key, self._absent)
        if not self.floor:
            return record
        fields, stamp = record
        return StoredRecord(fields, Stamp(latest(stamp.version, self.floor), stamp.note))

    def reclaim(self, registered: Positions) -> None:
        """Raise the floor by the tombstones that nobody needs any more, and drop them."""
        if self.is_being_copied:
            return
        for key in [key for key, record in self.records.items() if record.fields is None]:
            version = self.records[key].stamp.version
            if is_covered(version, registered):
                del self.records[key]
                self._raise_floor(version)

    def restore(self, parts: Mapping[str, Any]) -> None:
        """Become what was copied; readers see it."""
        for name, copied in parts.items():
            setattr(self, name, dict(copied))
        for key in {*self.records, *self.shown}:
            self._show(key, self.records.get(key, self._absent).fields)

    def _raise_floor(self, version: Signature) -> None:
        self.floor = latest(self.floor, version)

    def _write(self, key: RecordKey, fields: Fields | None, stamp: Stamp | None) -> None:
        if stamp is None:
            self.records.pop(key, None)
        else:
            if self.floor:
                stamp = Stamp(above(stamp.version, self.floor), stamp.note)
            self.records[key] = StoredRecord(fields, stamp)
        self._show(key, fields)

    def _show(self, key: RecordKey, fields: Fields | None) -> None:
        history = self.shown.setdefault(key, [None])
        value = self._visible(fields)
        if history[-1] != value:
            history.append(value)

    def _visible(self, fields: Fields | None) -> Fields | None:
        return None if fields is None else self._shows(fields)

    def _is_as_expected(self, request: Any) -> bool:
        """Without test-and-set, nothing is compared."""
        if not self._tests or self.record(request.key).stamp == request.expected:
            return True
        self.contentions += 1
        return False

    def _read(self, request: ReadRecord) -> StoredRecord:
        return self.record(request.key)

    def _insert(self, request: InsertTas) -> bool:
        alive = self.records.get(request.key, self._absent).fields is not None
        if (alive and self._tests) or not self._is_as_expected(request):
            return False
        self._write(request.key, request.fields, request.stamp)
        return True

    def _update(self, request: UpdateTas) -> bool:
        alive = self.records.get(request.key, self._absent).fields is not None
        if (not alive and self._tests) or not self._is_as_expected(request):
            return False
        self._write(request.key, request.fields, request.stamp)
        return True

    def _delete(self, request: DeleteTas) -> bool:
        alive = self.records.get(request.key, self._absent).fields is not None
        if (not alive and self._tests) or not self._is_as_expected(request):
            return False
        self._write(request.key, None, request.stamp)
        return True

    def _put(self, request: PutRecord) -> None:
        gone = request.fields is None
        self._write(request.key, request.fields, None if gone else self._absent.stamp)

    def _upsert(self, request: GuardedUpsert) -> None:
        version = self.record(request.key).stamp.version
        if not has_processed(version, request.entry):
            self._write(request.key, request.fields, Stamp(generated(version, request.entry)))

    def _apply_unseen(self, request: ApplyIfUnseen) -> None:
        assert self._additive is not None
        before = self.record(request.key)
        after = applied(self._additive, before, request.additions)
        if after is not before:
            self._write(request.key, after.fields, after.stamp)

    def _referring(self, request: ReadReferring) -> list[RecordKey]:
        wanted, size = request.first, len(request.first)
        return [k for k, r in self.records.items() if r.fields and r.fields[:size] == wanted]

    def _register(self, request: RegisterPositions) -> None:
        for lane, position in request.positions.items():
            self.registered[lane] = max(self.registered.get(lane, 0), position)


_ANSWERS: Mapping[type, Callable[[SimulatedStore, Any], Any]] = {
    ReadRecord: SimulatedStore._read,
    InsertTas: SimulatedStore._insert,
    UpdateTas: SimulatedStore._update,
    DeleteTas: SimulatedStore._delete,
    PutRecord: SimulatedStore._put,
    GuardedUpsert: SimulatedStore._upsert,
    ApplyIfUnseen: SimulatedStore._apply_unseen,
    ReadReferring: SimulatedStore._referring,
    RegisterPositions: SimulatedStore._register,
}
