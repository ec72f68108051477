"""Keeping logs and deltas small: merging files, forgetting what lies behind the retention.

A state at cn >= cutoff stays readable: the deltas kept reach back to the older of cutoff and the
newest base at or before it. A log row stays while a view, an unsettled transaction or a state
within the retention may need it.
"""

from __future__ import annotations

import time
from datetime import timedelta

from steadyview.errors import OutsideRetention
from steadyview.runtime.parts import Parts

EVERY = 600.0
READERS = timedelta(hours=1)
"""Unlisted files stay so long for readers that still use them."""


class Housekeeping:
    """Tidies one warehouse; the caller holds the lease."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._next = time.monotonic() + EVERY

    def sometimes(self) -> None:
        """Tidy up if the last time is long ago."""
        if time.monotonic() >= self._next:
            self.now()

    def now(self) -> None:
        """Tidy up."""
        self._next = time.monotonic() + EVERY
        cutoff = self._cutoff()
        for source in self._parts.catalog.sources.states():
            self._tidy_log(source.name, cutoff)

    def _cutoff(self) -> int:
        """The oldest cn that the retention asks for."""
        commits = self._parts.catalog.commits
        horizon = self._parts.clock.now_us() - int(
            self._parts.project.retention.total_seconds() * 1_000_000
        )
        try:
            return commits.cn_at(horizon)
        except OutsideRetention:
            return commits.oldest_cn()

    def _tidy_log(self, source: str, cutoff: int) -> None:
        catalog, log = self._parts.catalog, self._parts.log
        reached = [r.cn for r in catalog.views.all() if r.cn is not None and r.state == "active"]
        needed = min([cutoff, *reached])
        state = catalog.sources.state(source)
        first = min(catalog.commits.seq_upto(source, needed), state.settled) + 1
        for relation in catalog.sources.schemas(source):
            log.compact(relation.name, state.last_seq)
            log.prune(relation.name, first)
            log.vacuum(relation.name, READERS)
