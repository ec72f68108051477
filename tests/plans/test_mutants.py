from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.plans.batches import wrong
from tests.plans.flagged import wrong_chain
from tests.plans.mutants import FLAG_MUTANTS, MUTANTS, Mutant
from tests.plans.nodes import FOLDS

TRIES = 4_000
RARE = {
    "constants_joined_stand_nowhere": 11_600,
    "keys_of_changes_only": 340,
    "keys_that_feed_are_not_waited_for": 1_000,
    "outer_side_read_from_its_partner": 3_660,
}
"""Where to begin with those that few histories convict."""
WITHOUT_FOLD = {"constants_joined_stand_nowhere"}
"""Those that only blocks without a fold convict."""


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: m.__name__)
def test_a_wrong_reading_is_convicted(mutant: Mutant) -> None:
    name = mutant.__name__
    first = RARE.get(name, 0)
    nodes, folds = (1, ("none",)) if name in WITHOUT_FOLD else (2, FOLDS)
    with mutant():
        assert any(_convicts(wrong, seed, nodes, 3, folds) for seed in range(first, first + TRIES))


@pytest.mark.parametrize("mutant", FLAG_MUTANTS, ids=lambda m: m.__name__)
def test_a_wrong_reading_of_flags_is_convicted(mutant: Mutant) -> None:
    with mutant():
        assert any(_convicts(wrong_chain, seed) for seed in range(TRIES))


def _convicts(judge: Callable[..., str | None], *case: Any) -> bool:
    try:
        return judge(*case) is not None
    except AssertionError:
        return True
