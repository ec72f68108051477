"""Every algorithm over thousands of histories: none below its promise, and some no higher."""

from __future__ import annotations

import pytest

from steadyview.algebra import Bag
from steadyview.maintenance.algorithms import BATCHED, KINDS, kind_of
from steadyview.simulation import Sizes, counterexample, measured, workers
from steadyview.simulation.blueprints import Blueprint, site
from tests.conftest import SOAK

HISTORIES = 20_000 if SOAK else 6_000
"""For each algorithm, over all its scenarios; a fifth of them where only a parameter differs."""
TABLE = {
    # facts of the papers, and of measuring: single updates, source-local, global transactions
    "conventional": ("none", "none", "none"),
    "recompute": ("strong", "strong", "weak"),
    "eca": ("strong", "strong"),
    "eca-key": ("none", "none"),
    "strobe": ("strong", "convergent", "convergent"),
    "t-strobe": ("strong", "strong", "weak"),
    "g-strobe": ("strong", "strong", "strong"),
    "c-strobe": ("complete", "convergent", "convergent"),
    "c-t-strobe": ("complete", "complete", "weak"),
    "c-t-strobe:2": ("strong", "strong", "weak"),
    "sweep": ("complete", "complete", "weak"),
    "sweep-parallel": ("complete", "complete", "weak"),
    "sweep-pipelined": ("complete", "complete", "weak"),
    "sweep-whole": ("complete", "complete", "complete"),
    "nested-sweep": ("strong", "strong", "weak"),
    "nested-sweep:2": ("strong", "strong", "weak"),
    BATCHED: ("complete", "complete", "complete"),
}
CELLS = [
    (name, scenario, level)
    for name, levels in TABLE.items()
    for scenario, level in zip(("single", "source-local", "global"), levels, strict=False)
]


@pytest.fixture(scope="module")
def mapped():
    with workers(2) as mapped:
        yield mapped


@pytest.mark.slow
@pytest.mark.parametrize(("name", "scenario", "level"), CELLS)
def test_the_worst_level_seen_is_the_promised_one(name, scenario, level, mapped):
    kind = kind_of(name)
    assert kind.promises[scenario] == level
    histories = HISTORIES if name in KINDS else HISTORIES // 5
    seeds = range(1, histories // len(TABLE[name]) + 2)
    found = measured(kind, scenario, seeds, mapped=mapped)
    if found.violations:
        pytest.fail(counterexample(kind, scenario, found.violations[0][0]).text)
    assert found.unknown == 0
    assert found.worst == level
    assert found.crashed == 0 or scenario in kind.survives
    assert found.crashed > 0 or scenario not in kind.survives


def test_every_algorithm_is_in_the_table():
    assert KINDS.keys() <= TABLE.keys()
    assert all(tuple(kind_of(name).promises.values()) == TABLE[name] for name in TABLE)


def test_an_algorithm_is_said_to_hold_the_view_if_it_has_an_mv():
    place = site(Blueprint((0, 0), (0, 1), "chain", keyed=True))
    for kind in KINDS.values():
        made = kind.make and kind.make(place.positions, place.algebra, Bag(), True)
        assert hasattr(made, "MV") is kind.holds_view


@pytest.mark.parametrize("relations", [2, 5])
@pytest.mark.parametrize("name", TABLE)
def test_the_promise_is_kept_with_few_and_with_many_relations(name, relations):
    kind = kind_of(name)
    for scenario in kind.promises:
        sizes = Sizes(relations, transactions=6)
        assert measured(kind, scenario, range(100), sizes).violations == ()
