"""Schedules: explicit ones replay, adversaries hold back, channels are first in, first out."""

from __future__ import annotations

from random import Random

import pytest

from steadyview.algebra import Bag
from steadyview.maintenance.algorithms import KINDS, kind_of
from steadyview.maintenance.bag_view_algebra import JoinedRows
from steadyview.maintenance.events import Ask, Part, Read
from steadyview.simulation import Sizes, simulated
from steadyview.simulation.blueprints import Blueprint, site
from steadyview.simulation.conflicts import hits_answer, hits_query
from steadyview.simulation.running import Run
from steadyview.simulation.schedules import Dice, Manners
from steadyview.simulation.shrinking import Episode, replayed
from steadyview.simulation.sources import Choice, Freeze, Lookup, Reply, Report
from steadyview.simulation.worlds import RowChange, World, WorldTransaction


@pytest.mark.parametrize("name", [*KINDS, "c-t-strobe:3"])
def test_a_schedule_made_explicit_replays(name):
    kind = kind_of(name)
    for scenario in kind.promises:
        for seed in range(60):
            run = simulated(kind, scenario, seed, Sizes())
            again = replayed(kind, Episode(run.world, tuple(run.trace.choices)))
            assert again.trace.states == run.trace.states
            assert again.trace.choices == run.trace.choices


def test_a_script_leaves_out_what_is_impossible_and_finishes_calmly():
    run = simulated(kind_of("sweep"), "single", 3, Sizes())
    nonsense = (Choice("deliver", "s1"), Choice("evaluate", "s9"), Choice("crash"), Choice("tick"))
    calm = replayed(kind_of("sweep"), Episode(run.world, ()))
    assert calm.trace.choices == replayed(
        kind_of("sweep"), Episode(run.world, nonsense[:2] + nonsense[3:])
    ).trace.choices
    assert {choice.what for choice in calm.trace.choices} <= {"execute", "evaluate", "deliver"}


def verbose(manners: Manners, seed: int):
    world = simulated(kind_of("sweep"), "single", seed, Sizes(transactions=8)).world
    return Run(world, kind_of("sweep"), Dice(Random(seed), manners), verbose=True).finish().events


def test_messages_of_a_source_arrive_in_the_order_in_which_they_were_sent():
    for seed in range(100):
        sent, arrived = {}, {}
        for event in verbose(Manners(), seed):
            if event.what in ("executes", "evaluates"):
                message = event.data if isinstance(event.data, Report) else event.data[1]
                sent.setdefault(event.source, []).append(message)
            if event.what == "delivers":
                arrived.setdefault(event.source, []).append(event.data)
        assert arrived == sent


def executions_meanwhile(manners: Manners) -> float:
    """How many queries are evaluated after their source executed something, of all."""
    overtaken, evaluated = 0, 0
    for seed in range(200):
        asked = {}
        for event in verbose(manners, seed):
            if event.what == "asks":
                asked[event.data.label] = event.source, 0
            elif event.what == "executes":
                asked = {q: (s, n + (s == event.source)) for q, (s, n) in asked.items()}
            elif event.what == "evaluates":
                evaluated += 1
                overtaken += asked.pop(event.data[1].label)[1] > 0
    return overtaken / evaluated


def test_an_adversary_lets_sources_go_on_before_they_evaluate():
    calm = executions_meanwhile(Manners(execute=0.3))
    assert executions_meanwhile(Manners(execute=0.3, late_queries=1)) > 2 * calm


def overtaking(manners: Manners) -> float:
    """How many updates arrive while an answer is under way, per answer."""
    overtaken, answered = 0, 0
    for seed in range(200):
        under_way = set()
        for event in verbose(manners, seed):
            if event.what == "evaluates":
                under_way.add(event.data[1].label)
                answered += 1
            elif event.what == "delivers" and isinstance(event.data, Reply):
                under_way.remove(event.data.label)
            elif event.what == "delivers":
                overtaken += len(under_way)
    return overtaken / answered


def test_an_adversary_lets_updates_overtake_an_answer():
    calm = overtaking(Manners(execute=0.3))
    assert overtaking(Manners(execute=0.3, late_answers=2)) > 1.5 * calm


CHAIN = Blueprint((0, 1), (0, 1), "chain", keyed=True)
"""r1.b = r2.a, at two sources."""
ROW = (1, 1, 1, 1)
UNLIKE = (2, 9, 9, 9)


def report(relation: int, row: tuple) -> Report:
    return Report("t", (RowChange(relation, row, 1),), 1)


def known_of_r1() -> JoinedRows:
    return site(CHAIN).algebra.seed(0, Bag([(ROW, 1)]))


def test_a_query_conflicts_with_rows_that_join_what_it_knows():
    query = Ask(1, "s2", (Part(known_of_r1(), ((1, None),)),))
    assert hits_query(site(CHAIN), query, report(1, ROW))
    assert not hits_query(site(CHAIN), query, report(1, UNLIKE))
    assert not hits_query(site(CHAIN), query, report(0, ROW))
    given = Ask(1, "s2", (Part(known_of_r1(), ((1, Bag([(ROW, 1)])),)),))
    assert not hits_query(site(CHAIN), given, report(1, ROW))


def test_reading_whole_relations_conflicts_with_every_update_of_them():
    for query in (Read(1, "s2", (1,)), Lookup(1, "s2", 1, None, frozenset())):
        assert hits_query(site(CHAIN), query, report(1, UNLIKE))
        assert not hits_query(site(CHAIN), query, report(0, UNLIKE))
    assert hits_query(site(CHAIN), Freeze(1, "s2"), report(0, UNLIKE))
    assert hits_answer(site(CHAIN), [Bag()], report(0, UNLIKE))


def test_an_answer_conflicts_with_rows_that_it_holds_or_that_join_it():
    algebra = site(CHAIN).algebra
    answer = [algebra.join(known_of_r1(), 1, Bag([(ROW, 1)]))]
    assert hits_answer(site(CHAIN), answer, report(0, ROW))
    assert not hits_answer(site(CHAIN), answer, report(0, UNLIKE))
    unfinished = [known_of_r1()]
    assert hits_answer(site(CHAIN), unfinished, report(1, ROW))
    assert not hits_answer(site(CHAIN), unfinished, report(1, UNLIKE))


def test_an_update_without_a_conflict_does_not_let_a_query_go():
    changes = [(0, ROW), (1, UNLIKE), (1, (3, 9, 9, 9)), (1, ROW), (1, (5, 9, 9, 9))]
    transactions = tuple(
        WorldTransaction(f"t{i}", (RowChange(relation, row, 1),))
        for i, (relation, row) in enumerate(changes)
    )
    world = World(CHAIN, (Bag(), Bag()), transactions)
    calm, adverse = [], []
    for seed in range(50):
        for found, manners in ((calm, Manners()), (adverse, Manners(late_queries=1))):
            dice = Dice(Random(seed), manners)
            events = Run(world, kind_of("sweep"), dice, verbose=True).finish().events
            found.append(executed_before_the_first_evaluation(events))
    assert {("t1",), ("t1", "t2")} & set(calm)
    assert {"t3" in done for done in adverse} == {True}
    assert not all("t4" in done for done in adverse)


def executed_before_the_first_evaluation(events) -> tuple[str, ...]:
    """What s2 has executed when it answers the first query, all of which are about t0."""
    first = next(e.data.label for e in events if e.what == "asks" and e.source == "s2")
    done = []
    for event in events:
        if event.what == "executes" and event.source == "s2":
            done.append(event.data.transaction)
        if event.what == "evaluates" and event.data[1].label == first:
            break
    return tuple(done)


def test_how_many_conflicts_are_waited_for_is_drawn():
    drawn = {Dice(Random(seed), Manners(late_answers=4))._late_answers for seed in range(100)}
    assert drawn == {1, 2, 3, 4}


def test_ticks_come_at_any_moment_not_only_in_the_end():
    choices = [
        simulated(kind_of("c-t-strobe:3"), "single", seed, Sizes()).trace.choices
        for seed in range(50)
    ]
    assert any(Choice("tick") in made[:-4] for made in choices)
    assert any(Choice("tick") not in made for made in choices)
