"""One query, one view: the query over the view, or the reason why it has to be asked elsewhere."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from steadyview.changes import RelationSchema
from steadyview.views.flat import FlatQuery
from steadyview.views.routing.body import Body
from steadyview.views.routing.covering import Covering
from steadyview.views.routing.matching import Matched, matches
from steadyview.views.routing.offers import OfferedView
from steadyview.views.routing.over_rows import over_rows
from steadyview.views.routing.question import RoutingQuestion
from steadyview.views.routing.reasons import CannotAnswer
from steadyview.views.routing.rollup import ColumnTypes, rollup
from steadyview.views.routing.same_groups import has_same_groups, same_groups
from steadyview.views.routing.same_text import has_same_text, same_text
from steadyview.views.trees import canonical

RULES = ("same text", "same groups", "coarser groups", "rows")
"""Ways to answer from a view, the one that has least left to do first."""
TURNING_AWAY = (
    *("view", "shape", "text", "from", "where", "bag", "groups", "having", "rest"),
    *("aggregates", "columns", "order"),
)
"""Rules by how near a view came that one of them turns away."""
_COLUMN = re.compile(r"\bt(\d+)_c(\d+)\b")


@dataclass(frozen=True)
class Routed:
    """The query as one over the view; `rule` is one of RULES."""

    view: str
    sql: str
    rule: str

    @property
    def rank(self) -> int:
        """Lower where less is left to do."""
        return RULES.index(self.rule)


@dataclass(frozen=True)
class Unrouted:
    """Which rule the view does not meet, and what is missing, for people."""

    view: str
    rule: str
    why: str


def routed(question: RoutingQuestion, view: OfferedView) -> Routed | Unrouted:
    """The query over the view, if it gives the same rows at every commit."""
    try:
        rule, sql = _routed(question, view)
    except CannotAnswer as cannot:
        return Unrouted(view.name, cannot.rule, _for_people(cannot.why, question))
    return Routed(view.name, sql, rule)


def _routed(question: RoutingQuestion, view: OfferedView) -> tuple[str, str]:
    if question.tables != view.tables:
        raise CannotAnswer("from", "it does not read the same tables")
    if has_same_text(question, view):
        return RULES[0], same_text(question, view)
    if question.flat is None:
        raise CannotAnswer("shape", f"the query is not its text, and {question.why}")
    if view.flat is None or not view.by_rows:
        raise CannotAnswer("view", "it answers its own text alone")
    return _nearest(question, question.flat, view, view.flat)


def _nearest(
    question: RoutingQuestion, query: FlatQuery, view: OfferedView, flat: FlatQuery
) -> tuple[str, str]:
    """By the first mapping that does; else the reason of the one that came nearest."""
    reasons: list[CannotAnswer] = []
    for matched in matches(query, question.relations, flat, view.relations):
        try:
            rule, body = _body(question, query, matched, view)
            return rule, body.sql(view.name, question)
        except CannotAnswer as cannot:
            reasons.append(cannot)
    raise max(reasons, key=lambda reason: TURNING_AWAY.index(reason.rule))


def _body(
    question: RoutingQuestion, query: FlatQuery, matched: Matched, view: OfferedView
) -> tuple[str, Body]:
    own, types = matched.view, dict(view.columns)
    names = [name for name, _ in view.columns]
    if len(own.outputs) != len(names):
        raise CannotAnswer("view", "its text has other columns than it is kept with")
    pairs = list(zip(own.outputs, names, strict=True))
    shows = Covering.of(pairs, types)
    if not own.grouped:
        return RULES[3], over_rows(query, matched, shows)
    if not query.grouped:
        raise CannotAnswer("bag", "it keeps groups, and the query asks for single rows")
    grouping = {canonical(key) for key in own.keys}
    keys = Covering.of([p for p in pairs if canonical(p[0]) in grouping], types)
    if has_same_groups(query, own):
        try:
            return RULES[1], same_groups(query, matched, keys, shows)
        except CannotAnswer:
            if own.having:
                raise
    column_types = _types(query, question.relations)
    return RULES[2], rollup(query, matched, keys, shows, column_types)


def _types(query: FlatQuery, relations: tuple[RelationSchema, ...]) -> ColumnTypes:
    known = {r.name: r for r in relations}

    def type_of(name: str) -> str:
        found = _COLUMN.fullmatch(name)
        assert found is not None
        return known[query.tables[int(found[1])]].columns[int(found[2])].type

    return type_of


def _for_people(why: str, question: RoutingQuestion) -> str:
    """With the columns under their names."""
    if question.flat is None:
        return why
    tables = question.flat.tables
    known: Mapping[object, RelationSchema] = {r.name: r for r in question.relations}

    def named(found: re.Match[str]) -> str:
        table = tables[int(found[1])]
        return f"{table.path[-1]}.{known[table].columns[int(found[2])].name}"

    return _COLUMN.sub(named, why)
