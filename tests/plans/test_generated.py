"""Every construct, alone and nested, over random histories: right at every cn.

Rules, asks and versions are the product's; the engine is SQLite, and so is the recomputation, which
knows nothing of versions. Batches are cut anywhere; every answer reflects another set.
"""

from __future__ import annotations

import os

import pytest

from tests.plans.batches import wrong
from tests.plans.nodes import FOLDS

HISTORIES = int(os.environ.get("STEADYVIEW_HISTORIES", "120"))


@pytest.mark.parametrize("fold", FOLDS)
def test_a_node_over_any_block_is_right_at_every_cn(fold: str) -> None:
    for seed in range(HISTORIES):
        assert wrong(seed, 1, 2, (fold,)) is None


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_nodes_over_nodes_are_right_at_every_cn(depth: int) -> None:
    for seed in range(HISTORIES * 2):
        assert wrong(1_000_000 + seed, 4, depth) is None


def test_deep_blocks_are_right_at_every_cn() -> None:
    for seed in range(HISTORIES):
        assert wrong(2_000_000 + seed, 1, 4, ("none",)) is None
