"""The warehouse of a project, as users hold it.

    wh = steadyview.open("shop")
    wh.run_once()
    wh.view("revenue_by_region").read().show()

Reading works while another process maintains; only one process maintains at a time.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict
from datetime import datetime, timedelta
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from steadyview.catalog import Catalog, Lease, holder
from steadyview.checking import History
from steadyview.delta.modes import settle
from steadyview.engine.failures import spark_told
from steadyview.engine.session import beside, open_session
from steadyview.errors import ConfigError, SteadyviewError, TransientError, WarehouseHeld
from steadyview.query.verify import Verdict
from steadyview.runtime import serving
from steadyview.runtime.asking import Answer, Limits, Question, answer
from steadyview.runtime.captures import Captures, elsewhere
from steadyview.runtime.checks import SourceCheck, ViewCheck, checked, missing_at
from steadyview.runtime.clock import SystemClock
from steadyview.runtime.conventional import Deviation, Shadow
from steadyview.runtime.explain import Explanation, explain
from steadyview.runtime.holding import this_process
from steadyview.runtime.keeping import RETRY, Keeping, Plan, Report
from steadyview.runtime.moment import WaitFor
from steadyview.runtime.parts import Parts
from steadyview.runtime.planning import Planned, Refused, plan_views, with_algorithm
from steadyview.runtime.project import load_project
from steadyview.runtime.recording import Recording, recorded
from steadyview.runtime.schemas import Relations, known_relations, present_relations
from steadyview.runtime.serving import Commit
from steadyview.runtime.status import RunSummary, Status, source_status, time_of, view_status
from steadyview.runtime.verifying import verify_or_tell, verify_view
from steadyview.sources.registry import open_source
from steadyview.update_log import UpdateLog
from steadyview.warehouse.view_store import ViewStore

At = int | datetime | str | None
Progress = Callable[[Status], None]


class Warehouse:
    """An open project. Use it as a context manager, or `close` it."""

    def __init__(self, directory: str | Path, spark: SparkSession | None = None) -> None:
        self.project = load_project(directory)
        self._user_spark = spark
        self._own_spark: SparkSession | None = None
        self._clock = SystemClock()
        self._closing = ExitStack()
        self._keeping: Keeping | None = None
        self._planned: tuple[object, list[Planned | Refused]] | None = None
        self._waiting: SteadyviewError | None = None

    def __enter__(self) -> Warehouse:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give everything back; a Spark session that the user handed in goes on."""
        self._closing.close()

    # --- parts -------------------------------------------------------------------------------

    @cached_property
    def _catalog(self) -> Catalog:
        project = self.project
        catalog = Catalog.create(project.warehouse, self._clock, shared=project.shared)
        self._closing.callback(catalog.close)
        return catalog

    @cached_property
    def _parts(self) -> Parts:
        project = self.project
        spark = open_session(project.name, project.spark, project.warehouse, self._user_spark)
        sources = {
            name: open_source(name, settings, project.root)
            for name, settings in project.sources.items()
        }
        for source in sources.values():
            self._closing.callback(source.close)
        log = UpdateLog(project.warehouse / "log")
        return Parts(project, spark, self._catalog, log, sources, self._clock)

    def _plans(self, relations: Relations) -> list[Planned | Refused]:
        """Planned once per state of the view files and of what is known of the sources."""
        files = load_project(self.project.root).views
        asked = (files, relations)
        if self._planned is None or self._planned[0] != asked:
            spark = self._parts.spark
            plans = plan_views(spark, files, relations.schemas, relations.unsupported)
            self._planned = (asked, plans)
        return self._planned[1]

    def _plan(self, name: str) -> Planned:
        for plan in self._plans(known_relations(self._parts)):
            if plan.name.lower() == name.lower():
                if isinstance(plan, Refused):
                    raise plan.refusal
                return plan
        raise _no_view(name, [p.name for p in self.project.views])

    # --- looking -----------------------------------------------------------------------------

    def check(self) -> list[ViewCheck | SourceCheck]:
        """What is missing at the sources, and every view's verdict; nothing is changed."""
        relations = present_relations(self._parts)
        missing = [
            found
            for name, schemas in relations.by_source().items()
            for found in missing_at(self._parts.sources[name], schemas)
        ]
        return [*missing, *(checked(p) for p in self._plans(relations))]

    def explain(self, name: str) -> Explanation:
        """The maintenance plan of a view."""
        for plan in self._plans(present_relations(self._parts)):
            if plan.name.lower() == name.lower():
                if isinstance(plan, Refused):
                    raise plan.refusal
                return explain(plan)
        raise _no_view(name, [p.name for p in self.project.views])

    def status(self) -> Status:
        """Where every source and every view stands."""
        catalog, now = self._catalog, self._clock.now_us()
        last = catalog.commits.last_cn()
        keeping = self._keeping
        errors = keeping.captures.errors() if keeping else {}
        rates = keeping.rates() if keeping else {}
        held = holder(self.project.warehouse)
        return Status(
            self.project.name,
            last,
            time_of(catalog, last),
            asdict(held) if held else None,
            [
                source_status(
                    s,
                    keeping.lag(s.name) if keeping else None,
                    str(errors[s.name]) if s.name in errors else None,
                    now,
                    held=held is not None,
                )
                for s in catalog.sources.states()
            ],
            [view_status(catalog, r, last, now, rates.get(r.name)) for r in catalog.views.all()],
            self._trouble(),
        )

    def _trouble(self) -> str | None:
        """What keeps this process from working, as far as it may pass."""
        error = self._keeping.error if self._keeping else self._waiting
        return None if error is None else str(error)

    def sources(self) -> list[dict[str, Any]]:
        """The configured sources and how far each is captured."""
        states = {s.name: s for s in self._catalog.sources.states()}
        return [
            {
                "name": name,
                "type": settings["type"],
                "tables": list(settings["tables"]),
                "position": states[name].position if name in states else None,
                "transactions": states[name].last_seq if name in states else 0,
            }
            for name, settings in self.project.sources.items()
        ]

    # --- maintaining -------------------------------------------------------------------------

    def run(
        self,
        stop: threading.Event,
        progress: Progress | None = None,
        shadow: Shadow | None = None,
        *,
        algorithm: str | None = None,
        recordings: Sequence[Recording] = (),
    ) -> None:
        """Capture and maintain until `stop` is set.

        `shadow` records beside what maintenance without compensation would have made of it.
        `algorithm` keeps every view during this run, whatever its file says; ViewRefused if it does
        not fit one. `recordings` are told what their views show; see `recorded`.
        """
        report = (lambda: progress(self.status())) if progress else None
        make = partial(
            Keeping,
            self._parts,
            self._planning(algorithm),
            shadow,
            patient=True,
            recordings=recordings,
        )
        with self._lease("run"):
            keeping = self._awaited(stop, report, make)
            if keeping is not None:
                with self._kept(keeping):
                    keeping.run(stop, report)

    def _awaited(
        self, stop: threading.Event, report: Report | None, make: Callable[[], Keeping]
    ) -> Keeping | None:
        """The keeping, once everything it needs at its start answers; None if `stop` came first."""
        try:
            while not stop.is_set():
                try:
                    return make()
                except TransientError as error:
                    self._waiting = error
                if report:
                    report()
                stop.wait(RETRY)
            return None
        finally:
            self._waiting = None

    def run_once(
        self,
        progress: Progress | None = None,
        *,
        algorithm: str | None = None,
        recordings: Sequence[Recording] = (),
    ) -> RunSummary:
        """Process everything committed at any source before this call; then return.

        `algorithm` and `recordings` as for `run`.
        """
        with self._lease("run --once"):
            plan = self._planning(algorithm)
            with self._kept(Keeping(self._parts, plan, recordings=recordings)) as keeping:
                return keeping.once((lambda: progress(self.status())) if progress else None)

    def _planning(self, algorithm: str | None) -> Plan:
        """How a run plans its views."""
        if algorithm is None:
            return self._plans
        return lambda relations: with_algorithm(self._plans(relations), algorithm)

    def recording(self, view: str | None = None) -> Recording:
        """A recording of the view of that name, or of the project's only one, for a run."""
        if view is not None:
            return Recording(self._plan(view).name)
        names = [plan.name for plan in self._plans(known_relations(self._parts))]
        if len(names) != 1:
            raise ConfigError(
                f"one view can be recorded, and the project has {len(names)}",
                detail=f"views: {', '.join(sorted(names)) or 'none'}",
                hint="say which: --record FILE --view NAME",
            )
        return Recording(self._plan(names[0]).name)

    def recorded(self, recording: Recording) -> History:
        """What was recorded, as a history that `steadyview check-history` judges."""
        plan = self._plan(recording.view)
        with self._following() as wait_for, spark_told(self.project.warehouse):
            return recorded(self._parts, plan, recording, wait_for)

    def _lease(self, command: str) -> Lease:
        # the catalog's folder must be there before its lease can be taken
        _ = self._catalog
        if changed := settle(self.project.warehouse, shared=self.project.shared):
            warnings.warn(changed, stacklevel=3)
        return Lease.acquire(self.project.warehouse, this_process(command, self._clock))

    @contextmanager
    def _kept(self, keeping: Keeping) -> Iterator[Keeping]:
        self._keeping = keeping
        try:
            yield keeping
        finally:
            keeping.stop()
            self._keeping = None

    def remove_source(self, name: str) -> list[str]:
        """Leave nothing behind at the source; forget its log and drop the views that read it."""
        if name not in self.project.sources:
            raise ConfigError(
                f'there is no source "{name}"',
                detail=f"sources: {', '.join(sorted(self.project.sources))}",
                hint="a source is removed while the project still says how to reach it",
            )
        with self._lease("source remove"):
            # first, so that no view ever rests on a stream with a gap
            serving.drop_readers(self._catalog, name)
            source = open_source(name, self.project.sources[name], self.project.root)
            with closing(source):
                done = source.remove()
            return done + serving.forget_source(self.project.warehouse, self._catalog, name)

    # --- reading -----------------------------------------------------------------------------

    def view(self, name: str) -> View:
        """A handle of one view."""
        return View(self, name)

    def query(self, sql: str, at: At = None) -> DataFrame:
        """Spark SQL over the views, all at one cn."""
        return self.query_at(sql, at).frame

    def query_at(
        self,
        sql: str,
        at: At = None,
        *,
        max_rows: int | None = None,
        timeout: timedelta | None = None,
        strict: bool = False,
    ) -> Answer:
        """The same, with the cn and the time of the answer, and with what to know of it.

        `max_rows` and `timeout` limit what `rows` of the answer gives; `strict`: a view that is
        stopped is an error, not a warning.
        """
        asked = Question(sql, at, Limits(max_rows, timeout, strict))
        plans = self._plans(known_relations(self._parts))
        return answer(self._parts, beside(self._parts.spark), plans, asked)

    def verify(self, views: Sequence[str] | None = None, at: At = None) -> list[Verdict]:
        """Recompute views from their SQL text and compare.

        Asked for all views, one that cannot be compared is told by its verdict; asked for by name,
        it is an error.
        """
        plans = self._readable()
        names = list(views) if views else [n for n, p in plans.items() if self._has_state(n)]
        for name in names:
            if name not in plans:
                raise _no_view(name, list(plans))
        with self._following() as wait_for:
            check = verify_view if views else verify_or_tell
            return [check(self._parts, plans[n], wait_for, at) for n in names]

    def _has_state(self, name: str) -> bool:
        row = self._catalog.views.find(name)
        return row is not None and row.cn is not None

    def _readable(self) -> dict[str, Planned]:
        plans = self._plans(known_relations(self._parts))
        return {p.name: p for p in plans if isinstance(p, Planned)}

    def compare(self, shadow: Shadow) -> list[Deviation]:
        """How far each view would be off, had the answers not been compensated."""
        rows = {name: self._catalog.views.get(name) for name in shadow.views()}
        plans = self._readable()
        return [
            shadow.deviation(
                self._parts.spark, ViewStore(self.project.warehouse, row, plans[name].shape), row
            )
            for name, row in rows.items()
        ]

    @contextmanager
    def _following(self) -> Iterator[WaitFor]:
        """Wait for captured changes: by our own capture, or by whoever holds the warehouse."""
        if self._keeping is not None:
            yield self._keeping.captures.wait_for
            return
        root = self.project.warehouse
        try:
            lease = Lease.acquire(root, this_process("verify", self._clock))
        except WarehouseHeld:
            there = lambda: holder(root) is not None  # noqa: E731
            yield elsewhere(self._catalog, self._parts.sources, there)
            return
        with lease:
            relations = known_relations(self._parts)
            captures = Captures(
                self._parts.sources.values(), relations.by_source(), self._catalog, self._parts.log
            )
            captures.start()
            try:
                yield captures.wait_for
            finally:
                captures.stop()


class View:
    """One view of an open warehouse."""

    def __init__(self, warehouse: Warehouse, name: str) -> None:
        self.name = name
        self._warehouse = warehouse

    def read(self, at: At = None) -> DataFrame:
        """Its rows at a cn or time, the newest by default."""
        parts = self._warehouse._parts
        plans = self._warehouse._readable()
        if self.name not in plans:
            raise _no_view(self.name, list(plans))
        return serving.read(parts, beside(parts.spark), plans[self.name], at)

    def history(self, limit: int = 20) -> list[Commit]:
        """The newest commits that changed it, newest first."""
        plans = self._warehouse._readable()
        if self.name not in plans:
            raise _no_view(self.name, list(plans))
        return serving.history(self._warehouse._parts, plans[self.name], limit)


def _no_view(name: str, known: Sequence[str]) -> ConfigError:
    return ConfigError(
        f'there is no view "{name}"', detail=f"views: {', '.join(sorted(known)) or 'none'}"
    )
