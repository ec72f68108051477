"""The batched sweep in the simulator: lookups per batch, frozen states, one state per cn."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from steadyview.algebra import Bag
from steadyview.checking import judge
from steadyview.maintenance.algorithms import BATCHED, kind_of
from steadyview.simulation import Simulated, Sizes, simulated
from steadyview.simulation.batches import Batches, KeptView
from steadyview.simulation.blueprints import BY_VALUE, OF_ALL, Blueprint
from steadyview.simulation.running import Run
from steadyview.simulation.schedules import Dice, Manners, Script
from steadyview.simulation.sources import Choice, Freeze, sources_of
from steadyview.simulation.worlds import (
    RowChange,
    World,
    WorldTransaction,
    with_late_transactions,
    world,
)

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


def frozen(seed: int, scenario: str = "source-local"):
    """Per freeze: what its source had executed before, and what of that it did not show."""
    run = simulated(KIND, scenario, seed, Sizes(transactions=8), verbose=True)
    executed: dict[str, list[str]] = {}
    for event in run.trace.events:
        if event.what == "executes":
            executed.setdefault(event.source, []).append(event.data.transaction)
        if event.what == "evaluates" and isinstance(event.data[0], Freeze):
            yield event.source, list(executed.get(event.source, [])), event.data[1].answer[0]


def test_a_frozen_state_may_show_a_later_transaction_and_not_an_earlier_one():
    prefixes = gaps = 0
    for seed in range(120):
        for _, executed, hidden in frozen(seed):
            assert hidden <= set(executed)
            shown = [name not in hidden for name in executed]
            gaps += shown != sorted(shown, reverse=True)
            prefixes += shown == sorted(shown, reverse=True)
    assert gaps > 10
    assert prefixes > gaps


def test_what_a_state_has_shown_no_later_one_hides():
    hidden_for_long = 0
    for seed in range(120):
        seen: dict[str, set[str]] = {}
        hidden_before: dict[str, frozenset[str]] = {}
        for source, executed, hidden in frozen(seed):
            assert hidden.isdisjoint(seen.setdefault(source, set()))
            seen[source] |= set(executed) - hidden
            hidden_for_long += not hidden.isdisjoint(hidden_before.get(source, frozenset()))
            hidden_before[source] = hidden
    assert hidden_for_long > 10


def test_a_row_that_is_changed_again_was_shown_by_then():
    """No frozen state lacks an insertion and shows the deletion of the same row."""
    came = WorldTransaction("t1", (RowChange(0, (1, 1, 1, 1), 1),), late=3)
    went = WorldTransaction("t2", (RowChange(0, (1, 1, 1, 1), -1),))
    (source,) = sources_of(World(chain(1), (Bag(),), (came, went)))
    source.execute()
    assert source._freeze() == {"t1"}
    assert source._frozen[0] == Bag()
    source.execute()
    assert source._freeze() == frozenset()
    assert source._frozen[0] == Bag()


def test_no_more_is_kept_than_what_no_state_has_shown(monkeypatch):
    kept: list[KeptView] = []
    recorded = Batches._recorded

    def spied(self, window):
        actions = recorded(self, window)
        kept.append(self.kept)
        for _, update in self.kept.unsettled:
            came_later = update.number > self._frozen_at[update.source]
            assert came_later or update.transaction in self._hidden[update.source]
        return actions

    monkeypatch.setattr(Batches, "_recorded", spied)
    for seed in range(200):
        simulated(KIND, "global", seed, Sizes(transactions=8))
    unsettled = sum(bool(k.unsettled) for k in kept)
    assert 20 < unsettled < len(kept) - 20


@pytest.mark.parametrize("groups", [BY_VALUE, OF_ALL])
@pytest.mark.parametrize("narrow", [True, False])
def test_groups_have_a_state_for_every_transaction_that_changes_them(groups, narrow):
    shown = 0
    for seed in range(100):
        blueprint = replace(chain(2), groups=groups, narrow=narrow)
        made = world(Random(seed), "global", Sizes(transactions=8), blueprint)
        made = with_late_transactions(made, Random(seed))
        trace = Run(made, KIND, Dice(Random(seed), Manners(execute=0.3)), crashes=0).finish()
        assert judge(Simulated(made, trace).history).level == "complete"
        shown += len(trace.states) - 1
    assert shown > 150
