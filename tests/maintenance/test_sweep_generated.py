"""Thousands of generated worlds: every dV(k) of the sweep is the recomputed one.

Sources show arbitrary sets of their transactions: earlier ones missing, later ones present, holes
between; answers hold more rows than asked for, and arrive in any order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import pytest
from hypothesis import HealthCheck, given, settings

from steadyview.views.definition import Definition
from tests.maintenance.definitions import analyzed, assembled
from tests.maintenance.mutants import MUTANTS, Mirrored
from tests.maintenance.sweeping import (
    SOUND,
    Generated,
    Sweeper,
    cases,
    chosen_case,
    swept_changes,
    true_changes,
)
from tests.worlds import Seeded, World

Define: TypeAlias = Callable[[World], Definition]

SEEDS = range(3000)
shrinking = settings(
    max_examples=600,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def exact(generated: Generated, sweeper: Sweeper = SOUND, define: Define = assembled) -> bool:
    world, showings = generated
    return swept_changes(define(world), world, showings, sweeper) == true_changes(world)


@shrinking
@given(cases())
def test_every_change_is_the_recomputed_one(generated: Generated) -> None:
    assert exact(generated, define=analyzed)


@pytest.mark.parametrize(("define", "seeds"), [(assembled, SEEDS), (analyzed, SEEDS[:1500])])
def test_every_change_is_the_recomputed_one_in_thousands_of_worlds(
    define: Define, seeds: range
) -> None:
    wrong = [seed for seed in seeds if not exact(chosen_case(Seeded(seed)), define=define)]
    assert not wrong, f"chosen_case(Seeded({wrong[0]})) and {len(wrong) - 1} more are not exact"


@pytest.mark.parametrize("name", MUTANTS)
def test_generated_worlds_convict_every_mutant(name: str) -> None:
    assert any(not exact(chosen_case(Seeded(seed)), MUTANTS[name]) for seed in SEEDS[:400])


def test_the_sum_read_from_the_other_end_is_as_exact() -> None:
    mirrored = Sweeper(algebra=Mirrored)
    assert all(exact(chosen_case(Seeded(seed)), mirrored) for seed in SEEDS[:200])
