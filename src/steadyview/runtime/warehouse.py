"""The warehouse of a project, as users hold it.

    wh = steadyview.open("shop")
    wh.run_once()
    wh.view("revenue_by_region").read().show()

Reading works while another process maintains; only one process maintains at a time.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from datetime import datetime, timedelta
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steadyview.catalog import Catalog, Lease, from_us, holder
from steadyview.errors import (
    ConfigError,
    SteadyviewError,
    StorageDamaged,
    StorageUnavailable,
    TransientError,
    WarehouseHeld,
)
from steadyview.modes import settle
from steadyview.nearest import nearest_or_all
from steadyview.plans.plan import HIDDEN
from steadyview.runtime.clock import SystemClock
from steadyview.runtime.glance import Glance
from steadyview.runtime.holding import this_process
from steadyview.runtime.project import ProjectConfig, load_project
from steadyview.runtime.routes import Route, RoutePlan
from steadyview.runtime.staleness import ANY_AGE, Staleness
from steadyview.runtime.status import RunSummary, Status

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from steadyview.catalog import ViewRow
    from steadyview.checking import History
    from steadyview.papers.conventional import Deviation, Shadow
    from steadyview.papers.recording import Recording
    from steadyview.query.moment import WaitFor
    from steadyview.query.verify import Verification
    from steadyview.runtime.asking import QueryAnswer, Question, Surroundings
    from steadyview.runtime.checks import SourceCheck, ViewCheck
    from steadyview.runtime.compressing import Compressed
    from steadyview.runtime.explain import Explanation
    from steadyview.runtime.graph import Graph
    from steadyview.runtime.keeping import Keeping, Report
    from steadyview.runtime.parts import Parts
    from steadyview.runtime.planning import Planned, Refused
    from steadyview.runtime.refreshing import CarryWanted, ShownAt
    from steadyview.runtime.remote import Told, Wanted
    from steadyview.runtime.schemas import Relations
    from steadyview.runtime.serving import Commit
    from steadyview.runtime.store_checks import ServedStatus
    from steadyview.runtime.store_reading import ServedStore
    from steadyview.runtime.subscribing import Start, Subscriber, SubscriptionStatus
    from steadyview.runtime.view_files import ListedView, ReaderPlace, ViewFiles
    from steadyview.runtime.view_plans import ViewPlans

# What needs Spark, Delta or a driver is imported where it is used: `status` answers without them.

At = int | datetime | str | None
Progress = Callable[[Status], None]


class Warehouse:
    """An open project. Use it as a context manager, or `close` it."""

    def __init__(self, directory: str | Path, spark: SparkSession | None = None) -> None:
        self.project = load_project(directory)
        self.before_spark: Callable[[], None] | None = None
        """Called before Spark is started, which takes some seconds."""
        self.tell: Callable[[str], None] = partial(warnings.warn, stacklevel=2)
        """Called by a run with what to know of a view's file: SQL, but probably not meant so."""
        self._user_spark = spark
        self._lasting = False
        self._clock = SystemClock()
        self._closing = ExitStack()
        self._keeping: Keeping | None = None
        self._waiting: SteadyviewError | None = None
        self._stores: dict[str, ServedStore] = {}

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
        _refuse_orphans(self.project.warehouse)
        project = self.project
        catalog = Catalog.create(project.warehouse, self._clock, shared=project.shared)
        self._closing.callback(catalog.close)
        return catalog

    @cached_property
    def _parts(self) -> Parts:
        from steadyview.runtime.parts import Parts

        parts = Parts(self.project, self._catalog, self._clock, self._start_spark)
        self._closing.callback(parts.close)
        return parts

    def _start_spark(self) -> SparkSession:
        from steadyview.engine.session import open_session

        if self.before_spark is not None:
            self.before_spark()
        project = self.project
        return open_session(
            project.name,
            _spark_settings(project),
            project.warehouse,
            self._user_spark,
            archive=project.class_archive,
            lasting=self._lasting,
        )

    @cached_property
    def _view_plans(self) -> ViewPlans:
        from steadyview.runtime.view_plans import ViewPlans

        return ViewPlans(self._parts, lambda text: self.tell(text))

    def _plans(self, relations: Relations) -> list[Planned | Refused]:
        return self._view_plans.over(relations)

    def _plan(self, name: str) -> Planned:
        return self._view_plans.one(name)

    # --- looking -----------------------------------------------------------------------------

    def check(self) -> list[ViewCheck | SourceCheck]:
        """What is missing at the sources, every view's verdict, and what capture does not see.

        Nothing is changed.
        """
        from steadyview.runtime.looking import checks

        return checks(self._parts, self._view_plans)

    def explain(self, name: str) -> Explanation:
        """The maintenance plan of a view: as it is kept or, if it is not kept yet, as planned."""
        from steadyview.runtime.looking import explained

        return explained(self._parts, self._view_plans, name)

    def graph(self) -> Graph:
        """Sources' relations, hidden nodes and views: as kept, and as planned what is not yet."""
        from steadyview.runtime.looking import drawn

        return drawn(self._parts, self._view_plans)

    def status(self) -> Status:
        """Where every source and every view stands."""
        error = self._keeping.error if self._keeping else self._waiting
        now = self._clock.now_us()
        return Glance(self.project, self._catalog, now, self._keeping, error).status()

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
        from steadyview.papers.recording import Recordings
        from steadyview.runtime.keeping import Keeping

        self._lasting = True
        report = (lambda: progress(self.status())) if progress else None
        make = partial(
            Keeping,
            self._parts,
            self._view_plans.for_run(algorithm),
            shadow,
            recordings=Recordings(recordings),
        )
        with self._lease("run") as lease:
            keeping = self._awaited(stop, report, make)
            if keeping is not None:
                with self._kept(keeping), self._attended(keeping, lease):
                    keeping.run(stop, report)

    @contextmanager
    def _attended(self, keeping: Keeping, lease: Lease) -> Iterator[None]:
        """Other commands reach us meanwhile, if there is a place to listen."""
        from steadyview.runtime.attending import Attendant
        from steadyview.runtime.control import Listener

        try:
            listener = Listener(self.project.warehouse, Attendant(self, keeping))
        except StorageUnavailable as error:
            warnings.warn(str(error), stacklevel=2)
            yield
            return
        lease.listens_at(str(listener.path))
        try:
            yield
        finally:
            lease.listens_at(None)
            listener.close()

    def _awaited(
        self, stop: threading.Event, report: Report | None, make: Callable[[], Keeping]
    ) -> Keeping | None:
        """The keeping, once everything it needs at its start answers; None if `stop` came first."""
        from steadyview.runtime.keeping import RETRY

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
        from steadyview.papers.recording import Recordings
        from steadyview.runtime.keeping import Keeping

        with self._lease("run --once"):
            plan = self._view_plans.for_run(algorithm, may_recall=not recordings)
            told = Recordings(recordings)
            with self._kept(Keeping(self._parts, plan, recordings=told)) as keeping:
                return keeping.once((lambda: progress(self.status())) if progress else None)

    def recording(self, view: str | None = None) -> Recording:
        """A recording of the view of that name, or of the project's only one, for a run."""
        from steadyview.papers.recording import Recording

        plans = self._view_plans
        return Recording((plans.one(view) if view is not None else plans.only_one()).name)

    def recorded(self, recording: Recording) -> History:
        """What was recorded, as a history that `steadyview check-history` judges."""
        from steadyview.engine.failures import spark_told
        from steadyview.papers.recording import recorded
        from steadyview.runtime.one_by_one import shown_view

        view = shown_view(self._plan(recording.view))
        with self._following() as wait_for, spark_told(self.project.warehouse):
            return recorded(self._parts, view, recording, wait_for)

    @contextmanager
    def _lease(self, command: str) -> Iterator[Lease]:
        # the catalog's folder must be there before its lease can be taken
        _ = self._catalog
        if changed := settle(self.project.warehouse, shared=self.project.shared):
            warnings.warn(changed, stacklevel=4)
        by = this_process(command, self._clock)
        with Lease.acquire(self.project.warehouse, by) as lease, self._catalog.held():
            yield lease

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
        from steadyview.runtime.removing import remove_source

        self._known_source(name)
        if (done := self._elsewhere({"do": "remove", "name": name})) is not None:
            return list(done["done"])
        with self._lease("source remove"):
            return remove_source(self._parts, name)

    def resnapshot(self, name: str) -> list[str]:
        """Begin with a source anew; its views are built from what it holds now by the next run.

        Until then, readers see their old states, marked.
        """
        from steadyview.runtime.renewing import begin_anew

        self._known_source(name)
        if (done := self._elsewhere({"do": "resnapshot", "name": name})) is not None:
            return list(done["done"])
        with self._lease("source resnapshot"):
            made, _ = begin_anew(self._parts, self._parts.sources[name])
            return made

    def refresh(
        self,
        views: Sequence[str],
        to: At = None,
        *,
        everything: bool = False,
        wait: timedelta | None = None,
    ) -> ShownAt:
        """Bring views to one moment and show all of them there together, or none.

        `to`: a cn or a time, by default all that is committed at their sources by now. `everything`
        instead of names: all views, with an earlier `to` the deferred ones. `wait`: so long at most
        for a moment that is still to come.
        """
        from steadyview.runtime.keeping import Keeping
        from steadyview.runtime.refreshing import Refreshed, RefreshWanted
        from steadyview.runtime.targets import target

        if bool(views) == everything:
            wrong = "named views and --all exclude each other" if views else "no view is named"
            raise ConfigError(wrong, hint="name the views to refresh, or say --all")
        asked = None if to is None else target(self._catalog, self._clock, to, wait)
        cn = None if asked is None else asked.cn
        request = {"do": "refresh", "views": [*views], "everything": everything, "to": cn}
        if (done := self._elsewhere(request)) is not None:
            found = Refreshed.of(done["done"])
        else:
            wanted = RefreshWanted(tuple(views), everything, cn)
            with self._lease("refresh"):
                plan = self._view_plans.for_run(None, may_recall=True)
                with self._kept(Keeping(self._parts, plan)) as keeping:
                    found = keeping.refresh_once(wanted)
        return found.at(from_us(self._catalog.commits.time_of(found.cn)), asked)

    def compress(
        self, view: str, until: int | datetime | str | None = None, keep: str | None = None
    ) -> Compressed:
        """Replace ranges of a view's changes by their net effect, up to a cn or time.

        By default up to what it shows, one range between two readers. `keep`: "hour" or "day", the
        ends of which can still be read.
        """
        from steadyview.runtime.compressing import Compressed, Compressing, CompressWanted
        from steadyview.runtime.serving import resolve
        from steadyview.views.compression import KEEPS

        if keep not in (None, *KEEPS):
            raise ConfigError(f'"{keep}" is no period whose ends can be kept', hint="hour, or day")
        cn = None if until is None else resolve(self._catalog, until)
        wanted = CompressWanted(view, cn, keep)
        if (done := self._elsewhere({"do": "compress", **wanted.to_dict()})) is not None:
            return Compressed.of(done["done"])
        with self._lease("compress"):
            return Compressing(self._parts).compressed(wanted)

    def subscribe(self, view: str, name: str, start: Start | None = None) -> Subscriber:
        """A reader of a view's changes, called `name`; a new one begins at `start`, or now.

        Close it, or use it as a context manager.
        """
        from steadyview.runtime.subscribing import subscribed

        return subscribed(self.project.warehouse, self._catalog, view, name, start)

    def subscriptions(self) -> list[SubscriptionStatus]:
        """Who reads the changes of which view, and how far each is."""
        from steadyview.runtime.subscribing import all_subscriptions

        return all_subscriptions(self._catalog, self._clock.now_us())

    def drop_subscription(self, name: str) -> None:
        """Forget a reader: nothing is kept for it any more."""
        from steadyview.runtime import subscribing

        subscribing.drop(self.project.warehouse, self._catalog, name)

    def reset_subscription(self, name: str, at: int | str = "now") -> int:
        """Have a reader begin again at a state: "start", "now" or a cn; which cn that is."""
        from steadyview.runtime import subscribing

        return subscribing.reset(self._catalog, name, at).position

    def acknowledge(self, name: str, cn: int, epoch: int | None = None) -> bool:
        """All up to a cn was received under this name; whether that was new."""
        from steadyview.runtime import subscribing

        return subscribing.acknowledge(self._catalog, name, cn, epoch)

    def rebuild(self, name: str) -> None:
        """Have a view built anew, beside what it shows, by the next run."""
        from steadyview.runtime.renewing import rebuild

        if self._elsewhere({"do": "rebuild", "name": name}) is None:
            with self._lease("view rebuild"):
                rebuild(self._catalog, name)

    def views(self) -> list[ListedView]:
        """Every view of the project, by name: in a file, in the catalog, or both."""
        return self._view_files().all()

    def drop(self, name: str, *, cascade: bool = False) -> list[str]:
        """Drop a view, its rows and its file; what was dropped.

        ConfigError if others read it, unless with `cascade` they are dropped too.
        """
        request = {"do": "drop", "name": name, "cascade": cascade}
        if (done := self._elsewhere(request)) is not None:
            return list(done["done"])
        with self._lease("view drop"):
            return self._view_files().drop(name, cascade=cascade)

    def rename(self, old: str, new: str) -> list[ReaderPlace]:
        """Call a view otherwise: its file, and the name in it; its rows stay.

        The places in other files where it is still read by its old name.
        """
        from steadyview.runtime.view_files import ReaderPlace

        request = {"do": "rename", "name": old, "new": new}
        if (done := self._elsewhere(request)) is not None:
            return [ReaderPlace(**place) for place in done["done"]]
        with self._lease("view rename"):
            return self._view_files().rename(old, new)

    def _view_files(self) -> ViewFiles:
        from steadyview.runtime.view_files import ViewFiles

        return ViewFiles(self._catalog, self.project.root)

    def _elsewhere(self, request: dict[str, Any]) -> dict[str, Any] | None:
        """What the process that keeps the views answers; None if there is none, or it is us."""
        from steadyview.runtime.control import ask

        return None if self._keeping is not None else ask(self.project.warehouse, request)

    def _known_source(self, name: str) -> None:
        known = {*self.project.sources, *(s.name for s in self._catalog.sources.states())}
        if name not in known:
            raise ConfigError(
                f'there is no source "{name}"',
                hint=nearest_or_all(name, known) or "describe one in steadyview.toml",
            )

    # --- serving -----------------------------------------------------------------------------

    def store(self, name: str) -> ServedStore:
        """A serving store of the project, to read records from by key; closed with the warehouse.

        Neither Spark nor a running `run` is needed.
        """
        if name not in self._stores:
            from steadyview.runtime.served_rows import open_project_store
            from steadyview.runtime.store_reading import ServedStore

            self._stores[name] = ServedStore(open_project_store(self.project, name), self._clock)
            self._closing.callback(self._stores[name].close)
        return self._stores[name]

    def store_of(self, view: str) -> tuple[str, ServedStore]:
        """The view's name as it is spelt, and the store that it is served from."""
        from steadyview.runtime.served_rows import served_row

        row, name = served_row(self._catalog, view)
        return row.name, self.store(name)

    def served(self) -> list[ServedStatus]:
        """Where every view stands that is served from a store."""
        from steadyview.runtime.store_checks import all_served

        return all_served(self.project, self._catalog, self._clock.now_us())

    def rebuild_served(self, view: str) -> None:
        """Have a view's records written anew; readers have the old ones until they are there."""
        from steadyview.runtime.served_rows import open_project_store, served_row
        from steadyview.runtime.store_keeping import StoreKeepers

        row, name = served_row(self._catalog, view)
        with open_project_store(self.project, name) as store:
            store.want(row.name)
        try:
            lease = self._lease("serve rebuild")
        except WarehouseHeld:
            # who keeps the views looks once a second
            return
        with lease:
            for trouble in StoreKeepers(self._parts).now(row.name):
                raise trouble.error

    def verify_served(self, views: Sequence[str] | None = None) -> list[Verification]:
        """Compare the records in stores with the views, row by row, at what each store shows."""
        from steadyview.runtime.served_rows import served_row, served_views
        from steadyview.runtime.store_checks import verify_served

        named = views or [row.name for row in served_views(self._catalog)]
        found = [served_row(self._catalog, name) for name in named]
        return [verify_served(self._parts, row, store) for row, store in found]

    # --- reading -----------------------------------------------------------------------------

    def view(self, name: str) -> View:
        """A handle of one view."""
        return View(self, name)

    def query(
        self,
        sql: str,
        at: At = None,
        *,
        max_staleness: timedelta | None = None,
        route: str = "auto",
    ) -> DataFrame:
        """Spark SQL over the views and tables of sources, all at one cn.

        `route`: whether a query over tables alone may ("auto"), must ("require") or must not
        ("off") be answered from a view. The frame has an attribute more, `valid_time`: when its
        rows are what they are. `query_at` tells more of the answer, and takes more of how old it
        may be.
        """
        found = self.query_at(sql, at, staleness=Staleness(max_staleness), route=route)
        self._closing.callback(found.close)
        found.frame.valid_time = found.valid_time  # type: ignore[attr-defined]
        return found.frame

    def query_at(  # noqa: PLR0913 - what may be said of a query
        self,
        sql: str,
        at: At = None,
        *,
        max_rows: int | None = None,
        timeout: timedelta | None = None,
        strict: bool = False,
        staleness: Staleness = ANY_AGE,
        route: str = "auto",
    ) -> QueryAnswer:
        """The same, with the cn and the time of the answer, and with what to know of it. Close it.

        `max_rows` and `timeout` limit what `rows` of the answer gives; `strict`: a view that is
        stopped is an error, not a warning. `staleness`: how old the answer may be.
        """
        from steadyview.runtime.remote import Wanted

        wanted = Wanted(sql, at, max_rows, timeout, strict, staleness, _route(route))
        return self.answered(wanted)

    def answered(self, wanted: Wanted) -> QueryAnswer:
        """The answer of a query that came with all that is wanted of it. Close it."""
        from steadyview.runtime.asking import answer

        return answer(*self._question(wanted))

    def routes(self, wanted: Wanted) -> RoutePlan:
        """Which view would answer a query over tables, and why not the others; nothing is read."""
        from steadyview.runtime.asking import explained
        from steadyview.runtime.remote import explained_by_keeper

        if self._keeping is None and (
            found := explained_by_keeper(self.project.warehouse, wanted)
        ):
            return found
        return explained(*self._question(wanted))

    def _question(self, wanted: Wanted) -> tuple[Parts, SparkSession, Question, Surroundings]:
        """What answering takes: here, in a session of its own, asking nobody else but the run."""
        from steadyview.engine.session import beside
        from steadyview.runtime.asking import Limits, Question, Surroundings
        from steadyview.runtime.choosing import Means

        limits = Limits(wanted.max_rows, wanted.timeout, wanted.strict)
        asked = Question(wanted.sql, wanted.at, limits, wanted.staleness, wanted.route)
        following = partial(self._following, "query")
        around = Surroundings(self._file_names, following, Means(self._carry, self._heard))
        return self._parts, beside(self._parts.spark), asked, around

    def _heard(self) -> dict[str, int]:
        """When sources were heard from, if it is we who capture them."""
        return {} if self._keeping is None else self._keeping.heard()

    def _carry(self, wanted: CarryWanted) -> int:
        """Have changes of views at hand: by the process that keeps them, or else from here."""
        from steadyview.runtime.attending import Wished
        from steadyview.runtime.keeping import Keeping

        if self._keeping is not None:
            wished = Wished(lambda keeping: keeping.carry(wanted))
            self._keeping.wish(wished)
            return int(wished.result())
        if (done := self._elsewhere({"do": "carry", **wanted.to_dict()})) is not None:
            return int(done["done"])
        with ExitStack() as holding:
            try:
                holding.enter_context(self._lease("query"))
            except WarehouseHeld as held:
                raise StorageUnavailable(
                    "the changes that the query needs cannot be captured", detail=held.message
                ) from held
            plan = self._view_plans.for_run(None, may_recall=True)
            with self._kept(Keeping(self._parts, plan)) as keeping:
                return keeping.carry_once(wanted)

    def told(self, wanted: Wanted) -> Told:
        """The rows of a query: from the process that keeps the views, or else from here."""
        from steadyview.runtime.remote import AnswerFacts, Told, told_by_keeper

        if self._keeping is None and (found := told_by_keeper(self.project.warehouse, wanted)):
            return found
        answer = self.answered(wanted)
        with closing(answer):
            rows = answer.rows()
        return Told(rows.table, AnswerFacts.of(answer, cut=rows.cut))

    def verify(
        self, views: Sequence[str] | None = None, at: At = None, *, nodes: bool = False
    ) -> list[Verification]:
        """Recompute views from their SQL text and compare.

        Asked for all views, one that cannot be compared is told by its verdict; asked for by name,
        it is an error. `nodes`: also the hidden nodes that they are made of, and what views and
        nodes keep as their state.
        """
        from steadyview.runtime.verifying import Verifying

        kept = self._catalog.views.all()
        read = [r for r in kept if not r.name.startswith(HIDDEN) and r.cn is not None]
        shown = [r.name for r in read if r.state != "paused"]
        names = [self._kept_row(name).name for name in views] if views else shown
        with self._following() as wait_for:
            verifying = Verifying(self._parts, wait_for, at)
            return verifying.all(names, named=bool(views), nodes=nodes)

    def _kept_row(self, name: str) -> ViewRow:
        """The view of that name as the catalog knows it; an error if it is not kept."""
        from steadyview.runtime.serving import check_not_refused

        rows = [r for r in self._catalog.views.all() if not r.name.startswith(HIDDEN)]
        for row in rows:
            if row.name.lower() == name.lower():
                check_not_refused(row)
                return row
        raise self._unknown(name)

    def _unknown(self, name: str) -> SteadyviewError:
        """What is wrong with the name of a view that is not kept: not built yet, or misspelt."""
        from steadyview.runtime.serving import no_state
        from steadyview.runtime.view_plans import no_view

        files = self._file_names()
        for found in files:
            if found.lower() == name.lower():
                return no_state(found)
        kept = {r.name for r in self._catalog.views.all() if not r.name.startswith(HIDDEN)}
        return no_view(name, sorted(kept.union(files)))

    def _file_names(self) -> list[str]:
        from steadyview.runtime.looking import file_names

        return file_names(self._parts)

    def compare(self, shadow: Shadow) -> list[Deviation]:
        """How far each view would be off, had the answers not been compensated."""
        from steadyview.runtime.kept import recalled
        from steadyview.warehouse.view_store import ViewStore

        rows = [self._catalog.views.get(name) for name in shadow.views()]
        root = self.project.warehouse
        return [shadow.deviation(ViewStore(root, r, recalled(r).shape), r) for r in rows]

    @contextmanager
    def _following(self, command: str = "verify") -> Iterator[WaitFor]:
        """Wait for captured changes: by our own capture, or by whoever holds the warehouse."""
        from steadyview.runtime.captures import Captures, conditions, elsewhere
        from steadyview.runtime.schemas import known_relations

        if self._keeping is not None:
            yield self._keeping.captures.wait_for
            return
        root = self.project.warehouse
        with ExitStack() as holding:
            try:
                by = this_process(command, self._clock)
                holding.enter_context(Lease.acquire(root, by))
            except WarehouseHeld:
                there = lambda: holder(root) is not None  # noqa: E731
                yield elsewhere(self._catalog, self._parts.sources, there)
                return
            holding.enter_context(self._catalog.held())
            relations = known_relations(self._parts)
            captures = Captures(
                self._parts.sources.values(),
                relations.by_source(),
                self._catalog,
                self._parts.log,
                conditions=conditions(self._parts),
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
        from steadyview.engine.session import beside
        from steadyview.runtime import serving

        parts, row = self._warehouse._parts, self._warehouse._kept_row(self.name)
        return serving.read(parts, beside(parts.spark), row, at)

    def changes(self, since: int | str = "start") -> DataFrame:
        """What led from its state at `since` (a cn, or the oldest that is kept) to the newest.

        Its columns, `_count` (negative for rows that went), `_cn` and `_time`.
        """
        from steadyview.engine.session import beside

        warehouse, row = self._warehouse, self._warehouse._kept_row(self.name)
        reader = beside(warehouse._parts.spark).read.format("steadyview")
        changes = reader.option("project", str(warehouse.project.root)).option("from", str(since))
        return changes.load(row.name)

    def history(self, limit: int = 20) -> list[Commit]:
        """The newest commits that changed it, newest first."""
        from steadyview.runtime import serving

        row = self._warehouse._kept_row(self.name)
        return serving.history(self._warehouse._parts, row, limit)


def _route(word: str) -> Route:
    try:
        return Route(word)
    except ValueError:
        raise ConfigError(
            f'there is no route "{word}"', hint=nearest_or_all(word, [*Route])
        ) from None


def _spark_settings(project: ProjectConfig) -> Mapping[str, str]:
    """The project's, with slots for view managers where some view asks for them."""
    asks = any("steadyview.serve.from" in file.text for file in project.views)
    if not asks or "spark.master" in project.spark:
        return project.spark
    from steadyview.runtime.managers.manager_job import local_master

    return {**local_master(os.cpu_count() or 1), **project.spark}


def _refuse_orphans(warehouse: Path) -> None:
    """Files of a warehouse without its catalog are adopted by nobody."""
    if (warehouse / "catalog.db").exists():
        return
    left = [name for name in ("nodes", "views", "log") if any((warehouse / name).glob("*"))]
    if left:
        raise StorageDamaged(
            f'warehouse "{warehouse}" has files of views but no catalog',
            detail=f'"catalog.db" is missing beside {" and ".join(left)}',
            hint="restore catalog.db from a backup, or move the folder away and build it anew",
        )
