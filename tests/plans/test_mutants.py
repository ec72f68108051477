from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.plans.batches import wrong
from tests.plans.mutants import MUTANTS, Mutant
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
        assert any(_convicts(seed, nodes, folds) for seed in range(first, first + TRIES))


def _convicts(seed: int, nodes: int, folds: Sequence[str]) -> bool:
    try:
        return wrong(seed, nodes, 3, folds) is not None
    except AssertionError:
        return True
