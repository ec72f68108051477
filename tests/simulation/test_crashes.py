"""Crash and restart: what is lost, what is delivered again, and who claims to survive it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from steadyview.algebra import Bag
from steadyview.checking import judge
from steadyview.maintenance.algorithms import BATCHED, KINDS, kind_of
from steadyview.simulation import Simulated, Sizes, measured
from steadyview.simulation.blueprints import Blueprint
from steadyview.simulation.diagrams import diagram
from steadyview.simulation.running import Run
from steadyview.simulation.schedules import Script
from steadyview.simulation.sources import Choice
from steadyview.simulation.worlds import RowChange, World, WorldTransaction
from tests.simulation.culprits import CULPRITS

CRASH = Choice("crash")


def two_relations(*changes: tuple[int, int, int]) -> World:
    """Two relations at two sources that join; the changes are (relation, key, sign)."""
    rows = Bag([((1, 1, 1, 1), 1)])
    transactions = tuple(
        WorldTransaction(f"t{i + 1}", (RowChange(relation, (key, 1, 1, 1), sign),))
        for i, (relation, key, sign) in enumerate(changes)
    )
    return World(Blueprint((0, 1), (0, 1), "chain", keyed=True), (rows, rows), transactions)


def moved_row() -> World:
    """One transaction that deletes a row and inserts it again with another value."""
    changes = (RowChange(0, (1, 1, 1, 1), -1), RowChange(0, (1, 1, 1, 2), 1))
    return replace(two_relations(), transactions=(WorldTransaction("t1", changes),))


def script(text: str) -> list[Choice]:
    """`x1` executes, `q1` evaluates, `d1` delivers at source 1; `!` crashes."""
    words = {"x": "execute", "q": "evaluate", "d": "deliver"}
    return [CRASH if w == "!" else Choice(words[w[0]], f"s{w[1]}") for w in text.split()]


def ran(kind, world: World, text: str):
    return Run(world, kind, Script(script(text)), crashes=1, verbose=True).finish()


def delivered_again(trace) -> list[str]:
    (crash,) = [event for event in trace.events if event.what == "crashes"]
    return [update.transaction for update in crash.data.again]


def test_what_was_delivered_and_not_installed_is_delivered_again():
    world = two_relations((0, 2, 1), (1, 2, 1))
    trace = ran(kind_of("sweep"), world, "x1 d1 x2 d2 q2 !")
    assert delivered_again(trace) == ["t1", "t2"]
    assert judge(Simulated(world, trace).history).level == "complete"


def test_what_was_installed_is_not_delivered_again():
    trace = ran(kind_of("sweep"), two_relations((0, 2, 1), (1, 2, 1)), "x1 d1 q2 d2 x2 d2 !")
    assert delivered_again(trace) == ["t2"]


def test_an_answer_under_way_is_lost_and_updates_under_way_are_not():
    trace = ran(kind_of("sweep"), two_relations((0, 2, 1), (1, 2, 1)), "x1 d1 q2 x2 !")
    arrivals = [event for event in trace.events if event.what == "delivers"]
    after = [event.data for event in arrivals[1:]]
    assert [getattr(message, "transaction", "answer") for message in after][0] == "t2"


def test_a_part_that_waited_for_the_other_waits_again():
    spanning = WorldTransaction(
        "t1", (RowChange(0, (2, 1, 1, 1), 1), RowChange(1, (2, 1, 1, 1), 1))
    )
    world = World(Blueprint((0, 1), (0, 1), "chain", keyed=True), (Bag(), Bag()), (spanning,))
    for name in ("g-strobe", "sweep-whole", BATCHED):
        trace = ran(kind_of(name), world, "x1 d1 !")
        assert delivered_again(trace) == ["t1"]
        assert [len(state) for state in trace.states] == [0, 1]


def test_an_algorithm_that_claims_too_much_forgets_a_pending_transaction():
    world = two_relations((0, 2, 1), (1, 2, 1))
    (forgetful,) = [c.kind for c in CULPRITS if c.kind.name == "SweepForgettingAfterARestart"]
    text = "x1 d1 x2 d2 q2 d2 !"
    assert delivered_again(ran(kind_of("sweep"), world, text)) == ["t2"]
    trace = ran(forgetful, world, text)
    assert delivered_again(trace) == []
    assert judge(Simulated(world, trace).history).level == "none"


@pytest.mark.parametrize("name", KINDS)
def test_the_warehouse_crashes_only_where_the_algorithm_claims_to_survive(name):
    kind = kind_of(name)
    for scenario in kind.promises:
        found = measured(kind, scenario, range(200), Sizes())
        assert (found.crashed > 0) is (scenario in kind.survives)


def test_an_algorithm_survives_wherever_it_promises_anything():
    for kind in KINDS.values():
        assert kind.survives == {s for s, level in kind.promises.items() if level != "none"}


@pytest.mark.parametrize("name", ["strobe", "c-strobe"])
def test_an_install_in_the_middle_of_a_message_is_lost_with_the_process(name):
    trace = ran(kind_of(name), moved_row(), "x1 d1 !")
    assert [len(state) for state in trace.states] == [1, 0, 1]
    assert delivered_again(trace) == ["t1"]
    (crash,) = [event for event in trace.events if event.what == "crashes"]
    # the deletion was shown, the insertion was being asked for: nothing of it is durable
    assert crash.data.state == 0
    assert "crashes and starts again from state 0; delivered again: t1" in "\n".join(
        diagram(Simulated(moved_row(), trace))
    )


def test_a_state_between_whole_ones_is_durable_once_nothing_is_open():
    world = two_relations((0, 2, 1))
    lost = WorldTransaction(
        "t1", (RowChange(0, (1, 1, 1, 1), -1), RowChange(0, (1, 1, 9, 1), 1))
    )
    world = replace(world, transactions=(lost,))
    # the new row joins nothing: no install is the last of its message
    trace = ran(kind_of("strobe"), world, "x1 d1 q2 d2 !")
    assert [len(state) for state in trace.states] == [1, 0]
    assert delivered_again(trace) == []
