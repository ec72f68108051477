"""How much was done by a process that keeps views, for `status` and the summary of a run."""

from __future__ import annotations

import threading
from collections import Counter


class Tally:
    """Batches, questions to sources, and changed rows per view, since the views were planned.

    Counted by the thread of batches and by the one of first states: under a lock.
    """

    def __init__(self) -> None:
        self._counting = threading.Lock()
        self._changes: Counter[str] = Counter()
        self.batches = 0
        self.lookups = 0

    def batch(self, lookups: int) -> None:
        """One more batch, or piece of one, with its questions."""
        with self._counting:
            self.batches += 1
            self.lookups += lookups

    def asked(self, lookups: int) -> None:
        """Questions outside of batches."""
        with self._counting:
            self.lookups += lookups

    def changed(self, view: str, rows: int) -> None:
        """So many more rows of the view were changed."""
        with self._counting:
            self._changes[view] += rows

    def changes(self) -> dict[str, int]:
        """Changed rows per view."""
        with self._counting:
            return dict(self._changes)
