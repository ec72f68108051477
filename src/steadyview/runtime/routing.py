"""A query over tables of sources, answered from a view at the moment that the query asks for.

The answer is never older for it. A query over tables shows all that was committed when it began:
so does one over a view that follows every commit, for the view is brought there. A deferred view
is not moved for a query that did not ask for it: it answers only where what it shows is as new as
asked, or where views are required.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from pyspark.sql import SparkSession

from steadyview.errors import QueryRefused, SteadyviewError, TransientError
from steadyview.runtime.choosing import Choice, Choosing, Means
from steadyview.runtime.costs import Reads, all_tables
from steadyview.runtime.kept import all_recalled
from steadyview.runtime.parts import Parts
from steadyview.runtime.policies import Forward, forwards
from steadyview.runtime.route_search import TableQuery, route_plan
from steadyview.runtime.routes import Offer, Route, RoutePlan
from steadyview.runtime.serving import rows_reaching
from steadyview.runtime.staleness import OnStale, Staleness

_TOO_OLD = "what it shows is too old"


@dataclass(frozen=True)
class Taken:
    """The offer that answers, and the state of its view."""

    offer: Offer
    choice: Choice


class Taking:
    """Takes the first view that gives the same rows and has the state that is asked for."""

    def __init__(self, parts: Parts, spark: SparkSession, asked: TableQuery, means: Means) -> None:
        self._parts = parts
        self._spark = spark
        self._asked = asked
        self._means = means
        every = [*parts.catalog.views.all(), *parts.catalog.views.replacements()]
        forward = forwards(every)
        self._forward: Mapping[str, Forward] = {
            row.name: forward[row.id] for row in every if not row.replacement
        }

    def take(self) -> tuple[Taken | None, RoutePlan]:
        """What answers, and why the others do not; QueryRefused if nothing does that has to."""
        taken, plan = self._taken(route_plan(self._parts, self._spark, self._asked))
        if taken is None and self._asked.route is Route.require:
            raise unroutable(plan)
        return taken, plan

    def _taken(self, plan: RoutePlan) -> tuple[Taken | None, RoutePlan]:
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
                return Taken(offer, choice), _with(plan, offer, passed, place)
            passed.append(replace(offer, why_not=why or _TOO_OLD))
        return None, replace(plan, offers=tuple(passed))

    def _check_kept(self, offer: Offer, choice: Choice) -> None:
        """OutsideRetention if the view has no state there; nothing is read."""
        if offer.view not in choice.recomputed:
            row = choice.rows[offer.view]
            rows_reaching(self._parts, self._spark, row, choice.at[offer.view])

    def foreseen(self) -> RoutePlan:
        """What would answer now, nothing being moved for it."""
        plan = route_plan(self._parts, self._spark, self._asked)
        passed: list[Offer] = []
        for place, offer in enumerate(plan.offers):
            why = self._unfit(offer)
            if why is None and not self._may_move(offer) and self._bound:
                shown = self._choosing(offer.view, self._asked.staleness).as_shown(self._bound)
                why = None if shown is not None else _TOO_OLD
            if why is None:
                return _with(plan, offer, passed, place)
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
        kinds = {Forward.CARRIED: "it is deferred: ", Forward.RECOMPUTED: "it is recomputed: "}
        kind = kinds.get(self._forward[offer.view], "")
        return f"{kind}what it shows may be older than its tables"

    def _choosing(self, view: str, staleness: Staleness) -> Choosing:
        plans = all_recalled(self._parts.catalog.views.all())
        reads = Reads({view: all_tables(plans[view], plans)})
        return Choosing(self._parts, reads, self._means, staleness)

    def _choice(self, offer: Offer) -> Choice | None:
        """The state of the view; None where what it shows is too old and it may not be moved."""
        asked, staleness = self._asked, self._asked.staleness
        if asked.at is not None or self._as_it_is:
            return self._choosing(offer.view, staleness).choose(asked.at)
        # without a bound, all that is committed is wanted, and has to be computed
        newest = replace(staleness, bound=timedelta(0), on_stale=OnStale.compensate)
        wanted = newest if self._bound is None else staleness
        choosing = self._choosing(offer.view, wanted)
        if self._bound and (found := choosing.as_shown(self._bound)) is not None:
            return found
        return choosing.choose(None) if self._may_move(offer) else None


def _with(plan: RoutePlan, offer: Offer, passed: Sequence[Offer], place: int) -> RoutePlan:
    behind = plan.offers[place + 1 :]
    others = (replace(o, why_not="the other one has no more rows") for o in behind)
    return replace(plan, taken=offer, offers=(offer, *passed, *others))


def unroutable(plan: RoutePlan) -> QueryRefused:
    """No view answers the query, and one has to."""
    reasons = [f'"{o.view}": {o.why_not}' for o in plan.offers]
    reasons += [f'"{t.view}": {t.why}' for t in plan.turned]
    return QueryRefused(
        "the query cannot be answered from a view",
        detail="\n".join(reasons) or plan.why,
        hint="leave out --route require: its tables are asked then",
    )
