"""Whatever the text, the answer is a definition or a refusal."""

# ruff: noqa: E501, SIM905 - a statement is read best on one line
from __future__ import annotations

import contextlib

from hypothesis import given, settings
from hypothesis import strategies as st

from steadyview.errors import ViewRefused
from steadyview.plans.draft import PlanDraft
from steadyview.views.join_tree import join_tree
from steadyview.views.rewrite import with_tables
from steadyview.views.source_text import SourceText
from tests.views.shop import HERE, RELATIONS, define, plan, view

NAMES = {r.name: "`x`" for r in RELATIONS}
ACCEPTED = [
    "SELECT o.id, EXISTS (SELECT 1 FROM crm.customers c WHERE c.id = o.id AND c.region > o.note) AS e FROM sales.orders o"
    " LEFT JOIN (SELECT DISTINCT order_id FROM sales.order_lines) l ON l.order_id = o.id WHERE o.id NOT IN (SELECT id FROM"
    " other_view) OR o.note = 'a'",
    "SELECT id FROM sales.orders UNION (SELECT MAX(id) AS m FROM crm.customers GROUP BY region HAVING COUNT(*) > 1) EXCEPT ALL"
    " SELECT a FROM VALUES (1), (2) AS t(a)",
    "WITH late AS (SELECT id, customer_id c FROM sales.orders WHERE placed > DATE '2020-01-01' OR id IN (1, 2))"
    " SELECT a.id + 1 AS x, b.* FROM late a JOIN late b ON a.c = b.c AND a.id <> b.id",
    "SELECT region r, COUNT(*), SUM(price * quantity) / COUNT(price) AS m FROM (sales.orders o JOIN"
    " sales.order_lines l ON o.id = l.order_id) JOIN crm.customers c ON c.id = o.customer_id GROUP BY 1",
    "SELECT CASE WHEN id BETWEEN 1 AND 2 AND note LIKE 'a%' THEN year(placed) END y, AVG(id) a"
    " FROM sales.orders x (id, b, placed, note) WHERE NOT (b = 1 AND id IS NULL) GROUP BY ALL",
]
REFUSED = [
    case
    for path in sorted((HERE / "refused").glob("*.sql"))
    for case in path.read_text(encoding="utf-8").split("\n----\n")
]
WORDS = (
    r"""
    ( ) , . * = + - AND OR NOT AS SELECT FROM WHERE GROUP BY ALL JOIN ON USING ( ) [ ] ; CASE END
    BETWEEN IN LEFT UNION WITH COUNT SUM -> :: : ? 'x' `y` 1 id o.id sales.orders /* -- ' " ` \ é
""".split()
    + ["ORDER BY", "\n", "\0", "\u2028"]
)


def outcome(text: str) -> PlanDraft | ViewRefused:
    try:
        return plan(text)
    except ViewRefused as refused:
        return refused


@st.composite
def mutated(draw: st.DrawFn) -> str:
    text = draw(st.sampled_from(ACCEPTED + REFUSED))
    with contextlib.suppress(ViewRefused):
        pieces = [t.raw for t in SourceText(text, view="v").tokens]
        for _ in range(draw(st.integers(1, 3))):
            at = draw(st.integers(0, len(pieces)))
            removed = draw(st.integers(0, 2))
            put = draw(st.lists(st.sampled_from(WORDS + pieces[:20]), max_size=2))
            pieces[at : at + removed] = put
        return " ".join(pieces)
    return text


@given(mutated() | st.text(max_size=40))
@settings(max_examples=250, deadline=None)
def test_a_mutated_view_is_defined_or_refused_and_nothing_else(text: str) -> None:
    found = outcome(text)
    if isinstance(found, ViewRefused):
        assert (found.line or 0) >= 1
        assert (found.column or 0) >= 1
    else:
        assert len(found.drafts[-1].columns) == len(found.names)


@given(mutated())
@settings(max_examples=120, deadline=None)
def test_a_mutated_view_is_flat_or_refused_and_nothing_else(text: str) -> None:
    with contextlib.suppress(ViewRefused):
        found = define(text)
        assert len(join_tree(found).edges) == 2 * (len(found.occurrences) - 1)


@given(mutated())
@settings(max_examples=120, deadline=None)
def test_a_mutated_view_is_rewritten_or_refused_and_nothing_else(text: str) -> None:
    with contextlib.suppress(ViewRefused):
        assert isinstance(with_tables(view(text), NAMES, RELATIONS), str)


def test_the_unmutated_views_are_defined() -> None:
    assert [len(plan(text).names) for text in ACCEPTED] == [2, 1, 3, 3, 2]
