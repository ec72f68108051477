"""Every level against its definition, on small worlds where everything can be tried."""

from __future__ import annotations

from collections import Counter

import pytest

from steadyview.checking import judge
from tests.checking import brute_force
from tests.checking.small_histories import SmallHistory

SEEDS = range(3000)


@pytest.mark.parametrize("part", range(6))
def test_oracle_every_history_has_the_level_of_its_definition(part):
    for seed in SEEDS[part::6]:
        small = SmallHistory(seed)
        assert judge(small.history).level == brute_force.level(small), seed


def test_the_small_histories_are_of_every_level():
    levels = Counter(judge(SmallHistory(seed).history).level for seed in SEEDS)
    assert min(levels.values()) > len(SEEDS) // 50
    assert len(levels) == 5
