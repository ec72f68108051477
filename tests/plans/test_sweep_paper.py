"""SWEEP's own example: Agrawal et al., SIGMOD 1997, section 5.2 and Figure 5."""

from __future__ import annotations

from functools import partial

import pytest

from steadyview.algebra import Bag
from tests.plans.cases import Case, case, relation
from tests.plans.wrong_readings import READINGS
from tests.recomputation import recomputed

R1, R2, R3 = relation("s1.r1", "ab"), relation("s2.r2", "cd"), relation("s3.r3", "ef")
SQL = "SELECT r2.d, r3.f FROM s1.r1, s2.r2, s3.r3 WHERE r1.b = r2.c AND r2.d = r3.e"
INITIAL = {R1: [(1, 3), (2, 3)], R2: [(3, 7)], R3: [(5, 6), (7, 8)]}
UPDATES = [[(R2, (3, 5), 1)], [(R3, (7, 8), -1)], [(R1, (2, 3), -1)]]
FIGURE_5 = [
    Bag([((7, 8), 2)]),
    Bag([((5, 6), 2), ((7, 8), 2)]),
    Bag([((5, 6), 2)]),
    Bag([((5, 6), 1)]),
]
CONCURRENT = [(0, 1, {1, 2, 3}), (1, 2, {1, 2, 3}), (2, 3, {1, 2, 3})]
example = partial(case, SQL, [R1, R2, R3], INITIAL, UPDATES)


def states(of: Case) -> list[Bag[tuple[int, int]]]:
    shown = [FIGURE_5[0]]
    changes = of.changes()
    for cn in (1, 2, 3):
        shown.append(shown[-1] + changes.get(cn, Bag()))
    return shown


def test_figure_5_recomputed_is_figure_5_printed() -> None:
    assert recomputed(example([]).world, SQL) == FIGURE_5


def test_figure_5_one_update_after_the_other() -> None:
    assert states(example([(0, 1, {1}), (1, 2, {1, 2}), (2, 3, {1, 2, 3})])) == FIGURE_5


def test_figure_5_with_the_three_updates_concurrent() -> None:
    """As in section 5.2: all three have arrived before the first answer is given."""
    assert states(example(CONCURRENT)) == FIGURE_5


def test_figure_5_as_one_batch_shows_all_its_states() -> None:
    assert states(example([(0, 3, {1, 2, 3})])) == FIGURE_5


@pytest.mark.parametrize("mask", range(8))
def test_figure_5_whatever_the_answers_reflect(mask: int) -> None:
    shown = {cn for cn in (1, 2, 3) if mask >> cn - 1 & 1}
    assert example([(0, 3, shown)]).exact()
    assert example([(0, 1, shown), (1, 3, shown)]).exact()


def test_the_compensation_of_section_5_2_step_by_step() -> None:
    """dR2 = +(3,5) asks R1 for 3 and gets (1,3); what dR1 took away is put back."""
    (first, *_) = example(CONCURRENT).batches()
    assert {(w.relation, *w.keys) for w in first.lookups} == {(0, 3), (2, 5)}
    assert first.moved.changes == {1: Bag([((5, 6), 2)])}


def test_without_compensation_the_concurrent_example_goes_wrong() -> None:
    assert example(CONCURRENT).exact()
    assert not example(CONCURRENT).exact(READINGS["uncompensated"])


def test_each_single_update_costs_n_minus_1_lookups() -> None:
    assert [len(batch.lookups) for batch in example(CONCURRENT).batches()] == [2, 2, 2]
