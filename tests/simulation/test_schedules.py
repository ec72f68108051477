"""Schedules: explicit ones replay, adversaries hold back, channels are first in, first out."""

from __future__ import annotations

from random import Random

import pytest

from steadyview.maintenance.algorithms import KINDS, kind_of
from steadyview.simulation import Sizes, simulated
from steadyview.simulation.running import Run
from steadyview.simulation.schedules import Dice, Manners
from steadyview.simulation.shrinking import Episode, replayed
from steadyview.simulation.sources import Choice, Reply, Report


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


def test_ticks_come_at_any_moment_not_only_in_the_end():
    choices = [
        simulated(kind_of("c-t-strobe:3"), "single", seed, Sizes()).trace.choices
        for seed in range(50)
    ]
    assert any(Choice("tick") in made[:-4] for made in choices)
    assert any(Choice("tick") not in made for made in choices)
