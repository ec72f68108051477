"""Windows taken in one step, ranges compressed: wherever a node has a state, it is the right one.

The rules for gaps and windows, the versions and the catalog's table are the product's; the engine
is SQLite, and so is the recomputation. Batches end anywhere, every answer reflects another set,
nodes are away, crash, are built late, and are needed at every cn or not from piece to piece.
"""

from __future__ import annotations

import os

import pytest

from tests.plans.one_step import wrong

HISTORIES = int(os.environ.get("STEADYVIEW_HISTORIES", "120"))


@pytest.mark.parametrize(("nodes", "depth"), [(1, 2), (3, 1), (5, 1), (4, 2)])
def test_a_node_that_is_not_needed_at_every_cn_is_right_wherever_it_has_a_state(
    nodes: int, depth: int
) -> None:
    seen: dict[str, int] = {}
    for seed in range(HISTORIES):
        assert wrong(10_000 * nodes + seed, nodes, depth, seen) is None
    assert seen["gaps"] > HISTORIES / 4
    assert seen["states"] > HISTORIES
    assert seen.get("stopped", 0) < HISTORIES / 10


@pytest.mark.parametrize(("nodes", "depth"), [(3, 1), (5, 1), (4, 2)])
def test_a_range_that_is_compressed_is_passed_on_to_those_that_read_it_later_and_no_other_moment(
    nodes: int, depth: int
) -> None:
    seen: dict[str, int] = {}
    for seed in range(HISTORIES):
        assert wrong(20_000 * nodes + seed, nodes, depth, seen, compressing=0.3) is None
    assert seen["compressed"] > HISTORIES / 4
    assert seen["states"] > HISTORIES
    assert seen.get("stopped", 0) < HISTORIES / 10
