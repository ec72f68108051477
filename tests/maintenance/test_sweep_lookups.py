"""What a batch asks of the sources: at most 2(n-1) lookups whatever its size, and none in vain."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from steadyview.changes import RelationSchema
from steadyview.maintenance import EdgeLookup
from steadyview.maintenance.bag_algebra import Batch, Handle
from steadyview.views.join_tree import Edge, JoinTree, join_tree
from tests.maintenance.cases import View, case, relation, view
from tests.maintenance.definitions import assembled
from tests.maintenance.sweeping import SOUND, Showing, changed_occurrences, chosen_case, sweep
from tests.worlds import Seeded

RELATIONS = [relation(f"s{i}.r{i}", "xy") for i in range(5)]


def chain(length: int) -> View:
    tables = ", ".join(f"s{i}.r{i} AS r{i}" for i in range(length))
    links = [f"r{i}.y = r{i + 1}.x" for i in range(length - 1)]
    where = f" WHERE {' AND '.join(links)}" if links else ""
    equalities = [(i, 1, i + 1, 0) for i in range(length - 1)]
    return view(f"SELECT r0.x FROM {tables}{where}", RELATIONS[:length], equalities, ["t0.c0"])


def star(length: int) -> View:
    tables = ", ".join(f"s{i}.r{i} AS r{i}" for i in range(length))
    links = " AND ".join(f"r0.y = r{i}.x" for i in range(1, length))
    equalities = [(0, 1, i, 0) for i in range(1, length)]
    sql = f"SELECT r0.x FROM {tables} WHERE {links}"
    return view(sql, RELATIONS[:length], equalities, ["t0.c0"])


def asked(of: View, changed: Sequence[RelationSchema], size: int) -> tuple[EdgeLookup[Handle], ...]:
    """The lookups of one batch of `size` transactions over the changed relations in turn."""
    history = [[(changed[i % len(changed)], (i % 7, i % 5), 1)] for i in range(size)]
    of_case = case(of, {r: [(1, 1), (2, 1)] for r in of.occurrences}, history, [(0, size, set())])
    assert of_case.exact()
    return sweep(of.definition(), of_case.world, of_case.showings[0], SOUND).asks


@pytest.mark.parametrize("size", [5, 50])
@pytest.mark.parametrize("shape", [chain, star])
@pytest.mark.parametrize("length", [2, 3, 4])
def test_changes_everywhere_cost_two_lookups_an_edge(length: int, shape: type, size: int) -> None:
    asks = asked(shape(length), RELATIONS[:length], size)
    assert len({ask.edge for ask in asks}) == len(asks) == 2 * (length - 1)


@pytest.mark.parametrize("size", [1, 50])
@pytest.mark.parametrize("start", range(4))
def test_changes_at_one_relation_cost_one_lookup_an_edge_outward(start: int, size: int) -> None:
    edges = [(a.edge.u, a.edge.v) for a in asked(chain(4), [RELATIONS[start]], size)]
    left = [(i + 1, i) for i in range(start)]
    right = [(i, i + 1) for i in range(start, 3)]
    assert sorted(edges) == sorted([*left, *right])


def test_a_view_of_one_relation_asks_nothing() -> None:
    assert asked(chain(1), RELATIONS[:1], 50) == ()


def test_a_batch_without_a_change_of_the_view_asks_nothing() -> None:
    world = case(chain(3), {}, [[(RELATIONS[0], (1, 1), 1)]], []).world
    quiet = Showing(Batch(1, 1), frozenset({1}))
    assert sweep(chain(3).definition(), world, quiet, SOUND).asks == ()


def behind(tree: JoinTree, edge: Edge) -> set[int]:
    """The occurrences on u's side of the edge, by walking the tree."""
    side, size = {edge.u}, 0
    while len(side) > size:
        size = len(side)
        side |= {e.v for e in tree.edges if e.u in side and (e.u, e.v) != (edge.u, edge.v)}
    return side


def test_generated_batches_ask_once_along_each_edge_with_a_change_behind_it() -> None:
    for seed in range(500):
        world, showings = chosen_case(Seeded(seed))
        definition = assembled(world)
        tree = join_tree(definition)
        for showing in showings:
            asks = sweep(definition, world, showing, SOUND).asks
            changed = changed_occurrences(definition, world, showing.batch)
            expected = [edge for edge in tree.edges if behind(tree, edge) & changed]
            assert len(asks) == len(expected) <= 2 * (len(definition.occurrences) - 1)
            assert {ask.edge for ask in asks} == set(expected)


def test_only_the_edges_without_a_key_read_a_relation_whole() -> None:
    for seed in range(200):
        world, showings = chosen_case(Seeded(seed))
        for showing in showings:
            for ask in sweep(assembled(world), world, showing, SOUND).asks:
                assert (ask.keys is None) == (ask.edge.key is None)
