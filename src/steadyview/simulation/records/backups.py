"""A store that once becomes what it was: its last writes are lost, or a backup is restored.

    positions are in the store, and written after the records   =>   nothing is worse than redriven

A copy that is not of one moment has the positions first, and nothing is reclaimed while it is made.
Else a tombstone is gone from the records and not yet in the floor that was copied before: {k1};
s1:4 deletes k1; floor and positions are copied; the tombstone goes; the records are copied, and
restored; k2 is inserted; s1:4, redriven, deletes it.
"""

from __future__ import annotations

from typing import Final

from steadyview.simulation.records.faults import (
    AT_ONCE,
    REGISTRY_ELSEWHERE,
    REGISTRY_FIRST,
    REGISTRY_LAST,
)
from steadyview.simulation.records.store import SimulatedStore

_COPIES, _RESTORES = 0.1, 0.1
_ORDER: Final = {
    AT_ONCE: (("records", "floor", "registered"),),
    REGISTRY_ELSEWHERE: (("records", "floor"),),
    REGISTRY_FIRST: (("registered", "floor"), ("records",)),
    REGISTRY_LAST: (("records", "floor"), ("registered",)),
}
"""Which parts are copied at the same moment, one moment after the other."""


class StoreHistory:
    """Copies part after part, and restores them once. `how` is one of the ways to copy."""

    def __init__(self, store: SimulatedStore, how: str) -> None:
        self._store = store
        self._left = list(_ORDER.get(how, ()))
        self._copied: dict[str, object] = {}
        self._is_over = not how

    def passes(self, point: float) -> bool:
        """A moment, and a number below one that dice gave; whether the store was restored now."""
        if self._is_over:
            return False
        if self._left:
            if point < _COPIES:
                parts = self._left.pop(0)
                self._copied |= {part: dict(getattr(self._store, part)) for part in parts}
                self._store.is_being_copied = bool(self._left)
            return False
        if point < _RESTORES:
            self._is_over = True
            self._store.restore(self._copied)
        return self._is_over
