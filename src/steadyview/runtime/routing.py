"""Which view answers a query over tables of sources, if any does.

A view answers if the rules of `views/routing` make of the query one over the view, and if Spark
gives that one the columns and types that it gives the query itself. Of several, the one with the
fewest stored rows is taken.

The answer is never older for it. A query over tables shows all that was committed when it began:
so does one over a view that follows every commit, for the view is brought there. A deferred view
is not moved for a query that did not ask for it: it answers only where what it shows is as new as
asked, or where views are required.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from steadyview.catalog import ViewRow
from steadyview.changes import RelationSchema
from steadyview.engine.analysis import columns_of
from steadyview.engine.reading import check_reading
from steadyview.errors import QueryRefused, SteadyviewError, TransientError, ViewRefused
from steadyview.plans.plan import HIDDEN
from steadyview.runtime.choosing import Choice, Choosing
from steadyview.runtime.kept import plan_of, recalled
from steadyview.runtime.parts import Parts
from steadyview.runtime.policies import Forward, forwards
from steadyview.runtime.routes import Offer, Route, RoutePlan, Turned
from steadyview.runtime.serving import At, rows_reaching
from steadyview.runtime.staleness import OnStale, Staleness
from steadyview.views.parse import ViewText
from steadyview.views.query_text import over_tables
from steadyview.views.routing import (
    OfferedView,
    RoutingQuestion,
    Unrouted,
    routed,
    routing_question,
)
from steadyview.warehouse.view_store import ViewStore

_QUERY = "the query"
_OTHER_TABLES = "it does not read the same tables"
_EXACT = ("strong", "complete")
"""Levels at which a state is what the sources had at its cn."""
_TOO_OLD = "what it shows is too old"


@dataclass(frozen=True)
class TableQuery:
    """A query over tables alone: its text, these tables, and what it wants of its answer."""

    sql: str
    relations: Sequence[RelationSchema]
    route: Route
    at: At
    staleness: Staleness


def route_plan(parts: Parts, spark: SparkSession, asked: TableQuery) -> RoutePlan:
    """The views that give the same rows, the best one first; none is read yet."""
    kept = parts.catalog.views.all()
    rows = [row for row in kept if not row.name.startswith(HIDDEN) and row.cn is not None]
    tables = frozenset(r.name for r in asked.relations)
    near = [(row, view) for row in rows if (view := _offered(row)).tables & tables]
    turned = [Turned(v.name, "from", _OTHER_TABLES) for _, v in near if v.tables != tables]
    same = [(row, view) for row, view in near if view.tables == tables]
    if not same:
        return RoutePlan(None, turned=tuple(turned), why="no view reads the same tables")
    search = _Search(parts, spark, asked)
    try:
        question = search.question()
    except ViewRefused as refused:
        return RoutePlan(None, why=refused.message.replace(f'view "{_QUERY}"', _QUERY))
    except PySparkException:
        # whoever asks the tables tells what is wrong with it
        return RoutePlan(None, why="Spark rejects the query")
    found = [search.tried(question, row, view) for row, view in same]
    offers = sorted(
        (f for f in found if isinstance(f, Offer)), key=lambda offer: (offer.rows, offer.view)
    )
    turned += [f for f in found if isinstance(f, Turned)]
    return RoutePlan(None, tuple(offers), tuple(turned))


class _Search:
    """Tries views for one query."""

    def __init__(self, parts: Parts, spark: SparkSession, asked: TableQuery) -> None:
        self._parts = parts
        self._spark = spark
        self._asked = asked
        self._types: list[str] = []

    def question(self) -> RoutingQuestion:
        """The query, read as Spark reads it; its columns as Spark names them."""
        asked = self._asked
        names = {r.name: f"sv_empty_{i}" for i, r in enumerate(asked.relations)}
        empty = {names[r.name]: [(c.name, c.type) for c in r.columns] for r in asked.relations}
        sql = over_tables(asked.sql, names, asked.relations, ())
        columns, self._types = columns_of(self._spark, sql, empty)
        question = routing_question(asked.sql, asked.relations, columns)
        if question.flat is not None:
            check_reading(self._spark, ViewText(_QUERY, question.source.text))
        return question

    def tried(self, question: RoutingQuestion, row: ViewRow, view: OfferedView) -> Offer | Turned:
        """Whether the view gives the same rows."""
        if row.state != "active" or row.error is not None:
            return Turned(row.name, "view", "it stands still: steadyview status tells why")
        if (level := recalled(row).level) not in _EXACT:
            return Turned(row.name, "view", f"it promises no more than level {level}")
        found = routed(question, view)
        if isinstance(found, Unrouted):
            return Turned(row.name, found.rule, found.why)
        if self._types_over(view, found.sql) != (list(question.names), self._types):
            return Turned(row.name, "columns", "Spark would give its columns other types")
        return Offer(row.name, found.rule, found.sql, self._rows(row))

    def _types_over(self, view: OfferedView, sql: str) -> tuple[list[str], list[str]] | None:
        try:
            return columns_of(self._spark, sql, {view.name: view.columns})
        except (PySparkException, QueryRefused):
            return None

    def _rows(self, row: ViewRow) -> int:
        """How many rows are stored of it."""
        store = ViewStore(self._parts.root, row, recalled(row).shape)
        return sum(file.rows for file in store.base.files(row.base_version))


def _offered(row: ViewRow) -> OfferedView:
    plan = recalled(row)
    by_rows = row.kind == "incremental" and plan_of(row) is not None
    return OfferedView(row.name, row.sql, plan.relations, plan.columns, by_rows)


@dataclass(frozen=True)
class Taken:
    """The offer that answers, and the state of its view."""

    offer: Offer
    choice: Choice


class Taking:
    """Takes the first offer whose view has the state that is asked for."""

    def __init__(
        self,
        parts: Parts,
        spark: SparkSession,
        asked: TableQuery,
        choosing: Callable[[str, Staleness], Choosing],
    ) -> None:
        self._parts = parts
        self._spark = spark
        self._asked = asked
        self._choosing = choosing
        every = [*parts.catalog.views.all(), *parts.catalog.views.replacements()]
        forward = forwards(every)
        self._forward: Mapping[str, Forward] = {
            row.name: forward[row.id] for row in every if not row.replacement
        }

    def take(self, plan: RoutePlan) -> tuple[Taken | None, RoutePlan]:
        """What answers, and the plan with why the others do not."""
        passed: list[Offer] = []
        for place, offer in enumerate(plan.offers):
            why = self._unfit(offer)
            try:
                choice = None if why else self._choice(offer)
                if choice is not None:
                    self._check_kept(offer, choice)
            except SteadyviewError as error:
                if self._asked.route is Route.require and isinstance(error, TransientError):
                    raise
                choice, why = None, error.message
            if choice is not None:
                return Taken(offer, choice), _taken(plan, offer, passed, place)
            passed.append(replace(offer, why_not=why or _TOO_OLD))
        return None, replace(plan, offers=tuple(passed))

    def _check_kept(self, offer: Offer, choice: Choice) -> None:
        """OutsideRetention if the view has no state there; nothing is read."""
        if offer.view not in choice.recomputed:
            row = choice.rows[offer.view]
            rows_reaching(self._parts, self._spark, row, choice.at[offer.view])

    def foreseen(self, plan: RoutePlan) -> RoutePlan:
        """The plan with what would answer now, nothing being moved for it."""
        passed: list[Offer] = []
        for place, offer in enumerate(plan.offers):
            why = self._unfit(offer)
            if why is None and not self._may_move(offer) and self._bound:
                shown = self._choosing(offer.view, self._asked.staleness).as_shown(self._bound)
                why = None if shown is not None else _TOO_OLD
            if why is None:
                return _taken(plan, offer, passed, place)
            passed.append(replace(offer, why_not=why))
        return replace(plan, offers=tuple(passed))

    @property
    def _bound(self) -> timedelta | None:
        return self._asked.staleness.bound

    @property
    def _as_it_is(self) -> bool:
        """Whether what a view shows is wanted, however old."""
        required = self._asked.route is Route.require
        return required and self._asked.staleness.as_published and self._bound is None

    def _may_move(self, offer: Offer) -> bool:
        """Whether the view may be brought to a newer state for the query."""
        forward, staleness = self._forward[offer.view], self._asked.staleness
        if self._asked.route is Route.require:
            return forward is not Forward.RECOMPUTED
        compensates = self._bound is None or staleness.on_stale is OnStale.compensate
        return forward is Forward.FOLLOWS and not staleness.as_published and compensates

    def _unfit(self, offer: Offer) -> str | None:
        """Why the view cannot be as new as asked, as far as that is known beforehand."""
        if self._asked.at is not None or self._bound or self._as_it_is or self._may_move(offer):
            return None
        if self._asked.staleness.as_published:
            return "what it shows may be older than its tables"
        kind = "deferred" if self._forward[offer.view] is Forward.CARRIED else "recomputed"
        return f"it is {kind}: what it shows may be older than its tables"

    def _choice(self, offer: Offer) -> Choice | None:
        """The state of the view; None where what it shows is too old and it may not be moved."""
        asked, staleness = self._asked, self._asked.staleness
        if asked.at is not None or self._as_it_is:
            return self._choosing(offer.view, staleness).choose(asked.at)
        wanted = replace(staleness, bound=self._bound or timedelta(0))
        choosing = self._choosing(offer.view, wanted)
        if self._bound and (found := choosing.as_shown(self._bound)) is not None:
            return found
        return choosing.choose(None) if self._may_move(offer) else None


def _taken(plan: RoutePlan, offer: Offer, passed: Sequence[Offer], place: int) -> RoutePlan:
    others = (replace(o, why_not="the other view has fewer rows") for o in plan.offers[place + 1 :])
    return replace(plan, taken=offer, offers=(offer, *passed, *others))
