"""The loop of `run`: captures in threads, first states beside, batches one after the other."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from steadyview.engine.session import ended
from steadyview.errors import SteadyviewError, TransientError
from steadyview.runtime.captures import Captures
from steadyview.runtime.conventional import Shadow
from steadyview.runtime.housekeeping import Housekeeping
from steadyview.runtime.maintainer import Maintainer
from steadyview.runtime.parts import Parts
from steadyview.runtime.planning import Planned, Refused
from steadyview.runtime.project import view_paths
from steadyview.runtime.recording import Recording
from steadyview.runtime.schemas import Relations, present_sources
from steadyview.runtime.status import RunSummary

Plan = Callable[[Relations], list[Planned | Refused]]
Report = Callable[[], None]
PAUSE = 0.5
RETRY = 1.0
TRIES = 10
TURN = 1.0
"""Seconds for a view that is kept transaction by transaction, until the others have their turn."""


@dataclass
class _Meter:
    """Changed rows per second of a view, over the last batches."""

    changes: int = 0
    since: float = 0.0
    rate: float = 0.0


class Keeping:
    """One process's work on a warehouse, while it holds the lease."""

    def __init__(
        self,
        parts: Parts,
        plan: Plan,
        shadow: Shadow | None = None,
        *,
        patient: bool = False,
        recordings: Sequence[Recording] = (),
    ) -> None:
        """`patient`: a source that does not answer now, but did before, may come later."""
        self._recordings = {r.view: r for r in recordings}
        self.error: SteadyviewError | None = None
        self._shadow = shadow
        self._parts = parts
        self._plan = plan
        parts.clear_work()
        present = present_sources(parts, patient=patient)
        self._relations = present.relations
        self.captures = Captures(
            parts.sources.values(),
            present.relations.by_source(),
            parts.catalog,
            parts.log,
            present.away,
        )
        self._maintainer = self._planned()
        self._housekeeping = Housekeeping(parts)
        self._builder: threading.Thread | None = None
        self._builder_error: Exception | None = None
        self._signature = self._view_files()
        self._meters: dict[str, _Meter] = {}

    def _planned(self) -> Maintainer:
        maintainer = Maintainer(
            self._parts,
            self._plan(self._relations),
            self.captures.wait_for,
            self._shadow,
            self._recordings,
        )
        maintainer.reconcile()
        for name, recording in self._recordings.items():
            row = self._parts.catalog.views.find(name)
            if row is not None and row.cn is not None:
                recording.begins(row.cn)
        return maintainer

    def run(self, stop: threading.Event, report: Report | None) -> None:
        """Until `stop`: every admitted transaction reaches every view, every view its base."""
        self.captures.start()
        try:
            self._follow(stop, report)
        except Exception:
            # a service manager stops Spark together with us; the batch is done again next time
            if not (stop.is_set() and ended(self._parts.spark)):
                raise

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
        """Everything committed before now, propagated, applied and published."""
        started, first = time.monotonic(), self._parts.catalog.commits.last_cn()
        self.captures.start()
        everything = frozenset(self._parts.sources)
        self._build_now(everything)
        self._maintainer.cycle(everything, building=False)
        self._maintainer.one_by_one(everything, None)
        self._maintainer.apply(everything=True)
        self._housekeeping.now()
        if report:
            report()
        self._maintainer.faults.check()
        cn = self._parts.catalog.commits.last_cn()
        return RunSummary(
            cn - first,
            self.captures.changes(),
            self._maintainer.batches,
            self._maintainer.lookups,
            cn,
            time.monotonic() - started,
        )

    def _build_now(self, sources: frozenset[str]) -> None:
        """First states; one that a loss got in the way of is tried again a few times."""
        for _ in range(TRIES):
            self._maintainer.cycle(sources, building=True)
            if not self._maintainer.waiting(sources, building=True):
                return
            self.captures.wait_for_news(PAUSE)

    def stop(self) -> None:
        """End captures and a first state under way."""
        self.captures.stop()
        if self._builder is not None:
            self._builder.join()
        self._maintainer.close()

    def lag(self, source: str) -> float | None:
        """Seconds the capture of a source is behind; None while the source is away."""
        return self.captures.lag(source)

    def rates(self) -> dict[str, float]:
        """Changed rows per second of each view lately."""
        return {name: meter.rate for name, meter in self._meters.items()}

    def _step(self) -> bool:
        """One round of the loop; whether there was anything to do."""
        self._replan()
        self._build()
        self._housekeeping.sometimes()
        available = self.captures.available()
        if not self._maintainer.waiting(available, building=False):
            return False
        if self._maintainer.waiting(available, building=False, forced=False):
            self._maintainer.cycle(available, building=False)
        self._maintainer.one_by_one(available, TURN)
        self._measure()
        self._maintainer.apply()
        return True

    def _build(self) -> None:
        """First states are computed beside, so that the other views do not wait for them."""
        if self._builder is not None and self._builder.is_alive():
            return
        error, self._builder_error = self._builder_error, None
        if error is not None:
            raise error
        available = self.captures.available()
        if self._maintainer.waiting(available, building=True):
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
        if found == self._signature or (self._builder is not None and self._builder.is_alive()):
            return
        self._signature = found
        self._maintainer.close()
        self._maintainer = self._planned()

    def _view_files(self) -> frozenset[tuple[str, str]]:
        return frozenset(
            (str(path), _stamp(path)) for path in view_paths(self._parts.project.root / "views")
        )

    def _measure(self) -> None:
        now = time.monotonic()
        for view, changes in self._maintainer.changes.items():
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
