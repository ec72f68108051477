"""The simulator runs the product's own asks and statements: a fault in them is seen here too."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from steadyview.maintenance.algorithms import BATCHED, kind_of
from steadyview.simulation import blueprints, measured
from tests.plans.mutants import (
    Mutant,
    keys_of_changes_only,
    keys_that_feed_are_not_waited_for,
    null_meets_null,
    old_row_stays,
    overlap_forgotten,
)

KIND = kind_of(BATCHED)


@pytest.fixture(autouse=True)
def _plans_made_anew() -> Iterator[None]:
    blueprints._planned.cache_clear()
    yield
    blueprints._planned.cache_clear()


@pytest.mark.parametrize(
    "mutant",
    [
        keys_of_changes_only,
        keys_that_feed_are_not_waited_for,
        null_meets_null,
        old_row_stays,
        overlap_forgotten,
    ],
    ids=lambda mutant: mutant.__name__,
)
def test_a_fault_in_plans_is_a_violation_here(mutant: Mutant) -> None:
    with mutant():
        found = measured(KIND, "source-local", range(1, 301))
    assert found.violations
    blueprints._planned.cache_clear()
    assert measured(KIND, "source-local", range(1, 301)).violations == ()
