"""Keeping the views: first states, batches, publication, apply.

A cycle opens a moment, computes every running view's change up to its cn, and publishes all of them
in one catalog transaction; a backlog is worked off in pieces, each of which is published before the
next is begun. A view whose source is away stays where it is and catches up later; a view that fails
stops alone, and one in which we failed is tried again alone.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from steadyview.catalog import Base, Published, ViewRow, ViewSpec
from steadyview.catalog import Batch as BatchRecord
from steadyview.crash_points import crash_point
from steadyview.engine.failures import spark_told
from steadyview.engine.frames import Frames
from steadyview.engine.tagged_log import Admitted
from steadyview.errors import ColumnLost, StorageDamaged, ViewStopped
from steadyview.runtime.batch import Asked, Batch, Done, Work
from steadyview.runtime.building import Building, clear_builds
from steadyview.runtime.conventional import Shadow
from steadyview.runtime.forced import ForcedViews, adopt
from steadyview.runtime.inputs import RelationInputs
from steadyview.runtime.kept import described, goes_on, inputs_of
from steadyview.runtime.losses import Defects, Losses
from steadyview.runtime.moment import Moment, WaitFor, admitted_since, open_moment, settled_upto
from steadyview.runtime.parts import Parts
from steadyview.runtime.pieces import SIZE
from steadyview.runtime.planning import Planned, Refused, all_sources
from steadyview.runtime.recompute import Recomputing
from steadyview.runtime.recording import Recording
from steadyview.runtime.trouble import Faults, trouble
from steadyview.warehouse.apply import Applier, due, rolls, state_due
from steadyview.warehouse.view_store import ViewStore

_MEND_FIRST, _MEND_LONGEST = 10.0, 600.0
"""Seconds until a view that values have stopped is built anew for the first time, and at most."""


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
        self._shadow = shadow
        self._parts = parts
        self._views = parts.catalog.views
        self._plans = {p.name: p for p in plans if isinstance(p, Planned)}
        self._refused = [p for p in plans if isinstance(p, Refused)]
        self._wait_for = wait_for
        self._recordings = recordings or {}
        self._forced = ForcedViews(parts, wait_for, self._recordings)
        self._attempts: dict[str, _Attempt] = {}
        self._building = Building(parts)
        self.losses = Losses(parts, self._plans, defects or {})
        self._mark = self.losses.mark()
        """Of the first states that are being built."""
        self.faults = Faults()
        self.lookups = 0
        self.changes: Counter[str] = Counter()
        self.batches = 0

    def reconcile(self) -> None:
        """Make the catalog's views those of the project: new, changed, gone and refused ones."""
        files = {*self._plans, *(r.name for r in self._refused)}
        for row in self._views.all():
            if row.name not in files:
                self._views.drop(row.name)
        for plan in self._plans.values():
            self._reconciled(plan)
        for refused in self._refused:
            self._refuse(refused)
        for row in self._views.dropped():
            _folder_of(self._parts.root, row).remove()
            self._views.remove(row.id)
        clear_builds(self._parts)

    def _reconciled(self, plan: Planned) -> None:
        row = self._views.find(plan.name)
        if row is not None and self._continues(row, plan):
            if row.state == "stopped" and row.cn is None:
                self._views.build_again(plan.name)
            elif row.state == "stopped" and row.mendable:
                self._views.replace(plan.name)
            kept = described(plan, inputs_of(row))
            if (row.level, row.definition) != (plan.level, kept):
                self._views.kept_by(plan.name, plan.level, kept)
            if self._has_files(plan, row) and plan.forced:
                adopt(self._parts, plan)
            return
        if row is not None:
            self._views.drop(plan.name)
        kept = described(plan, self._ids(plan))
        sql = plan.text.select if plan.text is not None else ""
        spec = ViewSpec(plan.name, sql, plan.level, plan.kind, kept, plan.fingerprint())
        added = self._views.add(spec, self._parts.catalog.commits.last_cn())
        self._store(plan, added).create()

    def _ids(self, plan: Planned) -> dict[str, int]:
        """The nodes that the plan reads, as they are now."""
        found = {name: self._views.find(name) for name in plan.parents}
        return {name: row.id for name, row in found.items() if row is not None}

    def _has_files(self, plan: Planned, row: ViewRow) -> bool:
        """Whether the view has the files that the catalog knows of; it stops if they are gone."""
        store = self._store(plan, row)
        if row.cn is None:
            store.create()
            return True
        known = [(store.base, row.base_version), (store.delta, row.delta_version)]
        tables = known if plan.node is not None else known[:1]
        whole = all(t.exists() and t.version() >= (version or 0) for t, version in tables)
        if not whole and row.state != "stopped":
            text = f'"{store.folder}" was removed or replaced'
            self._views.stop(row.name, str(files_damaged(row.name, text)), None)
        return whole

    def mend(self) -> None:
        """Begin to build anew the views that single values have stopped, if there is news.

        Seldom, if it was in vain before: the values may never be mended.
        """
        now, last = time.monotonic(), self._parts.catalog.commits.last_cn()
        beside = {row.name for row in self._views.replacements()}
        for row in self._views.all():
            if row.state != "stopped" or not row.mendable or row.name in beside:
                continue
            attempt = self._attempts.setdefault(row.name, _Attempt(row.cn, now + _MEND_FIRST))
            if row.name in self._plans and last != attempt.cn and now >= attempt.due:
                attempt.again(last, now)
                self._views.replace(row.name)

    def _continues(self, row: ViewRow, plan: Planned) -> bool:
        """Whether what is kept of the view is still its meaning, and the log reaches back to it."""
        oldest = self._parts.catalog.commits.oldest_cn()
        reached = row.cn is None or row.cn >= oldest or row.state == "stopped"
        same = row.fingerprint == plan.fingerprint() and goes_on(row, plan)
        if row.cn is not None and inputs_of(row) != self._ids(plan):
            return False
        return reached and row.state != "refused" and same

    def _refuse(self, refused: Refused) -> None:
        row = self._views.find(refused.name)
        if row is not None and row.state != "refused":
            self._views.drop(refused.name)
            row = None
        if row is None:
            spec = ViewSpec(refused.name, "", "", "incremental", "", "")
            self._views.add(spec, self._parts.catalog.commits.last_cn())
        self._views.refuse(refused.name, refused.refusal.code, str(refused.refusal))

    def waiting(
        self, available: frozenset[str], *, building: bool, forced: bool = True
    ) -> bool:
        """Whether some view lacks its first state (`building`), or admitted transactions.

        Without `forced`, only those that a batch serves count.
        """
        last = self._parts.catalog.commits.last_cn()
        rows = self._ready(available, building=building)
        served = [row for row in rows if forced or not self._plans[row.name].forced]
        return any(row.cn is None or row.cn < self._reach(row.name, last) for row in served)

    def _reach(self, name: str, last: int) -> int:
        """How far a node can come: no further than one that it reads and that stands still."""
        reach = [last]
        for parent in self._plans[name].parents:
            row = self._views.find(parent)
            going = row is not None and row.state == "active" and parent in self._plans
            if row is None or not going:
                reach.append(-1 if row is None or row.cn is None else row.cn)
            else:
                reach.append(self._reach(parent, last))
        return min(reach)

    def cycle(self, available: frozenset[str], *, building: bool) -> int | None:
        """First states, or one batch over all views, where sources answer; the cn reached."""
        with spark_told(self._parts.root):
            while plans := self._batched(available, building=building):
                try:
                    return self._cycled(plans, building=building)
                except ColumnLost as lost:
                    # the others go on without those that use the column, under a new moment
                    self.losses.stop_users(plans, lost, self._rows(building=building))
                finally:
                    self._stop_readers()
        return None

    def _stop_readers(self) -> None:
        """Stop the views that have come as far as a stopped one that they read."""
        for row in self._running():
            for name in self._plans[row.name].parents:
                parent = self._views.find(name)
                if parent is None or parent.state != "stopped" or row.cn is None:
                    continue
                if parent.cn is None or row.cn < parent.cn:
                    continue
                fact = f'it reads view "{name}", which is stopped: {parent.error}'
                text = parent.error if self._plans[name].hidden else fact
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

    def _batched(self, available: frozenset[str], *, building: bool) -> list[Planned]:
        """The views of a batch; first states are all alike."""
        plans = [self._plans[row.name] for row in self._ready(available, building=building)]
        return [p for p in plans if building or not p.forced]

    def one_by_one(self, available: frozenset[str], seconds: float | None) -> None:
        """The views with an algorithm of the papers: so many seconds each, or (None) to the end.

        To the end is: everything that the sources had committed when this was called.
        """
        with spark_told(self._parts.root):
            for row in self._ready(available, building=False):
                plan = self._plans[row.name]
                if plan.forced:
                    self._keep_forced(plan, seconds)

    def _keep_forced(self, plan: Planned, seconds: float | None) -> None:
        target = self._parts.catalog.commits.last_cn()
        try:
            if seconds is None:
                sources = [self._parts.sources[s] for s in sorted(plan.sources)]
                with open_moment(sources, self._wait_for, self._parts.catalog) as moment:
                    target = moment.upto
            done = self._forced.work(plan, target, seconds)
        except ColumnLost as lost:
            self.losses.stop_users([plan], lost, self._rows(building=False))
        except ViewStopped as stopped:
            self.losses.stop_lost([plan])
            self._stop_at(plan.name, stopped)
        except Exception as error:  # noqa: BLE001 - sorted by `trouble`
            self._stop_at(plan.name, error)
        else:
            self.lookups += done.lookups
            self.changes[plan.name] += done.changes
            self._went_on(self._views.get(plan.name))

    def _stop_at(self, name: str, error: Exception) -> None:
        """The view cannot go on from where it is: for good, or by a fault of ours for now."""
        row = self._views.get(name)
        if row.state == "stopped":
            return
        found = trouble(error, self._parts.spark, self._parts.root)
        if found.error is not None:
            self._views.stop(name, found.error, (row.cn or 0) + 1, mendable=found.mendable)
        if found.fault is not None:
            self._views.tell(name, str(self.faults.met(name, found.fault)))

    def _went_on(self, row: ViewRow) -> None:
        """What was wrong with a view that is not stopped is over."""
        self.faults.over(row.name)
        if row.error is not None and row.state != "stopped":
            self._views.tell(row.name, None)

    def close(self) -> None:
        """Forget the algorithms' objects: they start again from what is published."""
        self._forced.close()

    def readers(self, source: str) -> list[str]:
        """The views and nodes that read the source, themselves or over others."""
        return [n for n, p in self._plans.items() if source in all_sources(p, self._plans)]

    def end_building(self) -> None:
        """Read no more for first states: what was read stays for the next life."""
        self._building.end()

    def _cycled(self, plans: Sequence[Planned], *, building: bool) -> int | None:
        started = self._parts.clock.now_us()
        sources = [self._parts.sources[s] for s in sorted(set().union(*(p.sources for p in plans)))]
        mark = self.losses.mark()
        if building:
            self._mark = mark
            plans = self._with_parents(plans)
            if not plans:
                return None
        with open_moment(sources, self._wait_for, self._parts.catalog) as moment:
            self.losses.stop_lost(plans)
            # after the batch's end is fixed: nothing that a loss may have touched is published
            self.examine(moment.snapshots)
            rows = self._rows(building=building)
            plans = [
                p
                for p in plans
                if p.name in rows and not self.losses.waits(p)
                if not (building and self.losses.spoilt(p, mark, moment))
            ]
            if not plans or not (building or self._behind(plans, rows, moment.upto)):
                return None
            if building:
                at = min([moment.upto, *self._standing_parents(plans, rows)])
                return self._built(plans, rows, moment.at(at, {}), started)
            return self._batch(plans, rows, moment, started)

    def _behind(
        self, plans: Sequence[Planned], rows: Mapping[str, ViewRow], upto: int
    ) -> bool:
        """Whether one of them is not where it can come to by cn `upto`."""
        return any((rows[p.name].cn or 0) < self._reach(p.name, upto) for p in plans)

    def _with_parents(self, plans: Sequence[Planned]) -> list[Planned]:
        """Those of the plans whose parents have a state, or get one together with them."""
        rows, found = self._rows(building=True), list(plans)
        while True:
            names = {p.name for p in found}
            kept = [p for p in found if all(self._has_state(x, rows, names) for x in p.parents)]
            if len(kept) == len(found):
                return kept
            found = kept

    def _has_state(self, name: str, rows: Mapping[str, ViewRow], built: set[str]) -> bool:
        if name in built and name in rows:
            return True
        row = self._views.find(name)
        return name not in rows and row is not None and row.cn is not None

    def _standing_parents(
        self, plans: Sequence[Planned], rows: Mapping[str, ViewRow]
    ) -> list[int]:
        """Where the nodes stand that the plans read, and that are not built with them."""
        names = {name for p in plans for name in p.parents if name not in rows}
        return [self._stands(name)[1] for name in names]

    def _built(
        self,
        plans: Sequence[Planned],
        rows: Mapping[str, ViewRow],
        moment: Moment,
        started: int,
    ) -> int | None:
        """First states, those that take long over relations stored by this life or others."""
        reached = None
        for portion in self._building.portions(plans, rows, moment):
            if portion.damage is None:
                reached = self._batch(portion.plans, rows, portion.moment, started)
            else:
                for plan in portion.plans:
                    self._stop_at(plan.name, portion.damage)
        return reached

    def _batch(
        self,
        plans: Sequence[Planned],
        rows: Mapping[str, ViewRow],
        moment: Moment,
        started: int,
    ) -> int:
        works = list(self._works([p for p in plans if p.node is not None], rows))
        after = min((w.after for w in works if w.after is not None), default=moment.upto)
        admitted, works = self._admitted(works, moment, after)
        whole = [p for p in plans if p.node is None and p.sources <= admitted.keys()]
        with self._scratch() as (frames, folder):
            relations = RelationInputs(frames, folder, moment, admitted, self._parts.log)
            batch = Batch(frames, folder, moment, relations, self._stands, self._shadow)
            if works:
                batch.prepare(works)

            def recomputed() -> Iterator[Done]:
                return self._recompute(whole, rows, moment, folder, frames)

            def publish(done: Sequence[Done]) -> None:
                self._publish(done, rows, admitted)

            if any(rows[p.name].cn is None for p in plans):
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
            done = batch.piece(upto)
            SIZE.took(rows, time.monotonic() - begun)
            last = upto == batch.upto or batch.over
            publish([*done, *recomputed()] if last else done)
            self._record(after, upto, batch.asked.since(before), started)
            after, started = upto, self._parts.clock.now_us()
            over = last or self.ending()

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
                readers = [p for p in self._plans.values() if name in p.sources]
                for plan in readers:
                    self._stop_at(plan.name, damage)
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

    def _works(self, plans: Sequence[Planned], rows: Mapping[str, ViewRow]) -> Iterator[Work]:
        """What is to be done for each view; one whose files are gone or damaged stops."""
        for plan in plans:
            try:
                yield self._work(plan, rows[plan.name])
            except StorageDamaged as damage:
                self._stop_at(plan.name, files_damaged(plan.name, str(damage.message)))

    def _work(self, plan: Planned, row: ViewRow) -> Work:
        store = self._store(plan, row)
        if row.cn is None:
            store.create()
        after = None if row.cn is None else max(row.cn, store.propagated())
        return Work(plan, store, after)

    def _recompute(
        self,
        plans: Sequence[Planned],
        rows: Mapping[str, ViewRow],
        moment: Moment,
        folder: Path,
        frames: Frames,
    ) -> Iterator[Done]:
        for plan in plans:
            row = rows[plan.name]
            work = Work(plan, self._store(plan, row), row.cn)
            if row.cn is None:
                work.store.create()
            if work.after is not None and not self._changed(plan, work.after, moment.upto):
                yield Done(work, moment.upto, 0, work.store.newest_base())
                continue
            try:
                again = Recomputing(
                    self._parts, frames, self._plans, moment, moment.upto, folder
                )
                sql = f"SELECT * FROM {frames.frame('recomputed', again.rows(plan))}"
                base = Applier(self._parts.spark, work.store).replace(sql, moment.upto)
            except Exception as error:  # noqa: BLE001 - sorted by `trouble`
                found = trouble(error, self._parts.spark, self._parts.root)
                upto = moment.upto - 1 if work.after is None else work.after
                yield Done(
                    work, upto, 0, error=found.error, fault=found.fault, mendable=found.mendable
                )
            else:
                yield Done(work, moment.upto, 0, base)

    def _changed(self, plan: Planned, after: int, upto: int) -> bool:
        runs = self._parts.catalog.commits.runs(after + 1, upto)
        return any(run.source in plan.sources for run in runs)

    def _publish(
        self,
        done: Sequence[Done],
        rows: Mapping[str, ViewRow],
        admitted: Mapping[str, Admitted],
    ) -> None:
        self._show(done, rows)
        self.changes.update({d.work.plan.name: d.changes for d in done})
        crash_point("published")
        for d in done:
            name = d.work.plan.name
            if d.error is not None and rows[name].replacement:
                self._views.give_up(rows[name].id)
                d.work.store.remove()
            elif d.error is not None:
                self._views.stop(name, d.error, d.upto + 1, mendable=d.mendable)
            elif d.fault is not None:
                self._views.tell(name, str(self.faults.met(name, d.fault)))
            else:
                self._went_on(rows[name])
        for source, seen in admitted.items():
            self._parts.catalog.sources.settle(source, settled_upto(seen))
        crash_point("settled")

    def _show(self, done: Sequence[Done], rows: Mapping[str, ViewRow]) -> None:
        """Make what is ready current; a first state built beside takes its view's place."""
        ready = [p for d in done if (p := _published(d, rows[d.work.plan.name]))]
        for d in done:
            plan, row = d.work.plan, rows[d.work.plan.name]
            if row.cn is None and not d.failed and plan.parents:
                self._views.rests_on(row.id, described(plan, self._ids(plan)))
        for view in ready:
            if rows[view.view].cn is None and not rows[view.view].replacement:
                self._views.started(view.view, view.cn)
        self._views.publish([p for p in ready if not rows[p.view].replacement])
        for view in ready:
            if rows[view.view].replacement:
                self._views.swap(rows[view.view].id, view)
                self._renew_readers(view.view)

    def _renew_readers(self, name: str) -> None:
        """Build the nodes anew that read one which was: no change leads to its new rows."""
        for plan in self._plans.values():
            row = self._views.find(plan.name)
            if name in plan.parents and row is not None and row.cn is not None:
                self._views.replace(plan.name)

    def apply(self, *, everything: bool = False) -> int:
        """Roll the bases whose residual has outgrown them (or all); how many were rolled."""
        rolled = 0
        for row in self._running():
            plan = self._plans[row.name]
            if row.cn is None or plan.node is None or row.base_cn is None:
                continue
            if self.faults.waits(row.name):
                continue
            rolled += self._rolled(self._store(plan, row), row, everything=everything)
        return rolled

    def _rolled(self, store: ViewStore, row: ViewRow, *, everything: bool) -> int:
        """Roll one base; a view whose rows can no longer be shown stops, the others go on."""
        assert row.cn is not None
        try:
            with spark_told(self._parts.root):
                if state_due(store, row):
                    Applier(self._parts.spark, store).roll_state(row.cn)
                return self._roll(store, row) if everything or due(store, row) else 0
        except StorageDamaged as damage:
            self._stop_at(row.name, files_damaged(row.name, damage.message))
            return 0
        except Exception as error:  # noqa: BLE001 - sorted by `trouble`
            self._stop_at(row.name, error)
            return 0

    def _roll(self, store: ViewStore, row: ViewRow) -> int:
        assert row.cn is not None
        base, version = store.newest_base(), row.delta_version or 0
        if rolls(store, base, row.cn, version):
            base = Applier(self._parts.spark, store).roll(base, row.cn, version)
        if base.cn == row.base_cn:
            return 0
        self._views.publish(
            [Published(row.name, row.cn, row.delta_version or 0, base.cn, base.version)]
        )
        return 1

    def _ready(self, available: frozenset[str], *, building: bool) -> list[ViewRow]:
        rows = self._rows(building=building).values()
        return [
            row
            for row in rows
            if self._plans[row.name].sources <= available and not self.faults.waits(row.name)
            if not self.losses.waits(self._plans[row.name])
        ]

    def _rows(self, *, building: bool) -> dict[str, ViewRow]:
        """The views to be kept or, `building`, those to get a first state, by name."""
        rows = {row.name: row for row in self._running() if (row.cn is None) == building}
        if building:
            beside = (r for r in self._views.replacements() if r.name in self._plans)
            rows.update({row.name: row for row in beside})
        return rows

    def _running(self) -> list[ViewRow]:
        return [
            row
            for row in self._views.all()
            if row.state in ("building", "active") and row.name in self._plans and self._rests(row)
        ]

    def _rests(self, row: ViewRow) -> bool:
        """Whether the nodes that it was made of are still those that it reads."""
        return row.cn is None or inputs_of(row) == self._ids(self._plans[row.name])

    def _stands(self, name: str) -> tuple[ViewStore, int]:
        """Where a node lives that others read, and the cn that it is published at."""
        row = self._views.get(name)
        return self._store(self._plans[name], row), -1 if row.cn is None else row.cn

    def _store(self, plan: Planned, row: ViewRow) -> ViewStore:
        return ViewStore(self._parts.root, row, plan.shape)


def _published(done: Done, row: ViewRow) -> Published | None:
    """What of a view's part can be shown; None if it has no state."""
    base = done.base or (
        Base(row.base_cn, row.base_version)
        if row.base_cn is not None and row.base_version is not None
        else None
    )
    if base is None or done.fault is not None or (row.cn is None and done.failed):
        return None
    return Published(done.work.plan.name, done.upto, done.delta_version, base.cn, base.version)


def files_damaged(view: str, detail: str) -> StorageDamaged:
    """The files of one view are gone or damaged: its trouble alone."""
    return StorageDamaged(
        f'the files of view "{view}" are not those that the catalog knows',
        detail=detail,
        hint=f"restore them from a backup, or run: steadyview view rebuild {view}",
    )


def _folder_of(root: Path, row: ViewRow) -> ViewStore:
    from steadyview.warehouse.view_store import Shape

    return ViewStore(root, row, Shape())
