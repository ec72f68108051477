"""A failing history shrinks to one in which nothing can be left out, drawn for a person."""

from __future__ import annotations

from steadyview.checking import FAILS, judge
from steadyview.maintenance.algorithms import kind_of
from steadyview.simulation import Sizes, counterexample, measured, simulated
from steadyview.simulation.diagrams import diagram
from steadyview.simulation.shrinking import _WAYS, Episode, replayed, shrunk
from tests.simulation.culprits import CULPRITS

BY_NAME = {culprit.kind.name: culprit for culprit in CULPRITS}


def first_violation(name: str):
    culprit = BY_NAME[name]
    found = measured(
        culprit.kind, culprit.scenario, range(1, culprit.within + 1), required=culprit.lost
    )
    return culprit, found.violations[0][0]


def test_nothing_can_be_left_out_of_a_shrunk_history():
    culprit, seed = first_violation("StrobeWithoutPending")
    example = counterexample(culprit.kind, culprit.scenario, seed, below=culprit.lost)
    for ways in _WAYS:
        for smaller in ways(example.episode):
            run = replayed(culprit.kind, smaller)
            assert judge(run.history).holds(culprit.lost) != FAILS


def test_a_delay_is_left_only_where_the_fault_needs_it():
    late = {}
    for name in ("BatchesTrustingTheOrder", "BatchesInOneState"):
        culprit, seed = first_violation(name)
        example = counterexample(culprit.kind, culprit.scenario, seed, below=culprit.lost)
        late[name] = sum(t.late for t in example.run.world.transactions)
        assert ("not to be seen yet" in example.text) is bool(late[name])
        assert not example.run.world.blueprint.groups
    assert late == {"BatchesTrustingTheOrder": 1, "BatchesInOneState": 0}


def test_groups_are_left_where_the_fault_needs_them():
    culprit, seed = first_violation("BatchesBeginningGroupsAnew")
    example = counterexample(culprit.kind, culprit.scenario, seed, below=culprit.lost)
    assert example.run.world.blueprint.groups


def test_a_shrunk_history_is_smaller_than_the_one_it_came_from():
    kind = kind_of("conventional")
    sizes = Sizes(relations=5, rows=3, transactions=10)
    found = measured(kind, "global", range(200), sizes, required="convergent")
    for seed, _ in found.violations[:10]:
        before = simulated(kind, "global", seed, sizes)
        after = counterexample(kind, "global", seed, below="convergent", sizes=sizes).run
        assert len(after.world.transactions) <= 3 < len(before.world.transactions) + 2
        assert len(after.trace.choices) < len(before.trace.choices)
        assert judge(after.history).level == "none"


def test_any_predicate_will_do():
    kind = kind_of("sweep")
    run = simulated(kind, "global", 7, Sizes(transactions=8))
    episode = Episode(run.world, tuple(run.trace.choices))
    small = shrunk(kind, episode, lambda r: len(r.trace.states) >= 3)
    world = replayed(kind, small).world
    assert sum(len(t.changes) for t in world.transactions) == 2
    assert len(world.blueprint.uses) == 1


def test_there_is_no_counterexample_where_the_level_holds():
    assert counterexample(kind_of("sweep"), "single", 1) is None


def test_the_recorded_history_is_the_drawn_one():
    culprit, seed = first_violation("NestedSweepAbsorbingOne")
    example = counterexample(culprit.kind, culprit.scenario, seed, below=culprit.lost)
    again = type(example.run.history).from_json(example.run.history.to_json())
    assert judge(again).level == example.verdict.level == "none"


DRAWN = """\
SELECT p0.v AS v0 FROM r1 AS p0 JOIN r2 AS p1 ON p0.b = p1.a

r1(k, a, b, v) at s1: {2(1,1,1,1)}
r2(k, a, b, v) at s2: {}

 warehouse s1     s2
     |      |      |    the view shows state 0: {}
     |      *      |    s1 executes t1: -r1(1,1,1,1)
     |      |      *    s2 executes t2: +r2(1,1,1,1)
     *<------------|    t2 arrives
     |----->|      |    asks s1, q1: {r2(1,1,1,1)} |x| r1
     |      *      |    s1 executes t3: -r1(1,1,1,1)
     *<-----|      |    t1 arrives
     *<-----|      |    t3 arrives
     |      *      |    s1 evaluates q1: {}
     *<-----|      |    the answer of q1 arrives
     |------------>|    asks s2, q2: {-r1(1,1,1,1)} |x| r2
     |      |      *    s2 evaluates q2: {-r1(1,1,1,1)r2(1,1,1,1)}
     *<------------|    the answer of q2 arrives
     *      |      |    installs state 1: {}
     |------------>|    asks s2, q3: {-r1(1,1,1,1)} |x| r2
     |      |      *    s2 evaluates q3: {-r1(1,1,1,1)r2(1,1,1,1)}
     *<------------|    the answer of q3 arrives
     *      |      |    installs state 2: {-(1)}
"""


def test_a_person_can_read_it():
    culprit, seed = first_violation("NestedSweepAbsorbingOne")
    example = counterexample(culprit.kind, culprit.scenario, seed, below=culprit.lost)
    assert "\n".join(diagram(example.run)) + "\n" == DRAWN
    assert example.text.startswith(
        f"NestedSweepAbsorbingOne, single, seed {seed}, shrunk: not convergent\n\nSELECT"
    )
    assert example.text.splitlines()[-1].startswith("none: ")
