from __future__ import annotations

import pytest

from tests.plans.batches import wrong
from tests.plans.mutants import MUTANTS, Mutant

TRIES = 4_000


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: m.__name__)
def test_a_wrong_reading_is_convicted(mutant: Mutant) -> None:
    with mutant():
        assert any(_convicts(seed) for seed in range(TRIES))


def _convicts(seed: int) -> bool:
    try:
        return wrong(seed, 2, 3) is not None
    except AssertionError:
        return True
