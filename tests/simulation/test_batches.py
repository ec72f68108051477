"""The batched sweep in the simulator: lookups per batch, frozen states, one state per cn."""

from __future__ import annotations

from random import Random

import pytest

from steadyview.checking import judge
from steadyview.maintenance.algorithms import BATCHED, kind_of
from steadyview.simulation import Simulated, Sizes, simulated
from steadyview.simulation.blueprints import Blueprint
from steadyview.simulation.running import Run
from steadyview.simulation.schedules import Script
from steadyview.simulation.sources import Choice, Freeze
from steadyview.simulation.worlds import world

KIND = kind_of(BATCHED)


def chain(n: int) -> Blueprint:
    return Blueprint(tuple(range(n)), tuple(range(n)), "chain", keyed=False)


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_a_batch_of_any_size_takes_at_most_2_times_n_minus_1_lookups(n):
    most = {}
    for seed in range(150):
        made = world(Random(seed), "source-local", Sizes(transactions=12), chain(n))
        executed = [Choice("execute", f"s{i + 1}") for i in range(n) for _ in range(12)]
        trace = Run(made, KIND, Script(executed)).finish()
        for batch in trace.swept:
            most[batch.transactions] = max(most.get(batch.transactions, 0), batch.lookups)
        assert trace.lookups == sum(batch.lookups for batch in trace.swept)
    assert max(most) >= 6
    assert max(most.values()) == 2 * (n - 1)


def test_larger_batches_take_fewer_lookups_per_update():
    def per_update(text: list[Choice]) -> float:
        lookups = updates = 0
        for seed in range(100):
            made = world(Random(seed), "single", Sizes(transactions=12), chain(3))
            trace = Run(made, KIND, Script(text)).finish()
            lookups, updates = lookups + trace.lookups, updates + trace.updates
        return lookups / updates

    alone = per_update([])
    together = per_update([Choice("execute", f"s{i}") for i in (1, 2, 3) for _ in range(12)])
    assert together < alone / 2


def test_freezes_are_messages_but_no_lookups():
    run = simulated(KIND, "single", 5, Sizes(), verbose=True)
    asked = [event.data.query for event in run.trace.events if event.what == "asks"]
    freezes = sum(isinstance(query, Freeze) for query in asked)
    assert freezes > 0
    assert run.trace.lookups == len(asked) - freezes


def test_every_transaction_of_a_batch_that_changes_the_view_has_a_state_of_its_own():
    most = 0
    for seed in range(300):
        made = world(Random(seed), "global", Sizes(transactions=8), chain(2))
        executed = [Choice("execute", f"s{i + 1}") for i in range(2) for _ in range(8)]
        trace = Run(made, KIND, Script(executed)).finish()
        assert judge(Simulated(made, trace).history).level == "complete"
        if trace.swept and len(trace.swept) <= 2:
            most = max(most, len(trace.states) - 1)
    assert most >= 4
