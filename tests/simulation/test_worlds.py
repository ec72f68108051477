"""Worlds are what they are said to be: small, skewed, varied, and right."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from steadyview.checking import History, judge
from steadyview.maintenance.algorithms import BATCHED, kind_of
from steadyview.simulation import SCENARIOS, Sizes, simulated
from steadyview.simulation.blueprints import BY_VALUE, COLUMNS, OF_ALL, dealt
from steadyview.simulation.histories import history
from steadyview.simulation.running import Trace
from steadyview.simulation.worlds import World, world

SEEDS = range(1_500)


def worlds(scenario: str, *, keys: bool, one_source: bool = False) -> list[World]:
    made = []
    for seed in SEEDS:
        random = Random(seed)
        blueprint = dealt(seed % 400, None, keys=keys, one_source=one_source)
        made.append(world(random, scenario, Sizes(), blueprint))
    return made


@pytest.fixture(scope="module", params=[True, False], ids=["keys", "bags"])
def some(request) -> list[World]:
    return worlds("global", keys=request.param)


def share(worlds: list[World], holds) -> float:
    return sum(map(bool, map(holds, worlds))) / len(worlds)


def rows_of(world: World) -> list:
    initial = [row for bag in world.rows for row, _ in bag]
    return initial + [change.row for t in world.transactions for change in t.changes]


def test_there_are_two_to_five_relations_in_every_shape(some):
    assert {len(w.blueprint.uses) for w in some} == {2, 3, 4, 5}
    shapes = {(len(w.blueprint.uses), w.blueprint.shape) for w in some}
    every = ("chain", "star", "shared", "ring", "theta")
    assert shapes >= {(n, shape) for n in (3, 4) for shape in every}


def test_some_relations_are_used_twice_and_some_share_a_source(some):
    assert share(some, lambda w: len(set(w.blueprint.uses)) < len(w.blueprint.uses)) > 0.05
    assert share(some, lambda w: len(set(w.blueprint.sources)) < len(w.blueprint.sources)) > 0.2
    assert share(some, lambda w: len(set(w.blueprint.sources)) > 1) > 0.6


def test_some_views_filter_and_some_project_columns_away(some):
    assert share(some, lambda w: " WHERE " in w.blueprint.view) > 0.2
    assert 0.2 < share(some, lambda w: w.blueprint.narrow) < 0.8


def test_a_key_column_is_never_null(some):
    for w in some:
        for relation, bag in enumerate(w.rows):
            assert all(None not in row[: w.blueprint.key_width(relation)] for row, _ in bag)
        for change in (c for t in w.transactions for c in t.changes):
            assert None not in change.row[: w.blueprint.key_width(change.relation)]


def test_nulls_are_everywhere_but_in_keys(some):
    for column, name in enumerate(COLUMNS):
        nulls = share(some, lambda w, c=column: any(row[c] is None for row in rows_of(w)))
        assert (nulls == 0) is (name == "k")


def test_rows_come_twice_where_no_key_forbids_it():
    def twice(w: World) -> bool:
        counts = Counter((c.relation, c.row, c.sign) for t in w.transactions for c in t.changes)
        return any(n > 1 for bag in w.rows for _, n in bag) or max(counts.values()) > 1

    assert share(worlds("single", keys=False), twice) > 0.1


def executed(w: World):
    """The relations after every single change."""
    there = [Counter(dict(bag)) for bag in w.rows]
    yield there
    for transaction in w.transactions:
        for change in transaction.changes:
            there[change.relation][change.row] += change.sign
            yield there


def test_no_relation_loses_a_row_that_it_does_not_hold_nor_holds_a_key_twice():
    for scenario in SCENARIOS:
        for w in worlds(scenario, keys=scenario != "global"):
            for there in executed(w):
                assert all(count >= 0 for rows in there for count in rows.values())
                for relation, rows in enumerate(there if w.blueprint.keyed else ()):
                    width = w.blueprint.key_width(relation)
                    keys = [row[:width] for row in rows.elements()]
                    assert len(set(keys)) == len(keys)


def test_some_keys_are_pairs_of_which_neither_half_is_a_key():
    keyed = worlds("source-local", keys=True)
    assert 0.15 < share(keyed, lambda w: w.blueprint.pairs) < 0.4
    assert share(keyed, lambda w: 0 < len(w.blueprint.pairs) < len(w.rows)) > 0.1
    for half in (0, 1):
        assert share(keyed, lambda w, half=half: shares_half_a_key(w, half)) > 0.1
    assert not any(w.blueprint.pairs for w in worlds("single", keys=False) if not w.blueprint.keyed)


def shares_half_a_key(w: World, half: int) -> bool:
    return any(
        max(Counter(row[half] for row in there[relation].elements()).values(), default=0) > 1
        for there in executed(w)
        for relation in w.blueprint.pairs
    )


def test_a_keyed_view_shows_every_key_column():
    for w in worlds("single", keys=True):
        names = w.site.algebra.view.definition.outputs
        for position, (relation, key) in enumerate(
            zip(w.blueprint.uses, w.blueprint.keys, strict=True)
        ):
            assert [column for column, _ in key] == [0, 1][: w.blueprint.key_width(relation)]
            for column, output in key:
                assert names[output].sql == f"t{position}.c{column}"


def test_a_scenario_says_what_a_transaction_may_change():
    def sources(w: World) -> list[set[int]]:
        return [{w.blueprint.sources[c.relation] for c in t.changes} for t in w.transactions]

    single, local, spanning = (worlds(s, keys=True) for s in ("single", "source-local", "global"))
    assert all(len(t.changes) == 1 for w in single for t in w.transactions)
    assert all(len(at) == 1 for w in local for at in sources(w))
    assert share(local, lambda w: any(len(t.changes) > 1 for t in w.transactions)) > 0.5
    assert share(spanning, lambda w: any(len(at) > 1 for at in sources(w))) > 0.4


def test_groups_and_late_transactions_are_for_plans_alone():
    plans, sweeps = (
        [simulated(kind_of(name), "global", seed, Sizes()).world for seed in range(300)]
        for name in (BATCHED, "sweep")
    )
    for groups in (BY_VALUE, OF_ALL):
        assert 0.1 < share(plans, lambda w, g=groups: w.blueprint.groups == g) < 0.5
    assert share(plans, lambda w: " GROUP BY " in w.blueprint.view) > 0.1
    assert 0.5 < share(plans, lambda w: any(t.late for t in w.transactions)) < 1
    assert not any(w.blueprint.groups or any(t.late for t in w.transactions) for w in sweeps)


def test_one_source_means_one_source():
    assert all(
        set(w.blueprint.sources) == {0} for w in worlds("single", keys=False, one_source=True)
    )


def test_the_initial_view_is_the_view_over_the_initial_rows(some):
    shown = 0
    for w in some:
        told = history(w, Trace([w.initial_view]))
        before = History(told.view, told.relations, [], told.states)
        assert judge(before).level == "complete"
        shown += len(w.initial_view) > 0
    assert shown > len(some) / 20
