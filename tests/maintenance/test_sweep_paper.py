"""SWEEP's own example: Agrawal et al., SIGMOD 1997, section 5.2 and Figure 5."""

from __future__ import annotations

import pytest

from steadyview.algebra import Bag
from steadyview.maintenance.bag_algebra import Answer, Keys
from tests.maintenance.cases import Case, case, relation, view
from tests.maintenance.mutants import MUTANTS
from tests.maintenance.sweeping import SOUND, reflected_states, sweep
from tests.recomputation import recomputed

R1, R2, R3 = relation("s1.r1", "ab"), relation("s2.r2", "cd"), relation("s3.r3", "ef")
V = view(
    "SELECT r2.d, r3.f FROM s1.r1, s2.r2, s3.r3 WHERE r1.b = r2.c AND r2.d = r3.e",
    [R1, R2, R3],
    [(0, 1, 1, 0), (1, 1, 2, 0)],
    ["t1.c1", "t2.c1"],
)
INITIAL = {R1: [(1, 3), (2, 3)], R2: [(3, 7)], R3: [(5, 6), (7, 8)]}
UPDATES = [[(R2, (3, 5), 1)], [(R3, (7, 8), -1)], [(R1, (2, 3), -1)]]
FIGURE_5 = [
    Bag([((7, 8), 2)]),
    Bag([((5, 6), 2), ((7, 8), 2)]),
    Bag([((5, 6), 2)]),
    Bag([((5, 6), 1)]),
]


def states(of: Case) -> list[Bag[tuple[int, int]]]:
    shown = [FIGURE_5[0]]
    changes = of.changes()
    for cn in (1, 2, 3):
        shown.append(shown[-1] + changes.get(cn, Bag()))
    return shown


def test_figure_5_recomputed_is_figure_5_printed() -> None:
    assert recomputed(case(V, INITIAL, UPDATES, []).world, V.sql) == FIGURE_5


def test_figure_5_one_update_after_the_other() -> None:
    showings = [(0, 1, {1}), (1, 2, {1, 2}), (2, 3, {1, 2, 3})]
    assert states(case(V, INITIAL, UPDATES, showings)) == FIGURE_5


def test_figure_5_with_the_three_updates_concurrent() -> None:
    """As in section 5.2: all three have arrived before the first answer is given."""
    showings = [(0, 1, {1, 2, 3}), (1, 2, {1, 2, 3}), (2, 3, {1, 2, 3})]
    assert states(case(V, INITIAL, UPDATES, showings)) == FIGURE_5


def test_figure_5_as_one_batch_shows_all_its_states() -> None:
    assert states(case(V, INITIAL, UPDATES, [(0, 3, {1, 2, 3})])) == FIGURE_5


@pytest.mark.parametrize("mask", range(8))
def test_figure_5_whatever_the_answers_reflect(mask: int) -> None:
    shown = {cn for cn in (1, 2, 3) if mask >> cn - 1 & 1}
    assert case(V, INITIAL, UPDATES, [(0, 3, shown)]).exact()
    assert case(V, INITIAL, UPDATES, [(0, 1, shown), (1, 3, shown)]).exact()


def test_the_compensation_of_section_5_2_step_by_step() -> None:
    """dR2 = +(3,5) asks R1 for 3 and gets (1,3); what dR1 took away is put back."""
    concurrent = case(V, INITIAL, UPDATES, [(0, 1, {1, 2, 3})])
    [showing] = concurrent.showings
    swept = sweep(V.definition(), concurrent.world, showing, SOUND)
    assert {(a.occurrence.number, a.keys) for a in swept.asks} == {
        (0, Keys(frozenset({3}))),
        (2, Keys(frozenset({5}))),
    }
    answered = reflected_states(concurrent.world, showing.reflected)[R1.name]
    assert Answer(answered) == Answer(Bag.of([(1, 3)]))
    bound = {rows[0] for (_, rows), _ in swept.change.rows}
    assert bound == {(1, 3), (2, 3)}


def test_without_compensation_the_concurrent_example_goes_wrong() -> None:
    concurrent = case(
        V, INITIAL, UPDATES, [(0, 1, {1, 2, 3}), (1, 2, {1, 2, 3}), (2, 3, {1, 2, 3})]
    )
    assert concurrent.exact()
    assert not concurrent.exact(MUTANTS["Uncompensated"])


def test_each_single_update_costs_n_minus_1_lookups() -> None:
    one_by_one = case(V, INITIAL, UPDATES, [(cn - 1, cn, {1, 2, 3}) for cn in (1, 2, 3)])
    for showing in one_by_one.showings:
        assert len(sweep(V.definition(), one_by_one.world, showing, SOUND).asks) == 2
