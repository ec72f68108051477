"""Keeping the catalog's views by batches: first states, then change after change.

Which rows there are, and which of them readers see, is decided in `reconciling`; who is due, in
`schedule`. A cycle opens a moment, computes every view's change up to its cn, and publishes all of
them in one catalog transaction; a backlog is worked off in pieces, each of which is published
before the next is begun. A view whose source is away stays where it is and catches up later; a view
that fails stops alone, and one in which we failed is tried again alone (`outcomes`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path

from steadyview.catalog import BatchRecord
from steadyview.engine.failures import spark_told
from steadyview.engine.frames import Frames
from steadyview.engine.tagged_log import Admitted
from steadyview.errors import ColumnLost, StorageDamaged, StorageUnavailable
from steadyview.papers.conventional import Shadow
from steadyview.papers.recording import Recordings
from steadyview.query.moment import Moment, WaitFor, admitted_since, open_moment
from steadyview.runtime.batch import Batch
from steadyview.runtime.building import Building
from steadyview.runtime.inputs import RelationInputs
from steadyview.runtime.kept import Kept, kept_at_every_cn
from steadyview.runtime.losses import Defects, Losses, LossMark
from steadyview.runtime.mending import Mending
from steadyview.runtime.one_by_one import OneByOne
from steadyview.runtime.outcomes import Outcomes
from steadyview.runtime.parts import Parts
from steadyview.runtime.pieces import SIZE, note
from steadyview.runtime.planning import Planned, Refused
from steadyview.runtime.publisher import Publisher
from steadyview.runtime.reconciling import Reconciling
from steadyview.runtime.refreshing import (
    CarryWanted,
    Refreshed,
    Refreshing,
    RefreshWanted,
    Ways,
)
from steadyview.runtime.renewing import readers
from steadyview.runtime.rolling import Rolling
from steadyview.runtime.schedule import WorkSchedule
from steadyview.runtime.tally import Tally
from steadyview.runtime.trouble import Faults
from steadyview.runtime.whole_views import WholeViews
from steadyview.runtime.work import Asked, Done, Others, Standing, Work
from steadyview.warehouse.view_store import ViewStore

Which = Callable[[Kept], bool]


class Maintainer:
    """Works on the views of one warehouse; the caller holds the lease.

    Two threads share it: one works on batches and everything else, the other calls
    `cycle(building=True)`. They never work on the same row, for the one takes rows that have a
    state and the other rows that have none; and of what is made here only `ending` and `_ends_turn`
    are ever set anew, by and for the first. What both use says itself how it is shared.
    """

    def __init__(
        self,
        parts: Parts,
        plans: Sequence[Planned | Refused],
        wait_for: WaitFor,
        shadow: Shadow | None = None,
        recordings: Recordings | None = None,
        defects: Defects | None = None,
    ) -> None:
        self.ending: Callable[[], bool] = lambda: False
        """Whether to stop between two pieces of a backlog."""
        self._ends_turn: Callable[[], bool] = lambda: self.ending()
        self._parts = parts
        self._wait_for = wait_for
        self._shadow = shadow
        self._recordings = recordings or Recordings()
        self._project = Reconciling(parts, plans)
        self._building = Building(parts)
        self.losses = Losses(parts, self._project.running, defects or {})
        self.faults = Faults()
        self.tally = Tally()
        self._schedule = WorkSchedule(parts, self._project, self.losses, self.faults)
        outcomes = Outcomes(parts, self._project, self.losses, self.faults, self.tally)
        self._outcomes = outcomes
        self._publication = Publisher(parts, outcomes, self.losses)
        self._mending = Mending(parts, self._project)
        self._rolling = Rolling(parts, outcomes)
        self._refreshing = Refreshing(
            parts, self._project, self._schedule, self.losses, self.faults
        )
        self._ways = Ways(wait_for, self._stands, self._advanced, self._publication)
        self._alone = OneByOne(parts, self._schedule, outcomes, wait_for, self._recordings)

    def reconcile(self) -> None:
        """Make the catalog's views those of the project: see `reconciling`."""
        self._project.reconcile()
        self._alone.begin()

    def renew(self, name: str) -> None:
        """A view is to be built anew: so is what reads it, and what could not be is tried again."""
        self._mending.forget(name)
        self._project.failed.discard(name)
        self.place()

    def place(self) -> None:
        """Begin to build what is missing, once something was begun or given up elsewhere."""
        self._project.place()
        self._project.settle()

    def mend(self) -> None:
        """Begin to build anew what was lost beside a view, or stopped by single values."""
        if self.losses.given_up:
            self.losses.given_up = False
            self.place()
        self._mending.begin()

    def waiting(self, available: frozenset[str], *, building: bool) -> bool:
        """Whether a batch is due: some view lacks its first state, or admitted transactions."""
        if building:
            found = self._schedule.ready(self._schedule.unbuilt(), available)
            return bool(self._schedule.with_parents(found))
        return self._waits(available, lambda _: True)

    def _waits(self, available: frozenset[str], which: Which) -> bool:
        rows = [k for k in self._schedule.batched() if which(k)]
        return self._schedule.waits(rows, available)

    def turn(self, available: frozenset[str]) -> None:
        """One batch over the views; those far behind catch up while the others have no news.

        So a view that was built for long, or whose source was away, holds nobody up.
        """
        late = self._schedule.far_behind()

        def on_time(kept: Kept) -> bool:
            return kept.id not in late

        def behind(kept: Kept) -> bool:
            return kept.id in late

        if self._waits(available, on_time):
            self.cycle(available, building=False, which=on_time)
        if self.ending() or not self._waits(available, behind):
            return
        self._ends_turn = lambda: self.ending() or self._waits(available, on_time)
        try:
            self.cycle(available, building=False, which=behind)
        finally:
            self._ends_turn = lambda: self.ending()

    def cycle(
        self, available: frozenset[str], *, building: bool, which: Which = lambda _: True
    ) -> int | None:
        """First states, or one batch over all views, where sources answer; the cn reached.

        `which`: the rows that take part.
        """
        with spark_told(self._parts.root):
            while found := self._due(available, which, building=building):
                try:
                    return self._cycled(found, building=building)
                except ColumnLost as lost:
                    # the others go on without those that use the column, under a new moment
                    self.losses.stop_users(found, lost, self._project.fail)
                finally:
                    self._outcomes.stop_readers()
                    if not building:
                        self.swap_ready()
        return None

    def waiting_alone(self, available: frozenset[str]) -> bool:
        """Whether a view that no batch keeps waits for its turn."""
        return self._alone.waiting(available)

    def refresh(self, wanted: RefreshWanted) -> Refreshed:
        """Show deferred views as of one moment, together; see `refreshing`."""
        with spark_told(self._parts.root):
            return self._refreshing.refreshed(wanted, self._ways)

    def carry(self, wanted: CarryWanted) -> int:
        """Have the changes of views at hand, shown or not; see `Refreshing.carried`."""
        with spark_told(self._parts.root):
            return self._refreshing.carried(wanted, self._ways)

    def refresh_due(self, available: frozenset[str]) -> bool:
        """The same for the views whose schedule has a new tick; whether there were any."""
        with spark_told(self._parts.root):
            return self._refreshing.scheduled(available, self._ways)

    def one_by_one(self, available: frozenset[str], seconds: float | None) -> None:
        """The views that no batch keeps: see `OneByOne.turn`."""
        self._alone.turn(available, seconds)
        self.swap_ready()

    def swap_ready(self) -> None:
        """Put what was built beside in its place: never while a batch is worked on."""
        self._project.swap_ready()

    def examine(self, sources: Iterable[str]) -> bool:
        """See `Losses.examine`."""
        return self.losses.examine(sources)

    def apply(self, *, everything: bool = False) -> int:
        """Roll the bases whose residual has outgrown them (or all); how many were rolled."""
        return self._roll(everything=everything)

    def _roll(self, only: Collection[int] | None = None, *, everything: bool = False) -> int:
        """The same for some rows, by their ids."""
        rolled = 0
        for kept in self._project.running():
            row = kept.row
            if row.cn is None or row.base_cn is None:
                continue
            if (only is None or row.id in only) and not self.faults.waits(kept.label):
                rolled += self._rolling.roll(kept, everything=everything)
        return rolled

    def close(self) -> None:
        """Forget what is kept in memory only."""
        self._alone.close()

    def readers(self, source: str) -> list[str]:
        """The views and nodes that read the source, themselves or over others."""
        return [row.name for row in readers(self._parts.catalog, source)]

    def end_building(self) -> None:
        """Read no more for first states: what was read stays, also for the next life."""
        self._building.end()

    def may_build(self) -> None:
        """First states may be read again."""
        self._building.may_begin()

    def _rows(self, *, building: bool) -> list[Kept]:
        return self._schedule.unbuilt() if building else self._schedule.batched()

    def _due(self, available: frozenset[str], which: Which, *, building: bool) -> list[Kept]:
        found = self._schedule.ready(self._rows(building=building), available)
        return [k for k in found if which(k)]

    def _cycled(self, found: Sequence[Kept], *, building: bool) -> int | None:
        started = self._parts.clock.now_us()
        names = sorted(set().union(*(k.plan.sources for k in found)))
        sources = [self._parts.sources[name] for name in names]
        mark = self.losses.mark()
        if building:
            found = self._schedule.with_parents(found)
            if not found:
                return None
        with open_moment(sources, self._wait_for, self._parts.catalog) as moment:
            self.losses.stop_lost(found)
            # after the batch's end is fixed: nothing that a loss may have touched is published
            self.examine(moment.snapshots)
            wanted, rows = {k.id for k in found}, self._rows(building=building)
            found = [
                k
                for k in rows
                if k.id in wanted and not self.losses.waits(k.plan)
                if not (building and self.losses.spoilt(k.plan, mark, moment))
            ]
            if not found or not (building or self._schedule.behind(found, moment.upto)):
                return None
            if not building:
                return self._batch(found, moment, mark, started)
            at, found = self._schedule.level(found, moment.upto)
            return self._built(found, moment.at(at, {}), mark, started) if found else None

    def _built(
        self, found: Sequence[Kept], moment: Moment, mark: LossMark, started: int
    ) -> int | None:
        """First states, those that take long over relations stored by this life or others."""
        reached = None
        for portion in self._building.portions(found, moment):
            if portion.damage is None:
                reached = self._batch(portion.views, portion.moment, mark, started)
            else:
                for kept in portion.views:
                    self._outcomes.failed(kept, portion.damage)
        return reached

    def _batch(self, found: Sequence[Kept], moment: Moment, mark: LossMark, started: int) -> int:
        works = list(self._works([k for k in found if k.plan.node is not None]))
        after = min((w.after for w in works if w.after is not None), default=moment.upto)
        admitted, works = self._admitted(works, moment, after)
        whole = [k for k in found if k.plan.node is None and k.plan.sources <= admitted.keys()]
        with self._scratch() as (frames, folder):
            relations = RelationInputs(frames, folder, moment, admitted, self._parts.log)
            recomputed = WholeViews(self._parts, self._project, whole, moment, folder, frames)
            others = Others(recomputed.standing(self._stands), self._parts.catalog.gaps)
            batch = Batch(frames, folder, moment, relations, others, self._shadow)
            if works:
                batch.prepare(works)

            def take(done: Sequence[Done], last: bool) -> bool:
                # recomputed views have a state at the end alone
                every = [*done, *recomputed.done()] if last else done
                self._publication.publish(every, admitted)
                ends = self._ends_turn()
                if not (last or ends):
                    # what is behind a whole backlog may never be reached
                    self._roll({d.work.kept.id for d in done})
                return ends

            if any(k.row.cn is None for k in found):
                # before the views that read them
                for done in chain(recomputed.done(), batch.first_states()):
                    self._publication.first_state(done, admitted, mark)
                self._record(after, moment.upto, batch.asked, started)
            else:
                self._pieces(batch, recomputed, after, started, take)
        for work in works:
            if work.after is not None:
                self._recordings.asked(work.plan.name, batch.asked.sent)
        return moment.upto

    def _advanced(
        self, rows: Sequence[Kept], moment: Moment, standing: Standing
    ) -> tuple[list[Done], dict[str, Admitted]]:
        """Compute and store the changes of these rows up to the moment's cn; publish nothing.

        Ends early where one of them fails, for the others are not needed then, or when all ends.
        """
        started = self._parts.clock.now_us()
        wanted = self._works([k for k in rows if k.plan.node is not None])
        works = [replace(w, held=False) for w in wanted]
        after = min((w.after for w in works if w.after is not None), default=moment.upto)
        admitted, works = self._admitted(works, moment, after)
        whole = [k for k in rows if k.plan.node is None and k.plan.sources <= admitted.keys()]
        reached: dict[int, Done] = {}
        with self._scratch() as (frames, folder):
            recomputed = WholeViews(self._parts, self._project, whole, moment, folder, frames)
            # none of it is shown before all of it: what reads them need not wait for the end
            failed = any(d.failed for d in recomputed.done())
            if works and not failed:
                relations = RelationInputs(frames, folder, moment, admitted, self._parts.log)
                others = Others(recomputed.standing(standing), self._parts.catalog.gaps)
                batch = Batch(frames, folder, moment, relations, others)
                batch.prepare(works)

                def take(done: Sequence[Done], _: bool) -> bool:
                    for d in done:
                        before = reached.get(d.work.kept.id)
                        changes = d.changes + (before.changes if before else 0)
                        reached[d.work.kept.id] = replace(d, changes=changes)
                    return any(d.failed for d in done) or self.ending()

                self._pieces(batch, recomputed, after, started, take)
            if self.ending() and any(d.upto < moment.upto for d in reached.values()):
                raise StorageUnavailable(
                    "the process that keeps the views ended",
                    hint="refresh again: what was computed stays",
                )
            found = [*recomputed.done(), *reached.values()]
        return found, admitted

    def _pieces(
        self,
        batch: Batch,
        recomputed: WholeViews,
        after: int,
        started: int,
        take: Callable[[Sequence[Done], bool], bool],
    ) -> None:
        """Piece by piece; `take` gets what each did, and says whether to end behind it.

        Its second argument: whether that was the last piece. Who ends in between has whole pieces;
        the next life goes on behind them. Recomputed views go on with the last one, before those
        that read them.
        """
        over = False
        while not over:
            rows, upto = batch.next_piece(after, SIZE)
            if upto == batch.upto:
                recomputed.done()
            note(batch.folder, rows, SIZE.finished)
            begun, before = time.monotonic(), batch.asked
            done = batch.piece(upto)
            SIZE.took(rows, time.monotonic() - begun)
            last = upto == batch.upto or batch.over
            over = take(done, last) or last
            self._record(after, upto, batch.asked.since(before), started)
            after, started = upto, self._parts.clock.now_us()

    def _admitted(
        self, works: Sequence[Work], moment: Moment, after: int
    ) -> tuple[dict[str, Admitted], list[Work]]:
        """What each source committed, and the views to work on: a damaged log stops its readers."""
        found: dict[str, Admitted] = {}
        catalog, log = self._parts.catalog, self._parts.log
        for name in moment.snapshots:
            try:
                found[name] = admitted_since(name, moment, after, catalog, log)
            except StorageDamaged as damage:
                for kept in self._project.running():
                    if name in kept.plan.sources:
                        self._outcomes.failed(kept, damage)
        return found, [w for w in works if w.plan.sources <= found.keys()]

    def _record(self, after: int, upto: int, asked: Asked, started: int) -> None:
        """For `status`: what a piece took."""
        now = self._parts.clock.now_us()
        record = BatchRecord(after, upto, upto - after, asked.sent, asked.rows, started, now)
        self._parts.catalog.batches.record(record)
        self.tally.batch(asked.sent)

    @contextmanager
    def _scratch(self) -> Iterator[tuple[Frames, Path]]:
        """Temporary views and a folder for a batch; a shadow keeps them for later."""
        frames = Frames(self._parts.spark)
        if self._shadow is not None:
            yield frames, self._shadow.batch_folder()
            return
        try:
            with self._parts.work_folder("batch") as folder:
                yield frames, folder
        finally:
            frames.drop()

    def _works(self, found: Sequence[Kept]) -> Iterator[Work]:
        """What is to be done for each view; one whose files are gone or damaged stops."""
        views = self._parts.catalog.views
        every = kept_at_every_cn([*views.all(), *views.replacements()])
        known = self._schedule.policies()
        for kept in found:
            try:
                work = self._work(kept, every_state=kept.id in every)
                yield replace(work, held=not known[kept.id].shows)
            except StorageDamaged as damage:
                self._outcomes.damaged(kept, damage)

    def _work(self, kept: Kept, *, every_state: bool) -> Work:
        store, cn = self._project.store(kept), kept.row.cn
        if cn is None:
            store.create()
            return Work(kept, store, None)
        ahead = max(cn, kept.propagated or cn)
        after, begun = max(ahead, store.propagated()), store.half_written()
        return Work(kept, store, after, every_state, begun)

    def _stands(self, view_id: int) -> tuple[ViewStore, int]:
        """Where a node lives that others read, and the cn that it is published at."""
        row = self._parts.catalog.views.row(view_id)
        plan = self._project.plan_of(row)
        assert plan is not None
        return self._project.store(Kept(row, plan)), -1 if row.cn is None else row.cn
