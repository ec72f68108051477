"""Keeping logs and deltas small: merging files, forgetting what lies behind the retention.

A state at cn >= cutoff stays readable: the deltas kept reach back to the older of cutoff and the
newest base at or before it, and to where the slowest subscription is. A log row stays while a view,
a build, the next audit, a subscription, an unsettled transaction or a state within the retention
may need it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta

from steadyview.catalog import Published, ViewRow
from steadyview.crash_points import crash_point
from steadyview.delta import Table, compaction
from steadyview.errors import OutsideRetention, StorageDamaged
from steadyview.runtime.building import clear_builds
from steadyview.runtime.holding_back import audited, holds
from steadyview.runtime.kept import inputs_of
from steadyview.runtime.parts import Parts
from steadyview.warehouse.view_store import Shape, ViewStore

EVERY = 600.0
LOOK = 5.0
"""Seconds between two looks at how many small files there are."""
CROWDED = 8 * compaction.MANY_FILES
"""With more of them in a table things are tidied up at once: no life may be as long as `EVERY`."""
_LEFT_ALONE = ("stopped", "paused")
"""Views that stay as they are, for whoever looks into them."""
READERS = timedelta(hours=1)
"""Unlisted files stay so long for readers that still use them."""


class Housekeeping:
    """Tidies one warehouse; the caller holds the lease."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._next = time.monotonic() + EVERY
        self._looked = time.monotonic()
        self._dropped: set[int] = set()
        """Views that were dropped already when things were last tidied up."""

    def sometimes(self) -> None:
        """Tidy up if the last time is long ago, or a table has very many small files.

        Later, if the clock is not to be believed.
        """
        if not self._parts.watch.agrees():
            return
        if time.monotonic() >= self._next:
            self.now()
        elif time.monotonic() - self._looked >= LOOK:
            self._looked = time.monotonic()
            if any(compaction.small_files(t) > CROWDED for t in self._tables()):
                self.now()

    def now(self) -> None:
        """Tidy up; ClockAhead where what is old cannot be told."""
        self._parts.watch.check()
        self._next = time.monotonic() + EVERY
        cutoff = self._cutoff()
        self._drop_paused()
        catalog = self._parts.catalog
        for row in (*catalog.views.all(), *catalog.views.replacements()):
            if row.cn is not None and row.state not in _LEFT_ALONE:
                # damaged files stop their view when it is worked on
                with suppress(StorageDamaged):
                    self._tidy_view(row, cutoff)
        self._remove_dropped()
        clear_builds(self._parts)
        self.logs()
        with suppress(StorageDamaged):
            catalog.holds.found(holds(self._parts, cutoff))

    def _drop_paused(self) -> None:
        """Drop the views whose files have been gone for as long as states are retained.

        Streams that were away for so long are forgotten as well.
        """
        retention = int(self._parts.project.retention.total_seconds() * 1_000_000)
        since = self._parts.clock.now_us() - retention
        self._parts.catalog.streams.forget_before(since)
        for row in self._parts.catalog.views.all():
            if row.paused is not None and row.paused < since:
                self._parts.catalog.views.drop(row.name)

    def _remove_dropped(self) -> None:
        """Remove what was replaced; a while later, for readers that still use it."""
        dropped = self._parts.catalog.views.dropped()
        for row in dropped:
            if row.id in self._dropped:
                ViewStore(self._parts.root, row, Shape()).remove()
                self._parts.catalog.views.remove(row.id)
        self._dropped = {row.id for row in dropped}

    def logs(self) -> None:
        """Tidy up the update log alone."""
        self._parts.watch.check()
        cutoff = self._cutoff()
        for source in self._parts.catalog.sources.states():
            self._tidy_log(source.name, cutoff)

    def _tables(self) -> Iterator[Table]:
        """The tables that grow by small files, of those that are tidied up."""
        catalog = self._parts.catalog
        for source in catalog.sources.states():
            for relation in catalog.sources.schemas(source.name):
                yield self._parts.log.table(relation.name)
        for row in catalog.views.all():
            if row.cn is not None and row.state not in _LEFT_ALONE:
                yield ViewStore(self._parts.root, row, Shape()).delta

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

    def _tidy_view(self, row: ViewRow, cutoff: int) -> None:
        """Few delta files, none behind the retention; one base."""
        views = self._parts.catalog.views
        views.forget_before(row.id, cutoff)
        crash_point("states-forgotten")
        store = ViewStore(self._parts.root, row, Shape())
        assert row.cn is not None
        assert row.base_cn is not None
        assert row.base_version is not None
        if store.steps.exists():
            compaction.compact(store.steps, "_cn", row.cn, compaction.MANY_FILES)
            compaction.prune(store.steps, "_cn", store.state_cn() + 1)
            store.steps.vacuum(READERS)
            store.state.vacuum(READERS)
        compaction.compact(store.delta, "_cn", row.cn, compaction.MANY_FILES)
        subscribed = self._parts.catalog.subscriptions.held(row.id)
        needed = min([cutoff, row.base_cn, *self._read_from(row), *subscribed])
        compaction.prune(store.delta, "_cn", needed + 1)
        self._parts.catalog.gaps.forget_before(row.id, min(needed, row.oldest_cn))
        # readers of the version before are served until its files are vacuumed
        version = store.delta.version()
        views.publish([Published(row.id, row.cn, version, row.base_cn, row.base_version)])
        crash_point("delta-republished")
        store.delta.vacuum(READERS)
        views.invalidate_bases(row.id, row.base_version)
        crash_point("bases-invalidated")
        store.base.vacuum(READERS)

    def _read_from(self, row: ViewRow) -> list[int]:
        """Where the nodes stand that read this one, and the first states that are built of it."""
        catalog = self._parts.catalog
        rows = [*catalog.views.all(), *catalog.views.replacements()]
        readers = [r for r in rows if row.id in inputs_of(r).values()]
        return [r.cn for r in readers if r.cn is not None] + [b.cn for b in catalog.builds.all()]

    def _tidy_log(self, source: str, cutoff: int) -> None:
        catalog, log = self._parts.catalog, self._parts.log
        kept = [r for r in catalog.views.all() if r.state == "active"]
        rows = [*kept, *catalog.views.replacements()]
        reached = [r.cn for r in rows if r.cn is not None]
        built = [build.cn for build in catalog.builds.all()]
        # changes are told with their times, and the commit table goes no further than the log
        subscribed = catalog.subscriptions.held()
        needed = min([cutoff, *reached, *built, *audited(self._parts).values(), *subscribed])
        state = catalog.sources.state(source)
        first = min(catalog.commits.seq_upto(source, needed), state.settled) + 1
        # before the log: who reads rows knows then whether all were there (`managers/lanes.py`)
        catalog.commits.forget_before(needed)
        crash_point("commits-forgotten")
        for relation in catalog.sources.schemas(source):
            log.compact(relation.name, state.last_seq, compaction.MANY_FILES)
            log.prune(relation.name, first)
            log.vacuum(relation.name, READERS)
