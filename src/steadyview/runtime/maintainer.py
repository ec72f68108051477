"""Keeping the catalog's views: first states, batches, publication, apply.

Which rows there are, and which of them readers see, is decided in `reconciling`. A cycle opens a
moment, computes every running view's change up to its cn, and publishes all of them in one catalog
transaction; a backlog is worked off in pieces, each of which is published before the next is begun.
A view whose source is away stays where it is and catches up later; a view that fails stops alone,
and one in which we failed is tried again alone.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from steadyview.catalog import Base, Published, ViewRow
from steadyview.catalog import Batch as BatchRecord
from steadyview.crash_points import crash_point
from steadyview.engine.failures import spark_told
from steadyview.engine.frames import Frames
from steadyview.engine.tagged_log import Admitted
from steadyview.errors import ColumnLost, StorageDamaged, ViewStopped
from steadyview.query.moment import Moment, WaitFor, admitted_since, open_moment, settled_upto
from steadyview.runtime.batch import Asked, Batch, Done, Work
from steadyview.runtime.building import Building
from steadyview.runtime.conventional import Shadow
from steadyview.runtime.forced import ForcedViews
from steadyview.runtime.inputs import RelationInputs
from steadyview.runtime.kept import Kept, is_hidden
from steadyview.runtime.losses import Defects, Losses
from steadyview.runtime.parts import Parts
from steadyview.runtime.pieces import SIZE, note
from steadyview.runtime.planning import Planned, Refused
from steadyview.runtime.recompute import Recomputing
from steadyview.runtime.reconciling import Reconciling, files_damaged
from steadyview.runtime.recording import Recording
from steadyview.runtime.renewing import readers
from steadyview.runtime.trouble import Faults, trouble
from steadyview.warehouse.apply import Applier, due, rolls, state_due
from steadyview.warehouse.view_store import ViewStore

FAR_BEHIND = 1_000
"""Transactions; a row that is further behind the foremost one catches up in turns of its own."""
_MEND_FIRST, _MEND_LONGEST = 10.0, 600.0
"""Seconds until a view that values have stopped is built anew for the first time, and at most."""


Which = Callable[[Kept], bool]


@dataclass
class _Attempt:
    """When a stopped view was last built anew in vain, and when that is due again."""

    cn: int | None
    due: float
    wait: float = _MEND_FIRST

    def again(self, cn: int, now: float) -> None:
        self.wait = min(self.wait * 2, _MEND_LONGEST)
        self.cn, self.due = cn, now + self.wait


class Maintainer:
    """Works on the views of one warehouse; the caller holds the lease."""

    def __init__(
        self,
        parts: Parts,
        plans: Sequence[Planned | Refused],
        wait_for: WaitFor,
        shadow: Shadow | None = None,
        recordings: Mapping[str, Recording] | None = None,
        defects: Defects | None = None,
    ) -> None:
        self.ending: Callable[[], bool] = lambda: False
        """Whether to stop between two pieces of a backlog."""
        self._ends_turn: Callable[[], bool] = lambda: self.ending()
        self._shadow = shadow
        self._parts = parts
        self._views = parts.catalog.views
        self._project = Reconciling(parts, plans)
        self._wait_for = wait_for
        self._recordings = recordings or {}
        self._forced = ForcedViews(parts, wait_for, self._recordings)
        self._attempts: dict[str, _Attempt] = {}
        self._building = Building(parts)
        self.losses = Losses(parts, self._project.running, defects or {})
        self._mark = self.losses.mark()
        """Of the first states that are being built."""
        self.faults = Faults()
        self.lookups = 0
        self.changes: Counter[str] = Counter()
        self.batches = 0

    def reconcile(self) -> None:
        """Make the catalog's views those of the project: see `reconciling`."""
        self._project.reconcile()

    def renew(self, name: str) -> None:
        """A view is to be built anew: so is what reads it, and what could not be is tried again."""
        self._attempts.pop(name, None)
        self._project.failed.discard(name)
        self.place()

    def place(self) -> None:
        """Begin to build what is missing, once something was begun or given up elsewhere."""
        self._project.place()
        self._project.settle()

    def mend(self) -> None:
        """Begin to build anew the views that single values have stopped, if there is news.

        The same for views that could not be built beside what they show. Seldom, if it was in vain
        before: the values may never be mended.
        """
        if self.losses.given_up:
            self.losses.given_up = False
            self.place()
        now, last = time.monotonic(), self._parts.catalog.commits.last_cn()
        beside = {row.name for row in self._views.replacements()}
        due = set()
        for row in self._views.all():
            if not self._mendable(row) or row.name in beside:
                continue
            attempt = self._attempts.setdefault(row.name, _Attempt(row.cn, now + _MEND_FIRST))
            if row.name in self._project.files and last != attempt.cn and now >= attempt.due:
                attempt.again(last, now)
                due.add(row.name)
        if due:
            self._project.place(due)

    def _mendable(self, row: ViewRow) -> bool:
        if row.state == "stopped":
            return bool(row.mendable) and row.cn is not None
        return row.name in self._project.failed

    def waiting(
        self, available: frozenset[str], *, building: bool, forced: bool = True
    ) -> bool:
        """Whether some view lacks its first state (`building`), or admitted transactions.

        Without `forced`, only those that a batch serves count.
        """
        if building:
            return bool(self._with_parents(self._ready(available, building=True)))
        return self._waits(available, lambda k: forced or not k.plan.forced)

    def _waits(self, available: frozenset[str], which: Which) -> bool:
        """Whether there are admitted transactions for some of these rows."""
        last = self._parts.catalog.commits.last_cn()
        running = {k.id: k for k in self._project.running()}
        behind = [k for k in running.values() if k.row.cn is not None and which(k)]
        served = self._answering(behind, available)
        return any((k.row.cn or 0) < self._reach(k, running, last) for k in served)

    def _reach(self, kept: Kept, running: Mapping[int, Kept], last: int) -> int:
        """How far a node can come: no further than one that it reads and that stands still."""
        reach = [last]
        for i in kept.inputs.values():
            if i in running:
                reach.append(self._reach(running[i], running, last))
            else:
                cn = self._views.row(i).cn
                reach.append(-1 if cn is None else cn)
        return min(reach)

    def turn(self, available: frozenset[str]) -> None:
        """One batch over the views; those far behind catch up while the others have no news.

        So a view that was built for long, or whose source was away, holds nobody up.
        """
        late = self._far_behind()

        def on_time(kept: Kept) -> bool:
            return kept.id not in late and not kept.plan.forced

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

    def _far_behind(self) -> set[int]:
        rows = [k for k in self._rows(building=False) if not k.plan.forced]
        reached = {k.id: k.row.cn for k in rows if k.row.cn is not None}
        foremost = max(reached.values(), default=0)
        return {i for i, cn in reached.items() if foremost - cn > FAR_BEHIND}

    def cycle(
        self, available: frozenset[str], *, building: bool, which: Which = lambda _: True
    ) -> int | None:
        """First states, or one batch over all views, where sources answer; the cn reached.

        `which`: the rows that take part.
        """
        with spark_told(self._parts.root):
            while found := [k for k in self._batched(available, building=building) if which(k)]:
                try:
                    return self._cycled(found, building=building)
                except ColumnLost as lost:
                    # the others go on without those that use the column, under a new moment
                    self.losses.stop_users(found, lost, self._project.fail)
                finally:
                    self._stop_readers()
                    if not building:
                        self.swap_ready()
        return None

    def swap_ready(self) -> None:
        """Put what was built beside in its place: never while a batch is worked on."""
        self._project.swap_ready()

    def _stop_readers(self) -> None:
        """Stop the views that have come as far as a stopped one that they read."""
        for kept in self._project.running():
            row = kept.row
            for i in kept.inputs.values():
                parent = self._views.row(i)
                if parent.state != "stopped" or row.cn is None or row.replacement:
                    continue
                if parent.cn is None or row.cn < parent.cn:
                    continue
                fact = f'it reads view "{parent.name}", which is stopped: {parent.error}'
                text = parent.error if is_hidden(parent) else fact
                self._views.stop(row.name, text or fact, row.cn + 1)
                break

    def examine(self, sources: Iterable[str]) -> bool:
        """See `Losses.examine`."""
        return self.losses.examine(sources)

    def _publish_first(self, done: Done, publish: Callable[[Sequence[Done]], None]) -> None:
        """Publish a first state, unless it was spoilt: then it is built again."""
        if not self.losses.publish_unless_lost(
            done.work.plan, self._mark, lambda: publish([done])
        ):
            done.work.store.remove()

    def _batched(self, available: frozenset[str], *, building: bool) -> list[Kept]:
        """The rows of a batch; first states are all alike."""
        found = self._ready(available, building=building)
        return [k for k in found if building or not k.plan.forced]

    def one_by_one(self, available: frozenset[str], seconds: float | None) -> None:
        """The views with an algorithm of the papers: so many seconds each, or (None) to the end.

        To the end is: everything that the sources had committed when this was called.
        """
        with spark_told(self._parts.root):
            forced = [k for k in self._ready(available, building=False) if k.plan.forced]
            self._forced.forget_others({kept.id for kept in self._project.running()})
            for kept in forced:
                self._keep_forced(kept, seconds)
            self.swap_ready()

    def _keep_forced(self, kept: Kept, seconds: float | None) -> None:
        target = self._parts.catalog.commits.last_cn()
        try:
            if seconds is None:
                sources = [self._parts.sources[s] for s in sorted(kept.plan.sources)]
                with open_moment(sources, self._wait_for, self._parts.catalog) as moment:
                    target = moment.upto
            done = self._forced.work(kept, target, seconds)
        except ColumnLost as lost:
            self.losses.stop_users([kept], lost, self._project.fail)
        except ViewStopped as stopped:
            self.losses.stop_lost([kept])
            self._stop_at(kept, stopped)
        except Exception as error:  # noqa: BLE001 - sorted by `trouble`
            self._stop_at(kept, error)
        else:
            self.lookups += done.lookups
            self._count(kept, done.changes)
            self._went_on(kept)

    def _stop_at(self, kept: Kept, error: Exception) -> None:
        """The view cannot go on from where it is: for good, or by a fault of ours for now."""
        row = self._views.row(kept.id)
        if row.state == "stopped":
            return
        found = trouble(error, self._parts.spark, self._parts.root)
        if found.error is not None:
            self._stop(kept, found.error, (row.cn or 0) + 1, mendable=found.mendable)
        if found.fault is not None:
            self._tell(kept, str(self.faults.met(kept.label, found.fault)))

    def _stop(self, kept: Kept, error: str, cn: int | None, *, mendable: bool) -> None:
        """A view stops before cn; what is built beside is given up, and its view goes on."""
        if kept.row.replacement:
            self._project.fail(kept, error)
        else:
            self._views.stop(kept.name, error, cn, mendable=mendable)

    def _tell(self, kept: Kept, text: str) -> None:
        """What keeps it from going on for now."""
        if kept.row.replacement:
            self._project.tell(kept, text)
        else:
            self._views.tell(kept.name, text)

    def _went_on(self, kept: Kept) -> None:
        """What was wrong with a view that is not stopped is over."""
        self.faults.over(kept.label)
        row = self._views.find(kept.name)
        if kept.row.replacement or row is None:
            return
        if row.error is not None and row.state != "stopped":
            self._views.tell(row.name, None)

    def _count(self, kept: Kept, changes: int) -> None:
        if not kept.row.replacement:
            self.changes[kept.name] += changes

    def close(self) -> None:
        """Forget the algorithms' objects: they start again from what is published."""
        self._forced.close()

    def readers(self, source: str) -> list[str]:
        """The views and nodes that read the source, themselves or over others."""
        return [row.name for row in readers(self._parts.catalog, source)]

    def end_building(self) -> None:
        """Read no more for first states: what was read stays, also for the next life."""
        self._building.end()

    def may_build(self) -> None:
        """First states may be read again."""
        self._building.may_begin()

    def _cycled(self, found: Sequence[Kept], *, building: bool) -> int | None:
        started = self._parts.clock.now_us()
        names = sorted(set().union(*(k.plan.sources for k in found)))
        sources = [self._parts.sources[name] for name in names]
        mark = self.losses.mark()
        if building:
            self._mark = mark
            found = self._with_parents(found)
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
            if not found or not (building or self._behind(found, moment.upto)):
                return None
            if building:
                at = min([moment.upto, *self._standing_parents(found)])
                return self._built(found, moment.at(at, {}), started)
            return self._batch(found, moment, started)

    def _behind(self, found: Sequence[Kept], upto: int) -> bool:
        """Whether one of them is not where it can come to by cn `upto`."""
        running = {k.id: k for k in self._project.running()}
        return any((k.row.cn or 0) < self._reach(k, running, upto) for k in found)

    def _with_parents(self, found: Sequence[Kept]) -> list[Kept]:
        """Those whose parents have a state and go on, or get one together with them."""
        going = {k.id for k in self._project.running() if k.row.cn is not None}
        kept = list(found)
        while True:
            known = going | {k.id for k in kept}
            found, kept = kept, [k for k in kept if known >= {*k.inputs.values()}]
            if len(kept) == len(found):
                return kept

    def _standing_parents(self, found: Sequence[Kept]) -> list[int]:
        """Where the nodes stand that these read, and that are not built with them."""
        built = {k.id for k in found}
        return [self._stands(i)[1] for k in found for i in k.inputs.values() if i not in built]

    def _built(self, found: Sequence[Kept], moment: Moment, started: int) -> int | None:
        """First states, those that take long over relations stored by this life or others."""
        reached = None
        for portion in self._building.portions(found, moment):
            if portion.damage is None:
                reached = self._batch(portion.views, portion.moment, started)
            else:
                for kept in portion.views:
                    self._stop_at(kept, portion.damage)
        return reached

    def _batch(self, found: Sequence[Kept], moment: Moment, started: int) -> int:
        works = list(self._works([k for k in found if k.plan.node is not None]))
        after = min((w.after for w in works if w.after is not None), default=moment.upto)
        admitted, works = self._admitted(works, moment, after)
        whole = [k for k in found if k.plan.node is None and k.plan.sources <= admitted.keys()]
        with self._scratch() as (frames, folder):
            relations = RelationInputs(frames, folder, moment, admitted, self._parts.log)
            batch = Batch(frames, folder, moment, relations, self._stands, self._shadow)
            if works:
                batch.prepare(works)

            def recomputed() -> Iterator[Done]:
                return self._recompute(whole, moment, folder, frames)

            def publish(done: Sequence[Done]) -> None:
                self._publish(done, admitted)

            if any(k.row.cn is None for k in found):
                for done in chain(batch.first_states(), recomputed()):
                    self._publish_first(done, publish)
                self._record(after, moment.upto, batch.asked, started)
            else:
                self._pieces(batch, after, recomputed, publish, started)
        for work in works:
            if work.after is not None and work.plan.name in self._recordings:
                self._recordings[work.plan.name].lookups += batch.asked.sent
        return moment.upto

    def _pieces(
        self,
        batch: Batch,
        after: int,
        recomputed: Callable[[], Iterator[Done]],
        publish: Callable[[Sequence[Done]], None],
        started: int,
    ) -> None:
        """Piece by piece, each published; recomputed views have a state at the end alone.

        Who ends in between has published whole pieces; the next life goes on behind them.
        """
        over = False
        while not over:
            begun, before = time.monotonic(), batch.asked
            rows, upto = batch.next_piece(after, SIZE)
            note(batch.folder, rows)
            done = batch.piece(upto)
            SIZE.took(rows, time.monotonic() - begun)
            last = upto == batch.upto or batch.over
            publish([*done, *recomputed()] if last else done)
            self._record(after, upto, batch.asked.since(before), started)
            after, started = upto, self._parts.clock.now_us()
            over = last or self._ends_turn()

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
                        self._stop_at(kept, damage)
        return found, [w for w in works if w.plan.sources <= found.keys()]

    def _record(self, after: int, upto: int, asked: Asked, started: int) -> None:
        """For `status`: what a piece took."""
        now = self._parts.clock.now_us()
        record = BatchRecord(after, upto, upto - after, asked.sent, asked.rows, started, now)
        self._parts.catalog.batches.record(record)
        self.batches += 1
        self.lookups += asked.sent

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
        for kept in found:
            try:
                yield self._work(kept)
            except StorageDamaged as damage:
                self._stop_at(kept, files_damaged(kept.name, str(damage.message)))

    def _work(self, kept: Kept) -> Work:
        store, cn = self._project.store(kept), kept.row.cn
        if cn is None:
            store.create()
        after = None if cn is None else max(cn, store.propagated())
        return Work(kept, store, after)

    def _recompute(
        self, found: Sequence[Kept], moment: Moment, folder: Path, frames: Frames
    ) -> Iterator[Done]:
        for kept in found:
            plan, work = kept.plan, Work(kept, self._project.store(kept), kept.row.cn)
            if work.after is None:
                work.store.create()
            if work.after is not None and not self._changed(plan, work.after, moment.upto):
                yield Done(work, moment.upto, 0, work.store.newest_base())
                continue
            try:
                texts = self._project.files if kept.row.replacement else self._project.shown()
                again = Recomputing(self._parts, frames, texts, moment, moment.upto, folder)
                sql = f"SELECT * FROM {frames.frame('recomputed', again.rows(plan))}"
                base = Applier(self._parts.spark, work.store).replace(sql, moment.upto)
            except Exception as error:  # noqa: BLE001 - sorted by `trouble`
                wrong = trouble(error, self._parts.spark, self._parts.root)
                upto = moment.upto - 1 if work.after is None else work.after
                yield Done(
                    work, upto, 0, error=wrong.error, fault=wrong.fault, mendable=wrong.mendable
                )
            else:
                yield Done(work, moment.upto, 0, base)

    def _changed(self, plan: Planned, after: int, upto: int) -> bool:
        runs = self._parts.catalog.commits.runs(after + 1, upto)
        return any(run.source in plan.sources for run in runs)

    def _publish(self, done: Sequence[Done], admitted: Mapping[str, Admitted]) -> None:
        self._show(done)
        for d in done:
            self._count(d.work.kept, d.changes)
        crash_point("published")
        for d in done:
            kept = d.work.kept
            if d.error is not None:
                self._stop(kept, d.error, d.upto + 1, mendable=d.mendable)
            elif d.fault is not None:
                self._tell(kept, str(self.faults.met(kept.label, d.fault)))
            else:
                self._went_on(kept)
        for source, seen in admitted.items():
            self._parts.catalog.sources.settle(source, settled_upto(seen))
        crash_point("settled")

    def _show(self, done: Sequence[Done]) -> None:
        """Make what is ready current. What was given up meanwhile is left alone."""
        while True:
            rows = {row.id for row in (*self._views.all(), *self._views.replacements())}
            ready = {d.work.kept.id: p for d in done if (p := _published(d)) and p.view in rows}
            for d in done:
                if d.work.kept.row.cn is None and d.work.kept.id in ready:
                    self._views.started(d.work.kept.id, d.upto)
            try:
                self._views.publish(list(ready.values()))
            except KeyError:
                continue
            return

    def apply(self, *, everything: bool = False) -> int:
        """Roll the bases whose residual has outgrown them (or all); how many were rolled."""
        rolled = 0
        for kept in self._project.running():
            row = kept.row
            if row.cn is None or kept.plan.node is None or row.base_cn is None:
                continue
            if self.faults.waits(kept.label):
                continue
            rolled += self._rolled(kept, everything=everything)
        return rolled

    def _rolled(self, kept: Kept, *, everything: bool) -> int:
        """Roll one base; a view whose rows can no longer be shown stops, the others go on."""
        store, row = self._project.store(kept), kept.row
        assert row.cn is not None
        try:
            with spark_told(self._parts.root):
                if state_due(store, row):
                    Applier(self._parts.spark, store).roll_state(row.cn)
                return self._roll(store, row) if everything or due(store, row) else 0
        except StorageDamaged as damage:
            self._stop_at(kept, files_damaged(row.name, damage.message))
            return 0
        except Exception as error:  # noqa: BLE001 - sorted by `trouble`
            self._stop_at(kept, error)
            return 0

    def _roll(self, store: ViewStore, row: ViewRow) -> int:
        assert row.cn is not None
        base, version = store.newest_base(), row.delta_version or 0
        if rolls(store, base, row.cn, version):
            base = Applier(self._parts.spark, store).roll(base, row.cn, version)
        if base.cn == row.base_cn:
            return 0
        self._views.publish(
            [Published(row.id, row.cn, row.delta_version or 0, base.cn, base.version)]
        )
        return 1

    def _ready(self, available: frozenset[str], *, building: bool) -> list[Kept]:
        return self._answering(self._rows(building=building), available)

    def _answering(self, rows: Sequence[Kept], available: frozenset[str]) -> list[Kept]:
        """Those whose sources answer and that need not wait."""
        return [
            k
            for k in rows
            if k.plan.sources <= available and not self.faults.waits(k.label)
            if not self.losses.waits(k.plan)
        ]

    def _rows(self, *, building: bool) -> list[Kept]:
        """The rows to be kept or, `building`, those to get a first state."""
        return [k for k in self._project.running() if (k.row.cn is None) == building]

    def _stands(self, view_id: int) -> tuple[ViewStore, int]:
        """Where a node lives that others read, and the cn that it is published at."""
        row = self._views.row(view_id)
        plan = self._project.plan_of(row)
        assert plan is not None
        return self._project.store(Kept(row, plan)), -1 if row.cn is None else row.cn


def _published(done: Done) -> Published | None:
    """What of a view's part can be shown; None if it has no state."""
    row = done.work.kept.row
    base = done.base or (
        Base(row.base_cn, row.base_version)
        if row.base_cn is not None and row.base_version is not None
        else None
    )
    if base is None or done.fault is not None or (row.cn is None and done.failed):
        return None
    return Published(row.id, done.upto, done.delta_version, base.cn, base.version)
