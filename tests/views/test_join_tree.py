# ruff: noqa: E501 - a statement is read best on one line
from __future__ import annotations

from collections import Counter
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steadyview.views.definition import Definition, EqualColumns, Occurrence, Residual
from steadyview.views.join_tree import Edge, JoinTree, LookupKey, comparable, join_tree
from tests.views.shop import define, relation

TYPES = ("INT", "BIGINT", "STRING", "DECIMAL(12,2)", "DATE")
ANY = relation("s", ("t",), "; ".join(f"c{i} {t}" for i, t in enumerate(TYPES)), ("c0",))


def edges(tree: JoinTree) -> set[tuple[int, int]]:
    return {(e.u, e.v) for e in tree.edges}


def test_one_occurrence_has_no_edges_and_all_conditions_at_the_start() -> None:
    tree = join_tree(define("SELECT id FROM sales.orders WHERE 1 = 0 AND id > 1"))
    assert (tree.edges, tree.steps(0), tree.start_conditions(0)) == ((), (), ("1 = 0",))


def test_the_shops_tree_goes_by_indexed_keys_in_both_directions() -> None:
    tree = join_tree(
        define(
            "SELECT o.id FROM sales.order_lines l JOIN sales.orders o ON l.order_id = o.id"
            " JOIN crm.customers c ON c.id = o.customer_id"
        )
    )
    assert set(tree.edges) == {
        Edge(0, 1, LookupKey(0, 0, indexed=True)),
        Edge(1, 0, LookupKey(0, 0, indexed=True)),
        Edge(1, 2, LookupKey(1, 0, indexed=True)),
        Edge(2, 1, LookupKey(0, 1, indexed=True)),
    }


def test_a_key_without_index_is_preferred_to_reading_whole() -> None:
    text = "SELECT a.id FROM sales.orders a JOIN sales.orders b ON a.note = b.note AND a.placed = b.placed"
    assert {e.key for e in join_tree(define(text)).edges} == {LookupKey(2, 2)}


def test_an_indexed_key_is_preferred_to_one_without_index() -> None:
    text = (
        "SELECT a.id FROM sales.orders a JOIN sales.orders b ON a.placed = b.placed AND a.id = b.id"
    )
    assert {e.key for e in join_tree(define(text)).edges} == {LookupKey(0, 0, indexed=True)}


@pytest.mark.parametrize(
    ("condition", "why"),
    [
        ("o.note = c.region", 'the source compares "region" otherwise than Spark'),
        ("o.note = c.id", '"note" is STRING, "id" is BIGINT'),
        ("o.id < c.id", "no equality of two columns joins it"),
        ("o.id + 1 = c.id", "no equality of two columns joins it"),
        ("1 = 1", "no equality of two columns joins it"),
    ],
)
def test_what_has_no_key_is_read_whole_and_says_why(condition: str, why: str) -> None:
    text = f"SELECT o.id FROM sales.orders o JOIN crm.customers c ON {condition}"
    edge = join_tree(define(text)).edges[0]
    assert (edge.key, edge.why) == (None, why)


def test_edges_of_a_cycle_that_the_tree_leaves_out_become_conditions() -> None:
    tree = join_tree(
        define(
            "SELECT a.id FROM crm.customers a JOIN crm.customers b ON a.id = b.id"
            " JOIN crm.customers c ON b.id = c.id AND c.id = a.id AND a.region < c.region || b.region"
        )
    )
    assert edges(tree) == {(0, 1), (1, 0), (0, 2), (2, 0)}
    assert [(s.edge.v, s.conditions) for s in tree.steps(0)] == [
        (1, ("t0.c0 = t1.c0",)),
        (2, ("t0.c0 = t2.c0", "t1.c0 = t2.c0", "t0.c1 < t2.c1 || t1.c1")),
    ]


def test_a_condition_is_preferred_to_a_cross_join() -> None:
    text = (
        "SELECT a.id FROM crm.customers a, crm.customers b, crm.customers c"
        " WHERE a.id = b.id AND b.id < c.id"
    )
    assert edges(join_tree(define(text))) == {(0, 1), (1, 0), (1, 2), (2, 1)}


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        ("SMALLINT", "BIGINT", True),
        ("DECIMAL(12,2)", "DECIMAL(38,10)", True),
        ("STRING", "STRING", True),
        ("DATE", "TIMESTAMP", False),
        ("FLOAT", "DOUBLE", False),
        ("INT", "DECIMAL(10,0)", False),
        ("TIMESTAMP", "TIMESTAMP_NTZ", False),
    ],
)
def test_types_that_compare_without_a_changing_cast(left: str, right: str, same: bool) -> None:
    assert comparable(left, right) is same


@st.composite
def definitions(draw: st.DrawFn) -> Definition:
    size = draw(st.integers(1, 6))
    occurrence, column = st.integers(0, size - 1), st.integers(0, len(TYPES) - 1)
    joined = draw(st.lists(st.tuples(occurrence, column, occurrence, column), max_size=8))
    sets = draw(st.lists(st.frozensets(occurrence, max_size=4), max_size=4))
    return Definition(
        "v",
        "",
        "complete",
        tuple(Occurrence(i, ANY, f"x{i}", (0,)) for i in range(size)),
        tuple(EqualColumns(a, i, b, j) for a, i, b, j in joined if a < b),
        tuple(Residual(f"r{n}", s) for n, s in enumerate(sets) if len(s) != 1),
        (),
    )


@given(definitions())
def test_from_every_start_all_occurrences_are_reached_and_all_conditions_applied_once(
    definition: Definition,
) -> None:
    tree, size = join_tree(definition), len(definition.occurrences)
    assert len(tree.edges) == len(edges(tree)) == 2 * (size - 1)
    wanted = Counter(sql for sql, _ in tree.conditions)
    for start in range(size):
        steps = tree.steps(start)
        reached = [start]
        for step in steps:
            assert step.edge.u in reached
            assert step.edge.v not in reached
            reached.append(step.edge.v)
        applied = Counter(c for step in steps for c in step.conditions)
        assert applied + Counter(tree.start_conditions(start)) == wanted
        assert sorted(reached) == list(range(size))


@given(definitions())
def test_occurrences_are_crossed_only_where_nothing_connects_them(definition: Definition) -> None:
    tree = join_tree(definition)
    pairs = [frozenset((e.left, e.right)) for e in definition.equalities]
    for r in definition.residuals:
        pairs += [frozenset(p) for p in product(r.occurrences, repeat=2) if p[0] != p[1]]
    crossed = {frozenset(e) for e in edges(tree)} - set(pairs)
    assert len(crossed) == _components(len(definition.occurrences), pairs) - 1


def _components(size: int, pairs: list[frozenset[int]]) -> int:
    group = list(range(size))
    for a, b in map(sorted, pairs):
        group = [group[a] if g == group[b] else g for g in group]
    return len(set(group))
