"""Queries over tables are answered from views only where both give the same rows."""

from __future__ import annotations

import os
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from steadyview.views.flat import FlatQuery
from steadyview.views.fusing import expression
from steadyview.views.routing import (
    OfferedView,
    Routed,
    Unrouted,
    body,
    matching,
    rollup,
    route,
    routing_question,
    same_groups,
)
from steadyview.views.routing import routed as asked_of
from tests.views.routes import Pair, judged, pair, right
from tests.views.shop import RELATIONS

PAIRS = int(os.environ.get("STEADYVIEW_ROUTES", "500"))
FOLDER = Path(__file__).parent / "routed"


def pairs(count: int) -> Iterator[tuple[Pair, random.Random]]:
    for seed in range(count):
        dice = random.Random(seed)
        yield pair(dice), dice


def test_answers_from_views_are_those_of_the_tables_in_every_state() -> None:
    rules = set()
    for seed, (tried, dice) in enumerate(pairs(PAIRS)):
        if isinstance(tried.found, Routed):
            rules.add(tried.found.rule)
            assert right(tried, dice), (seed, tried)
    assert rules == set(route.RULES) - {"same text"}


# --- readings of the rules that are wrong ---------------------------------------------------------


def anywhere(text: Callable) -> Callable:
    """Conditions without the alias that they speak of."""
    return lambda condition: re.sub(r"\bt\d+_", "", text(condition))


def shown(original: Callable) -> Callable:
    """A condition on what is an aggregate in the view, taken for one on the rows."""

    def rest(matched: matching.Matched, keys: route.Covering) -> tuple:
        view = matched.view
        least = [f"MIN({name})" for name in matching.all_names(matched.rest)]
        known = {f"{o}": i for i, o in enumerate(map(matching.canonical, view.outputs))}
        more = {m[4:-1]: f"c{known[m]}" for m in least if m in known}
        return original(matched, replace(keys, shown={**keys.shown, **more}))

    return rest


def without_having(renamed: Callable) -> Callable:
    """HAVING of the view is overlooked."""
    return lambda flat, mapping: replace(renamed(flat, mapping), having=())


def as_a_bag(renamed: Callable) -> Callable:
    """A view of DISTINCT rows, taken for one of all rows."""

    def mapped(flat: FlatQuery, mapping: dict[int, int]) -> FlatQuery:
        found = renamed(flat, mapping)
        return replace(found, grouped=False) if flat.distinct else found

    return mapped


def without_coalesce(parsed: Callable) -> Callable:
    """SUM of no counts."""
    return lambda self, sql: expression(re.sub(r"^COALESCE\((.*), 0\)$", r"\1", sql))


def number_of_rows(_: Callable) -> Callable:
    """The number of the view's rows, for the number of rows."""
    return lambda self, node: "1"


def of_all_rows(_: Callable) -> Callable:
    """COUNT(*) for COUNT(x)."""
    return lambda self, node, argument: self._count(node)


def unweighted(_: Callable) -> Callable:
    """The sum of a key, once per group."""
    return lambda self, node, type_, key: (f"SUM({key})", "BIGINT")


def average_of_averages(_: Callable) -> Callable:
    """AVG of what is AVG in the view."""
    return lambda self, node, x: f"AVG({self._shown(node) or 'NULL'})"


def counted(_: Callable) -> Callable:
    """COUNT of the view's rows for COUNT(DISTINCT x), whatever x is."""
    original = rollup._Rolled.__call__

    def call(self: rollup._Rolled, node: rollup.exp.Expression) -> rollup.exp.Expression:
        if "DISTINCT" in f"{node}".upper():
            return expression(f"SUM({self._count(node)})")
        return original(self, node)

    return call


def having_before(original: Callable) -> Callable:
    """HAVING of the query, asked of the view's own groups."""

    def made(query: FlatQuery, matched: matching.Matched, keys, shows, types) -> body.Body:
        found = original(replace(query, having=()), matched, keys, shows, types)
        early = tuple(v for v in map(shows.row_value, query.having) if v is not None)
        return replace(found, where=(*found.where, *early))

    return made


MUTANTS = [
    (matching, "text", anywhere),
    (matching, "text", lambda _: lambda condition: ""),
    (rollup, "rest_over", shown),
    (same_groups, "rest_over", shown),
    (matching, "renamed", without_having),
    (matching, "renamed", as_a_bag),
    (rollup._Rolled, "_parsed", without_coalesce),
    (rollup._Rolled, "_count", number_of_rows),
    (rollup._Rolled, "_present", of_all_rows),
    (rollup._Rolled, "_weighted", unweighted),
    (rollup._Rolled, "_average", average_of_averages),
    (rollup._Rolled, "__call__", counted),
    (route, "rollup", having_before),
]


@pytest.mark.parametrize(("owner", "name", "mutant"), MUTANTS)
def test_a_wrong_reading_is_convicted(
    owner: object, name: str, mutant: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner, name, mutant(getattr(owner, name)))
    for tried, dice in pairs(2_000):
        if isinstance(tried.found, Routed) and not right(tried, dice):
            return
    pytest.fail("no pair of a view and a query shows that this reading is wrong")


# --- written examples -----------------------------------------------------------------------------


def cases() -> Iterator[tuple[str, str, str, str]]:
    """Name, view, query, and what becomes of it: the query over the view, or `not: rule`."""
    for path in sorted(FOLDER.glob("*.sql")):
        for case in path.read_text(encoding="utf-8").split("\n----\n"):
            parts = dict(re.findall(r"^(claim|view|query|gives|not): (.+?)$", case, re.M))
            outcome = parts.get("gives") or f"not: {parts['not']}"
            yield f"{path.stem}: {parts['claim']}", parts["view"], parts["query"], outcome


CASES = list(cases())


@pytest.mark.parametrize(
    ("view", "query", "outcome"), [c[1:] for c in CASES], ids=[c[0] for c in CASES]
)
def test_a_written_case(view: str, query: str, outcome: str) -> None:
    found = routed_case(view, query)
    if isinstance(found, Unrouted):
        assert f"not: {found.rule}" == outcome, found.why
    else:
        assert found.sql == outcome


def routed_case(view: str, query: str) -> Routed | Unrouted:
    """A view is `columns with types | text`, a recomputed one `columns | text | recomputed`."""
    columns, text, *more = (part.strip() for part in view.split("|"))
    typed = tuple(tuple(c.strip().rsplit(" ", 1)) for c in columns.split(";"))
    read = [r for r in RELATIONS if re.search(rf"\b{r.name.source}\.{r.name.path[-1]}\b", text)]
    asked = [r for r in RELATIONS if re.search(rf"\b{r.name.source}\.{r.name.path[-1]}\b", query)]
    offered = OfferedView("v", text, tuple(read), typed, by_rows=not more)
    names = [f"c{i}" for i in range(width(query))]
    return asked_of(routing_question(query, asked, names), offered)


def width(query: str) -> int:
    listed = re.match(r"SELECT (?:DISTINCT )?(.*?) FROM", query)
    assert listed
    return len(re.sub(r"\([^()]*\)", "", re.sub(r"\([^()]*\)", "", listed[1])).split(","))


def test_every_rule_has_a_case_that_it_turns_away() -> None:
    turned_away = {c[3].removeprefix("not: ") for c in CASES if c[3].startswith("not: ")}
    assert turned_away == {*route.TURNING_AWAY}


def test_texts_that_are_not_equal_in_their_tables_are_never_compared() -> None:
    tried = judged("SELECT a AS c0 FROM s.r x", "SELECT a AS c0 FROM s.q x", 1, 1)
    assert isinstance(tried.found, Unrouted)
    assert tried.found.rule == "from"


def test_a_star_stands_for_the_columns_that_spark_says() -> None:
    orders = next(r for r in RELATIONS if str(r.name) == "sales.public.orders")
    columns = tuple((c.name, c.type) for c in orders.columns)
    view = OfferedView("v", "SELECT * FROM sales.orders", (orders,), columns)
    names = [c.name for c in orders.columns]
    for called in (names, names[::-1]):
        found = asked_of(routing_question("SELECT * FROM sales.orders o", [orders], called), view)
        assert isinstance(found, Routed) == (called == names)
