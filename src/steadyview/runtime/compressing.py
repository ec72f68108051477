"""Compression of a view's changes: on request, and as its file asks for it.

A range is cut at every cn at which anybody stands or may go on from: readers of changes and what
was handed out to them, streams, bases, views that read this one (also what a crash has left of
them), first states under way, and the tables for other programs. So nobody but a question about a
moment within a range notices it, and that one is refused with the range's ends.

    recorded  ->  files replaced  ->  version published  ->  finished

Whatever a crash leaves between two of these, the next life ends it; until then readers go by what
is recorded. Done by the thread of batches, while no first state is being built beside it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from steadyview.catalog import Gap, Published, ViewRow
from steadyview.crash_points import crash_point
from steadyview.engine.failures import spark_told
from steadyview.errors import ConfigError, OutsideRetention, StorageDamaged, TransientError
from steadyview.runtime.housekeeping import EVERY
from steadyview.runtime.kept import compression_of, inputs_of, shape_of
from steadyview.runtime.parts import Parts
from steadyview.runtime.subscribing import named_view
from steadyview.timing import end_of
from steadyview.warehouse.change_rows import cns_of
from steadyview.warehouse.compression import replace_ranges
from steadyview.warehouse.ranges import to_compress
from steadyview.warehouse.table_mark import CHANGES, TABLES, read_mark, table_folder
from steadyview.warehouse.view_store import DELTA, STEPS, Shape, ViewStore


@dataclass(frozen=True)
class CompressWanted:
    """Of which view, up to which cn (None: all that it shows), and the ends of which periods stay.

    `keep`: 'hour' or 'day'; None: of no periods.
    """

    view: str
    until: int | None = None
    keep: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)

    @staticmethod
    def of(found: Mapping[str, Any]) -> CompressWanted:
        """Back from JSON."""
        return CompressWanted(found["view"], found["until"], found["keep"])


@dataclass(frozen=True)
class CompressedRange:
    """`commits` that changed the view after cn `after`, up to `upto`, as one."""

    after: int
    upto: int
    commits: int


@dataclass(frozen=True)
class Compressed:
    """What was compressed of a view, of all up to cn `until`; the bytes of its changes.

    The files of before stay for a while, for readers that still use them.
    """

    view: str
    until: int
    ranges: tuple[CompressedRange, ...]
    bytes_before: int
    bytes_after: int

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)

    @staticmethod
    def of(found: Mapping[str, Any]) -> Compressed:
        """Back from JSON."""
        ranges = tuple(CompressedRange(**each) for each in found["ranges"])
        return Compressed(**{**found, "ranges": ranges})


class Compressing:
    """Compresses the changes of one warehouse's views; the caller holds the lease."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._catalog = parts.catalog
        self._next = time.monotonic() + EVERY
        self._left = True
        """Whether an earlier life may have left something."""
        self._done: dict[int, int] = {}
        """Up to which time the views are compressed whose files ask for it."""

    def due(self) -> bool:
        """Whether it is time to look at what files ask for, or at what a crash has left."""
        return self._left or time.monotonic() >= self._next

    def now(self) -> None:
        """End what was begun, and compress what files ask for."""
        self._next, self._left = time.monotonic() + EVERY, False
        for row in self._catalog.views.all():
            # a stopped view stays as it is, for whoever looks into it, and so does a paused one
            if row.state == "active" and row.cn is not None:
                self._tried(row)

    def _tried(self, row: ViewRow) -> None:
        """What the view itself is kept from by this is nothing: it is told, and tried again."""
        try:
            self._kept(row)
        except StorageDamaged:
            # its files stop the view when it is worked on
            return
        except TransientError:
            raise
        except Exception as error:  # noqa: BLE001 - told
            first = (str(error).splitlines() or [type(error).__name__])[0]
            fact = "its changes could not be compressed"
            self._catalog.views.tell(row.name, f"{fact}: {first}")

    def compressed(self, wanted: CompressWanted) -> Compressed:
        """Do it; ConfigError or OutsideRetention for what cannot be done."""
        row = named_view(self._catalog, wanted.view)
        if row.kind != "incremental":
            raise ConfigError(
                f'view "{row.name}" is recomputed: its changes are not compressed',
                detail="each of them is the net effect of a refresh or a batch already",
            )
        until = row.cn if wanted.until is None else wanted.until
        assert until is not None
        self._check(row, until)
        return self._compressed(row, until, wanted.keep)

    def _check(self, row: ViewRow, until: int) -> None:
        assert row.cn is not None
        detail = f"it shows cn {row.cn}"
        if until > self._catalog.commits.last_cn():
            fact = f"there is no commit {until} yet"
        elif until > row.cn:
            fact = f'view "{row.name}" does not show cn {until} yet'
        elif until < row.oldest_cn:
            fact = f'view "{row.name}" has nothing to compress up to cn {until}'
            detail = f"its oldest state is at cn {row.oldest_cn}"
        else:
            return
        hint = f"compress up to a moment from cn {row.oldest_cn} to {row.cn}"
        raise OutsideRetention(fact, detail=detail, hint=hint)

    def _kept(self, row: ViewRow) -> None:
        """What the view's file asks for: whole periods only, so that a range is made once."""
        asked = compression_of(row)
        if any(gap.pending for gap in self._catalog.gaps.of([row.id])):
            self._replaced(row, [])
        if asked is None or row.kind != "incremental":
            return
        horizon = self._parts.clock.now_us() - int(asked.after.total_seconds() * 1_000_000)
        ended = end_of(asked.keep, horizon, self._parts.project.timezone)
        if self._done.get(row.id, -1) >= ended:
            return
        with suppress(OutsideRetention):
            until = min(self._catalog.commits.cn_at(ended), row.cn or 0)
            if until > row.oldest_cn:
                self._compressed(row, until, asked.keep)
        self._done[row.id] = ended

    def _compressed(self, row: ViewRow, until: int, keep: str | None) -> Compressed:
        store = ViewStore(self._parts.root, row, shape_of(row))
        before = _bytes(store)
        self._replaced(row, self._ranges(row, store, until, keep))
        found = (g for g in self._catalog.gaps.of([row.id]) if g.compressed and g.high <= until)
        ranges = tuple(CompressedRange(g.low, g.high, g.commits or 0) for g in found)
        return Compressed(row.name, until, ranges, before, _bytes(store))

    def _replaced(self, row: ViewRow, ranges: Iterable[Gap]) -> None:
        """Record these ranges, and replace the rows of all that are recorded and not replaced."""
        gaps, views = self._catalog.gaps, self._catalog.views
        gaps.compress(ranges)
        crash_point("range-recorded")
        pending = [gap for gap in gaps.of([row.id]) if gap.pending]
        if not pending:
            return
        store = ViewStore(self._parts.root, row, shape_of(row))
        with spark_told(self._parts.root), self._parts.work_folder("compress") as folder:
            version = replace_ranges(self._parts.spark, store, pending, folder)
        row = views.row(row.id)
        assert row.cn is not None
        assert row.base_cn is not None
        assert row.base_version is not None
        views.publish([Published(row.id, row.cn, version, row.base_cn, row.base_version)])
        crash_point("range-published")
        gaps.compressed(row.id, pending[-1].high)
        crash_point("range-finished")

    # --- where ranges are cut ----------------------------------------------------------------

    def _ranges(self, row: ViewRow, store: ViewStore, until: int, keep: str | None) -> list[Gap]:
        oldest = self._catalog.commits.oldest_cn()
        files = store.delta_files(store.delta.version(), oldest, until)
        none = np.zeros(0, dtype=np.int64)
        found = np.unique(np.concatenate([none, *(cns_of(store, f) for f in files)]))
        changed = found[found > oldest]
        if not len(changed):
            return []
        gaps = self._catalog.gaps.of([row.id], oldest)
        first = min(int(changed[0]), *(gap.high for gap in gaps[:1]), until)
        cuts = {*self._standing(row, store), *self._ends(keep, first, until)}
        readers = [s for s in self._catalog.subscriptions.all() if s.view == row.id]
        handed_out = [(s.position, s.offered) for s in readers]
        handed_out += self._catalog.streams.handed_out(row.id)
        return to_compress(row.id, changed, gaps, until, cuts, handed_out)

    def _ends(self, keep: str | None, first: int, until: int) -> Iterator[int]:
        """The cns at the ends of the periods to keep, between two cns."""
        if keep is None:
            return
        commits, zone = self._catalog.commits, self._parts.project.timezone
        begin, end = commits.time_of(first), end_of(keep, commits.time_of(until), zone)
        while end >= begin:
            yield commits.cn_at(end)
            end = end_of(keep, end, zone)

    def _standing(self, row: ViewRow, store: ViewStore) -> Iterator[int]:
        """Where anybody but a subscription stands or may go on from."""
        yield from (base.cn for base in self._catalog.views.bases(row.id))
        yield store.newest_base().cn
        yield from (build.cn for build in self._catalog.builds.all())
        rows = [*self._catalog.views.all(), *self._catalog.views.replacements()]
        for reader in rows:
            if row.id in inputs_of(reader).values():
                yield from self._stands(reader)
        for kind in (TABLES, CHANGES):
            mark = read_mark(table_folder(self._parts.root, kind, row.name))
            if mark is not None and mark.id == row.id:
                yield mark.cn

    def _stands(self, reader: ViewRow) -> Iterator[int]:
        """Where a view or node goes on from: what it shows, has propagated, or a crash has left."""
        deferred = self._catalog.refreshes.all().get(reader.id)
        store = ViewStore(self._parts.root, reader, Shape())
        for table, app in ((store.delta, DELTA), (store.steps, STEPS)):
            if table.exists():
                yield table.app_version(app)
        if reader.cn is not None:
            yield reader.cn
        if deferred is not None:
            yield deferred.propagated


def _bytes(store: ViewStore) -> int:
    return sum(file.size for file in store.delta.files())
