"""What every way of immediate propagation and deferred apply says: three kinds of processes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from steadyview.maintenance.ipda.records import DeltaRecord
from steadyview.maintenance.ipda.requests import Steps


class DeferredAlgorithm(Protocol):
    """Its processes may be suspended at every request."""

    def propagate(self, records: Sequence[DeltaRecord]) -> Steps:
        """What a statement of a transaction does for the views' deltas."""

    def commit(self, xid: str) -> Steps:
        """What a transaction does when its work is done."""

    def apply(self, view: str, after: int, upto: int) -> Steps:
        """Roll the view from its refresh time `after` to `upto`, which has passed."""
