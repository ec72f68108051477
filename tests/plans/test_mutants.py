from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.plans.batches import wrong
from tests.plans.mutants import MUTANTS, Mutant
from tests.plans.nodes import FOLDS

TRIES = 4_000
RARE = {"constants_joined_stand_nowhere": 11_600}
"""Where to begin with those that few histories convict, all of blocks without a fold."""


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: m.__name__)
def test_a_wrong_reading_is_convicted(mutant: Mutant) -> None:
    with mutant():
        if mutant.__name__ in RARE:
            first = RARE[mutant.__name__]
            assert any(_convicts(seed, 1, ("none",)) for seed in range(first, first + TRIES))
        else:
            assert any(_convicts(seed, 2, FOLDS) for seed in range(TRIES))


def _convicts(seed: int, nodes: int, folds: Sequence[str]) -> bool:
    try:
        return wrong(seed, nodes, 3, folds) is not None
    except AssertionError:
        return True
