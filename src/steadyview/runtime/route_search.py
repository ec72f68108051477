"""Which views give the same rows as a query over tables of sources.

A view does if the rules of `views/routing` make of the query one over the view, and if Spark gives
that one the names and types that it gives the query itself. Of several, the one with the fewest
stored rows comes first. Nothing is read or moved here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from steadyview.catalog import ViewRow
from steadyview.changes import RelationSchema
from steadyview.engine.analysis import columns_of
from steadyview.engine.reading import check_reading
from steadyview.errors import QueryRefused, ViewRefused
from steadyview.plans.plan import HIDDEN
from steadyview.runtime.kept import all_recalled, recalled
from steadyview.runtime.parts import Parts
from steadyview.runtime.planning import Planned
from steadyview.runtime.routes import Offer, Route, RoutePlan, Turned
from steadyview.runtime.serving import At
from steadyview.runtime.staleness import Staleness
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
    plans = all_recalled(kept)
    offered = ((row, _offered(row, plans)) for row in rows if row.name in plans)
    near = [(row, view) for row, view in offered if view.tables & tables]
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


def _offered(row: ViewRow, plans: Mapping[str, Planned]) -> OfferedView:
    """The view with all tables that it is made of; over other views, it has no text of its own."""
    plan = plans[row.name]
    below = _hidden_below(plan, plans)
    known = {r.name: r for part in (plan, *below) for r in part.relations}
    over_views = any(not plans[n].hidden for part in (plan, *below) for n in part.parents)
    by_rows = row.kind == "incremental" and not over_views
    return OfferedView(row.name, row.sql, tuple(known.values()), plan.columns, by_rows)


def _hidden_below(plan: Planned, plans: Mapping[str, Planned]) -> list[Planned]:
    """The nodes that the view alone is made of, or shares with others."""
    found = [plans[name] for name in plan.parents if plans[name].hidden]
    return [*found, *(node for below in found for node in _hidden_below(below, plans))]
