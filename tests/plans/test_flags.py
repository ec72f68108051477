"""Flags in the join key leave out unchanged pairs, and nothing that the change needs.

Every construct, alone and nested, over random histories, flags always on: right at every cn.
"""

from __future__ import annotations

from contextlib import suppress

import pytest

from steadyview.errors import ViewRefused
from tests.plans.batches import wrong
from tests.plans.flagged import FlaggedGraph, wrong_chain
from tests.plans.nodes import FOLDS
from tests.plans.read_texts import case, wrong_text
from tests.plans.test_generated import HISTORIES


@pytest.mark.parametrize("fold", FOLDS)
def test_a_node_with_flags_is_right_at_every_cn(fold: str) -> None:
    for seed in range(HISTORIES):
        assert wrong(3_000_000 + seed, 1, 2, (fold,), FlaggedGraph) is None


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_nodes_over_nodes_with_flags_are_right_at_every_cn(depth: int) -> None:
    for seed in range(HISTORIES):
        assert wrong(4_000_000 + seed, 3, depth, FOLDS, FlaggedGraph) is None


def test_deep_blocks_with_flags_are_right_at_every_cn() -> None:
    for seed in range(HISTORIES * 2):
        assert wrong(5_000_000 + seed, 1, 4, ("none",), FlaggedGraph) is None


def test_joins_of_which_little_changes_are_right_at_every_cn() -> None:
    for seed in range(HISTORIES * 4):
        assert wrong_chain(seed) is None


def test_a_text_is_kept_right_with_flags() -> None:
    for tried in (case(50_000 + seed, 2) for seed in range(HISTORIES)):
        with suppress(ViewRefused):
            assert wrong_text(tried.text(), tried.seed, keeping=FlaggedGraph) is None
