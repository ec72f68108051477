"""What promises the six properties keeps them; the rest breaks those that the paper says."""

from __future__ import annotations

import os

import pytest

from steadyview.checking.deferred import PROPERTIES
from steadyview.simulation.deferred import WAYS, Convicted, convicted, deferred, way_of
from tests.simulation.deferred.culprits import CULPRITS
from tests.simulation.deferred.recomputed import recomputed

SOAK = "STEADYVIEW_SOAK" in os.environ
HISTORIES = 2_000
CLEAN_HISTORIES = 20_000 if SOAK else HISTORIES
STATES = CLEAN_HISTORIES if SOAK else 500
HONEST = [name for name, way in WAYS.items() if way.promises]

LOST, REDUNDANT, IN_A_VIEW, ACROSS, REORDERED, REAL_TIME = PROPERTIES
BROKEN = {
    "write times": {LOST, IN_A_VIEW, ACROSS, REORDERED, REAL_TIME},
    "algorithm 1": {LOST, ACROSS, REORDERED, REAL_TIME},
    "algorithm 1, atomic": {ACROSS, REORDERED, REAL_TIME},
    "algorithm 1, atomic, two clocks": {LOST, ACROSS, REORDERED, REAL_TIME},
    "algorithm 2": set(),
    "algorithm 2, two clocks": {LOST, ACROSS, REORDERED, REAL_TIME},
    "algorithm 2, without its lock": {LOST, ACROSS, REORDERED, REAL_TIME},
    "commit numbers": set(),
    "commit numbers, one order for all": {REORDERED},
}


@pytest.mark.parametrize("name", WAYS)
def test_each_way_breaks_what_the_paper_says_and_nothing_else(name: str) -> None:
    histories = CLEAN_HISTORIES if WAYS[name].promises else HISTORIES
    found = convicted(way_of(name), range(histories))
    assert set(found.broken) == BROKEN[name]
    assert found.histories == histories
    assert found.filled > histories


@pytest.mark.parametrize("name", HONEST)
def test_every_state_is_the_view_after_what_had_committed_by_then(name: str) -> None:
    """Theorem 1, and with it that the net effect of the records is applied right."""
    states = 0
    for seed in range(STATES):
        trace = deferred(way_of(name), seed)
        for step, state in zip(trace.history.steps, trace.states, strict=True):
            assert state == recomputed(trace, step.view, step.target), (seed, step)
            states += bool(state)
    assert states > STATES


def test_a_run_is_its_seed() -> None:
    for name in WAYS:
        first, again = (deferred(way_of(name), 7) for _ in range(2))
        assert first.history == again.history


def seen(culprit) -> Convicted:
    return convicted(culprit.way, range(culprit.within))


@pytest.mark.parametrize("culprit", CULPRITS, ids=lambda culprit: culprit.way.name)
def test_a_culprit_breaks_what_it_is_accused_of_and_nothing_else(culprit) -> None:
    assert set(seen(culprit).broken) == culprit.breaks
