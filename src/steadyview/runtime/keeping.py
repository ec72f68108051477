"""The loop of `run`: captures in threads, first states beside, batches one after the other."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from queue import SimpleQueue
from typing import Protocol

from steadyview.engine.session import ended
from steadyview.errors import SteadyviewError, StorageUnavailable, TransientError
from steadyview.papers.conventional import Shadow
from steadyview.papers.recording import Recordings
from steadyview.query.moment import open_moment
from steadyview.runtime.auditing import Auditor, Unequal
from steadyview.runtime.captures import Captures, conditions
from steadyview.runtime.compressing import Compressed, Compressing, CompressWanted
from steadyview.runtime.housekeeping import Housekeeping
from steadyview.runtime.maintainer import Maintainer
from steadyview.runtime.parts import Parts
from steadyview.runtime.pieces import SIZE, noted
from steadyview.runtime.planning import Planned, Refused
from steadyview.runtime.project import view_paths
from steadyview.runtime.publishing_tables import Tables
from steadyview.runtime.reconciling import remove_dropped
from steadyview.runtime.refreshing import CarryWanted, Refreshed, RefreshWanted
from steadyview.runtime.removing import remove_source
from steadyview.runtime.renewing import begin_anew, rebuild
from steadyview.runtime.schemas import (
    Recorded,
    Relations,
    known_relations,
    present_sources,
    record_relations,
)
from steadyview.runtime.status import RunSummary
from steadyview.runtime.store_keeping import StoreKeepers
from steadyview.runtime.view_files import ReaderPlace, ViewFiles, finish
from steadyview.warehouse.view_store import adopt_folders

Report = Callable[[], None]
PAUSE = 0.5
EXAMINE = 10.0
"""Seconds between two looks at what a source's own catalog says of its relations."""
RETRY = 1.0
TRIES = 10
TURN = 1.0
"""Seconds for a view that no batch keeps, until the others have their turn."""


class Plan(Protocol):
    """How the views are planned."""

    def __call__(self, relations: Relations) -> list[Planned | Refused]:
        """The plans of all views over these relations."""

    def reconciled(self, relations: Relations) -> None:
        """The catalog has the views that were planned over these relations."""


class Wish(Protocol):
    """Something that is to be done by whoever keeps the views, between two rounds."""

    def grant(self, keeping: Keeping) -> None:
        """Do it, and tell whoever wished for it; raises nothing."""

    def give_up(self) -> None:
        """Tell that it will not be done."""


@dataclass
class _Meter:
    """Changed rows per second of a view, over the last batches."""

    changes: int = 0
    since: float = 0.0
    rate: float = 0.0


class Keeping:
    """One process's work on a warehouse, while it holds the lease.

    Whoever called `run` or `once` is the thread of the loop, to which everything here belongs.
    Others hand over: wishes and audits by queues, the builder its error by ending. From any thread
    may be called: `wish`, `errors`, `lag`, `rates`.
    """

    def __init__(
        self,
        parts: Parts,
        plan: Plan,
        shadow: Shadow | None = None,
        *,
        recordings: Recordings | None = None,
    ) -> None:
        self._recordings = recordings
        self._stop = threading.Event()
        self.error: SteadyviewError | None = None
        self._shadow = shadow
        self._parts = parts
        self._catalog = parts.catalog
        self._plan = plan
        if (killed := noted(parts.root / "work")) is not None:
            SIZE.interrupted(*killed)
        parts.clear_work()
        adopt_folders(parts.root)
        present = present_sources(parts)
        self._relations = present.relations
        self._defects = present.defects
        self.captures = Captures(
            parts.sources.values(),
            present.relations.by_source(),
            parts.catalog,
            parts.log,
            present.away,
            conditions(parts),
        )
        self._housekeeping = Housekeeping(parts)
        self._compressing = Compressing(parts)
        self.tables = Tables(parts)
        self.stores = StoreKeepers(parts)
        self.captures.news.watched = self.stores.have_managers
        self._builder: threading.Thread | None = None
        self._builder_error: Exception | None = None
        self._signature = self._view_files()
        self._meters: dict[str, _Meter] = {}
        self._wishes: SimpleQueue[Wish] = SimpleQueue()
        self._examined = 0.0
        self._auditor = Auditor(parts, self.captures.wait_for)
        self._audit: threading.Thread | None = None
        self._unequal: SimpleQueue[Unequal] = SimpleQueue()

    @cached_property
    def _maintainer(self) -> Maintainer:
        """Made when it is first needed: capture waits neither for Spark nor for the views."""
        with suppress(StorageUnavailable):
            # told by the command that began it; tried again by the next run
            finish(self._catalog, self._parts.project.root)
        remove_dropped(self._parts)
        self._signature = self._view_files()
        return self._planned()

    def wish(self, wish: Wish) -> None:
        """Have something done between two rounds."""
        self._wishes.put(wish)
        with self.captures.news:
            self.captures.news.notify_all()

    def _planned(self) -> Maintainer:
        maintainer = Maintainer(
            self._parts,
            self._plan(self._relations),
            self.captures.wait_for,
            self._shadow,
            self._recordings,
            self._defects,
        )
        maintainer.ending = self._stop.is_set
        maintainer.reconcile()
        self._plan.reconciled(self._relations)
        maintainer.losses.tell_defects()
        return maintainer

    def run(self, stop: threading.Event, report: Report | None) -> None:
        """Until `stop`: every admitted transaction reaches every view, every view its base."""
        self._stop = stop
        self.captures.conditions.patient = False
        self.captures.start()
        self.stores.start()
        threading.Thread(target=self._warm, name="start-spark", daemon=True).start()
        try:
            self._follow(stop, report)
        except Exception:
            # a service manager stops Spark together with us; the batch is done again next time
            if not (stop.is_set() and ended(self._parts.spark)):
                raise

    def _warm(self) -> None:
        """Start Spark beside; what goes wrong with it is told when it is first used."""
        with suppress(Exception):
            _ = self._parts.spark

    def _follow(self, stop: threading.Event, report: Report | None) -> None:
        while not stop.is_set():
            busy = self._tried()
            if report:
                report()
            if self.error is not None:
                stop.wait(RETRY)
            elif not busy:
                self.captures.wait_for_news(PAUSE)

    def _tried(self) -> bool:
        """One round; what may pass, or concerns one source only, is kept for `status`."""
        try:
            busy = self._step()
        except SteadyviewError as error:
            if self.captures.leave_out(error):
                # the others go on without the views that read it
                self.error = None
                return True
            if not isinstance(error, TransientError):
                raise
            self.error = error
            return True
        self.error = None
        return busy

    def once(self, report: Report | None) -> RunSummary:
        """Everything committed before now, propagated and published; bases are rolled that are due.

        What is wrong with one source, or one table of it, is raised in the end, when all that does
        not read it went on.
        """
        started, first = time.monotonic(), self._parts.catalog.commits.last_cn()
        self.captures.start()
        wrong = self._all_that_answer(
            self._take_up,
            self._build_now,
            lambda sources: self._maintainer.cycle(sources, building=False),
            lambda sources: self._maintainer.one_by_one(sources, None),
            lambda _: self.captures.close_gates(),
            self._maintainer.refresh_due,
        )
        unserved = self.stores.now()
        self._maintainer.apply()
        self.tables.now()
        self._compressing.now()
        self._stand_still()
        for source in self._auditor.due(sorted(self._parts.sources.keys() - wrong.keys())):
            for unequal in self._auditor.audit(source):
                self._stop_unequal(unequal)
        self._housekeeping.now()
        if report:
            report()
        for error in (*wrong.values(), *self._maintainer.losses.defects().values()):
            raise error
        self._maintainer.faults.check()
        for error in (*self.tables.errors().values(), *(t.error for t in unserved)):
            raise error
        cn = self._parts.catalog.commits.last_cn()
        return RunSummary(
            cn - first,
            self.captures.changes(),
            self._maintainer.tally.batches,
            self._maintainer.tally.lookups,
            cn,
            time.monotonic() - started,
        )

    def _all_that_answer(
        self, *works: Callable[[frozenset[str]], object]
    ) -> dict[str, SteadyviewError]:
        """Do these over all sources; one that fails is left out of the rest. What was wrong."""
        wrong: dict[str, SteadyviewError] = {}
        waiting = list(works)
        while waiting:
            sources = frozenset(self._parts.sources) - wrong.keys()
            try:
                waiting[0](sources)
            except SteadyviewError as error:
                if error.source not in sources:
                    raise
                wrong[error.source] = error
            else:
                waiting.pop(0)
        return wrong

    def _take_up(self, sources: frozenset[str]) -> None:
        """Have views go on that stood still for a source, if it is what it was again."""
        for name in self._parts.catalog.views.still() & sources:
            # what is frozen now is delivered only after all of the past was found again
            with open_moment([self._parts.sources[name]], self.captures.wait_for, self._catalog):
                self._catalog.views.go_on(name, self._catalog.commits.oldest_cn())
            self._maintainer.place()

    def _stand_still(self) -> None:
        """Stop the views of sources that turned out to have another past, for all to see."""
        for name, error in self.captures.ended().items():
            self._catalog.views.stand_still(name, self._maintainer.readers(name), str(error))

    def _build_now(self, sources: frozenset[str]) -> None:
        """First states; one that a loss got in the way of is tried again a few times."""
        for _ in range(TRIES):
            self._maintainer.cycle(sources, building=True)
            if not self._maintainer.waiting(sources, building=True):
                return
            self.captures.wait_for_news(PAUSE)

    def stop(self) -> None:
        """End captures and a first state under way."""
        if "_maintainer" in self.__dict__:
            self._maintainer.end_building()
        self._auditor.end()
        self.captures.stop()
        self.stores.stop()
        self.tables.stop()
        while self._auditing():
            self._auditor.end()
            assert self._audit is not None
            self._audit.join(PAUSE)
        if self._builder is not None:
            self._builder.join()
        if "_maintainer" in self.__dict__:
            self._maintainer.close()
        while not self._wishes.empty():
            self._wishes.get().give_up()

    def errors(self) -> dict[str, SteadyviewError]:
        """What is wrong with which source, or with a table of it."""
        planned = "_maintainer" in self.__dict__
        defects = self._maintainer.losses.defects() if planned else self._defects
        return {**{r.source: e for r, e in defects.items()}, **self.captures.errors()}

    def lag(self, source: str) -> float | None:
        """Seconds the capture of a source is behind; None while the source is away."""
        return self.captures.lag(source)

    def heard(self) -> dict[str, int]:
        """By source, when all that it had delivered was admitted last, in microseconds."""
        return self.captures.heard()

    def rates(self) -> dict[str, float]:
        """Changed rows per second of each view lately."""
        return {name: meter.rate for name, meter in list(self._meters.items())}

    def _step(self) -> bool:
        """One round of the loop; whether there was anything to do."""
        self._replan()
        self._grant()
        self._stand_still()
        self._maintainer.mend()
        self._build()
        self._housekeeping.sometimes()
        if self._compressing.due() and not (self._building() or self.tables.writing):
            self._compressing.now()
        self.tables.beside()
        available = self.captures.available()
        self._examine(available)
        self._audit_beside(available)
        self._maintainer.swap_ready()
        self._follow_schedules()
        self._maintainer.refresh_due(available)
        due = self._maintainer.waiting(available, building=False)
        if not (due or self._maintainer.waiting_alone(available)):
            return False
        if due:
            with self.captures.news.unhurried():
                self._maintainer.turn(available)
            self.stores.wake()
        if not self._stop.is_set():
            self._maintainer.one_by_one(available, TURN)
            self.stores.wake()
        self._measure()
        if not self._stop.is_set():
            self._maintainer.apply()
        return True

    def _follow_schedules(self) -> None:
        """Gates go by the views as they are now; served ticks want none."""
        gates = self.captures.conditions.gates
        gates.follow()
        gates.tend()

    def _grant(self) -> None:
        """Do what was wished for; not while a first state or an audit may be disturbed by it.

        Both can wait: they are ended, and gone on with later. Batches go on meanwhile.
        """
        if not self._wishes.empty():
            self._auditor.end()
            if self._building():
                self._maintainer.end_building()
        while not (self._wishes.empty() or self._building() or self._auditing()):
            self._wishes.get().grant(self)

    def _auditing(self) -> bool:
        return self._audit is not None and self._audit.is_alive()

    def _building(self) -> bool:
        return self._builder is not None and self._builder.is_alive()

    def _examine(self, available: frozenset[str]) -> None:
        """Look at the sources' own catalogs now and then, also while nothing is captured."""
        now = time.monotonic()
        if now - self._examined >= EXAMINE:
            self._examined = now
            self._take_up(available)
            self._maintainer.examine(sorted(available))

    def refresh(self, wanted: RefreshWanted) -> Refreshed:
        """Show views as of one moment, together."""
        return self._maintainer.refresh(wanted)

    def compress(self, wanted: CompressWanted) -> Compressed:
        """Replace ranges of a view's changes by their net effect."""
        self.tables.settle()
        return self._compressing.compressed(wanted)

    def carry(self, wanted: CarryWanted) -> int:
        """Have the changes of views at hand up to one moment, shown or not."""
        return self._maintainer.carry(wanted)

    def carry_once(self, wanted: CarryWanted) -> int:
        """The same where nothing else is to be done."""
        self.captures.start()
        return self._maintainer.carry(wanted)

    def refresh_once(self, wanted: RefreshWanted) -> Refreshed:
        """The same where nothing else is to be done."""
        self.captures.start()
        refreshed = self._maintainer.refresh(wanted)
        self.stores.now()
        self.tables.now()
        return refreshed

    def rebuild(self, name: str) -> None:
        """Build a view anew, beside what it shows."""
        self._maintainer.renew(rebuild(self._parts.catalog, name))

    def drop(self, name: str, *, cascade: bool) -> list[str]:
        """Drop a view with its file, and with `cascade` those that read it."""
        dropped = self._files().drop(name, cascade=cascade)
        self._replan()
        self._maintainer.place()
        return dropped

    def rename(self, old: str, new: str) -> list[ReaderPlace]:
        """Call a view otherwise, file and all; who reads it by its old name."""
        places = self._files().rename(old, new)
        self._replan()
        return places

    def _files(self) -> ViewFiles:
        return ViewFiles(self._catalog, self._parts.project.root)

    def resnapshot(self, name: str) -> list[str]:
        """Begin with a source anew: set up again, its views built from what it holds now."""
        self.captures.stop_one(name)
        done, found = begin_anew(self._parts, self._parts.sources[name])
        self._begin_again(name, found)
        return done

    def _begin_again(self, name: str, found: Recorded | None = None) -> None:
        """Capture a source that was set up anew (if it was), and plan the views anew."""
        others = {r: e for r, e in self._maintainer.losses.defects().items() if r.source != name}
        self._defects = {**others, **(found.defects if found else {})}
        if found is not None:
            self.captures.begin_one(self._parts.sources[name], found.relations)
        self._relations = known_relations(self._parts)
        self._maintainer.close()
        self._maintainer = self._planned()

    def _audit_beside(self, available: frozenset[str]) -> None:
        """Audit a source that is due, beside; then stop the views that do not add up."""
        while not self._unequal.empty():
            self._stop_unequal(self._unequal.get())
        if self._building() or self._auditing() or not self._wishes.empty():
            return
        self._auditor.may_begin()
        if due := self._auditor.due(sorted(available)):
            self._audit = threading.Thread(target=self._audited, args=(due[0],), name="audit")
            self._audit.start()

    def _audited(self, source: str) -> None:
        for unequal in self._auditor.audit(source):
            self._unequal.put(unequal)

    def _stop_unequal(self, unequal: Unequal) -> None:
        self._maintainer.losses.lose([unequal.lost])
        self._auditor.accept(unequal)

    def remove(self, name: str) -> list[str]:
        """Leave nothing of a source behind; the views that read it are refused from now on."""
        if name in self._parts.sources:
            self.captures.stop_one(name)
        done = remove_source(self._parts, name)
        if name in self._parts.sources:
            # still in the project file: it is set up anew, as the next run would do
            self._begin_again(name, record_relations(self._parts, self._parts.reopen(name)))
        else:
            self._begin_again(name)
        return done

    def _build(self) -> None:
        """First states are computed beside, so that the other views do not wait for them."""
        if self._building():
            return
        error, self._builder_error = self._builder_error, None
        if error is not None:
            raise error
        available = self.captures.available()
        if self._maintainer.waiting(available, building=True):
            self._maintainer.may_build()
            self._builder = threading.Thread(target=self._first_states, name="first-states")
            self._builder.start()

    def _first_states(self) -> None:
        try:
            self._maintainer.cycle(self.captures.available(), building=True)
        except Exception as error:  # noqa: BLE001 - raised again by the loop
            self._builder_error = error
        finally:
            with self.captures.news:
                self.captures.news.notify_all()

    def _replan(self) -> None:
        """Take up view files that were added, changed or removed meanwhile."""
        found = self._view_files()
        if found == self._signature:
            return
        if self._building():
            # what it has read stays, and is gone on with if its view still wants it
            self._maintainer.end_building()
            return
        self._signature = found
        self._defects = self._maintainer.losses.defects()
        self._maintainer.close()
        self._maintainer = self._planned()

    def _view_files(self) -> frozenset[tuple[str, str]]:
        return frozenset(
            (str(path), _stamp(path)) for path in view_paths(self._parts.project.root / "views")
        )

    def _measure(self) -> None:
        now = time.monotonic()
        for view, changes in self._maintainer.tally.changes().items():
            meter = self._meters.setdefault(view, _Meter(changes, now))
            if now - meter.since > 1:
                meter.rate = max(changes - meter.changes, 0) / (now - meter.since)
                meter.changes, meter.since = changes, now


def _stamp(path: Path) -> str:
    """When the file was last changed; a file that went meanwhile is another one."""
    try:
        return str(path.stat().st_mtime_ns)
    except OSError:
        return "gone"
