"""The checker convicts every culprit within the seeds stated, and none of the honest ones there."""

from __future__ import annotations

import pytest

from steadyview.checking import FAILS
from steadyview.maintenance.algorithms import kind_of
from steadyview.simulation import counterexample, measured
from tests.simulation.culprits import CULPRITS

culprits = pytest.mark.parametrize("culprit", CULPRITS, ids=lambda c: f"{c.kind.name}-{c.lost}")


@culprits
def test_a_culprit_loses_its_level_within_the_stated_seeds(culprit):
    seeds = range(1, culprit.within + 1)
    found = measured(culprit.kind, culprit.scenario, seeds, required=culprit.lost)
    assert found.violations, f"{culprit.kind.name} got away with {culprit.lost}"
    assert found.worst == culprit.left


@culprits
def test_the_honest_algorithm_keeps_the_level_that_its_culprit_loses(culprit):
    seeds = range(1, culprit.within + 1)
    found = measured(kind_of(culprit.honest), culprit.scenario, seeds, required=culprit.lost)
    assert found.violations == ()


@culprits
def test_a_culprits_counterexample_is_small_and_still_convicted(culprit):
    seeds = range(1, culprit.within + 1)
    found = measured(culprit.kind, culprit.scenario, seeds, required=culprit.lost)
    seed, _ = found.violations[0]
    example = counterexample(culprit.kind, culprit.scenario, seed, below=culprit.lost)
    assert example.verdict.holds(culprit.lost) == FAILS
    world = example.run.world
    changes = sum(len(t.changes) for t in world.transactions)
    rows = sum(count for bag in world.rows for _, count in bag)
    assert len(world.blueprint.uses) <= 3
    assert changes + rows <= 6
    assert all(len(line) <= 100 for line in example.text.splitlines())


def test_there_are_enough_culprits():
    assert len(CULPRITS) >= 12
    assert {c.kind.name for c in CULPRITS} >= {
        "EcaKeyAsPrinted",
        "SweepMergingAsPrinted",
        "NestedSweepAbsorbingOne",
        "CStrobeComparingKeys",
        "SweepForgettingAfterARestart",
    }
