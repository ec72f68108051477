"""Messages per update: Table 1 of Agrawal et al. 1997, C-Strobe's bound of Zhuge et al. 1996."""

from __future__ import annotations

import pytest

from examples.papers.adversary import Attack, alternating, c_strobe_attacked
from examples.papers.messages import RATES, SIZES, batched_lookups, eca_terms, our_bound
from examples.papers.messages import printed_bound as printed
from examples.papers.stream import Counts, streamed
from steadyview.maintenance.algorithms import kind_of

UPDATES = 40


def stream(algorithm: str, n: int, rate: float) -> Counts:
    return streamed(kind_of(algorithm), n, rate, UPDATES, seed=n)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("rate", RATES)
class TestStreams:
    @pytest.mark.parametrize("way", ["sweep", "sweep-parallel", "sweep-pipelined", "sweep-whole"])
    def test_sweep_asks_n_minus_1_times_and_shows_every_update(self, way, n, rate) -> None:
        counts = stream(way, n, rate)
        assert counts.lookups == (n - 1) * counts.updates
        assert counts.installs == counts.updates == UPDATES

    @pytest.mark.parametrize("name", ["strobe", "t-strobe", "g-strobe"])
    def test_strobe_asks_n_minus_1_times_per_insertion_only(self, name, n, rate) -> None:
        counts = stream(name, n, rate)
        assert counts.lookups == (n - 1) * counts.insertions

    def test_eca_asks_once(self, n, rate) -> None:
        assert stream("eca", n, rate).lookups == UPDATES

    def test_nested_sweep_asks_no_more_than_sweep(self, n, rate) -> None:
        assert stream("nested-sweep", n, rate).lookups <= (n - 1) * UPDATES

    def test_nested_sweep_that_must_end_asks_no_more_than_sweep(self, n, rate) -> None:
        counts = stream("nested-sweep:3", n, rate)
        assert counts.lookups <= (n - 1) * UPDATES

    def test_the_batched_sweep_shows_every_update_and_asks_no_more_than_sweep(self, n, rate):
        counts = stream("batched-sweep", n, rate)
        assert counts.lookups <= (n - 1) * UPDATES
        assert counts.installs == UPDATES


@pytest.mark.parametrize("n", [2, 3, 4, 5])
@pytest.mark.parametrize("rate", RATES)
def test_c_strobe_stays_below_our_bound(n: int, rate: float) -> None:
    counts = stream("c-strobe", n, rate)
    assert counts.compensating <= our_bound(n)
    assert counts.installs == UPDATES


@pytest.mark.parametrize(("n", "print_says", "reached"), [(3, 2, 2), (4, 6, 9), (5, 24, 40)])
def test_c_strobe_reaches_our_bound_which_exceeds_the_print(n, print_says, reached) -> None:
    assert (printed(n), our_bound(n)) == (print_says, reached)
    assert c_strobe_attacked(n).queries == reached


def test_the_size_of_eca_queries_is_quadratic_for_four_relations_and_worse_for_more() -> None:
    def growth(n: int) -> float:
        return eca_terms(n, 24) / eca_terms(n, 12)

    assert growth(2) == 1
    assert growth(3) < 2.1 < growth(4) < 4.1 < growth(5) < growth(6)


@pytest.mark.parametrize("n", SIZES)
def test_a_batch_costs_at_most_2_n_minus_1_lookups(n: int) -> None:
    for size in (1, 2, 8, 32):
        assert batched_lookups(n, size, batches=5) <= 2 * (n - 1) / size
    assert batched_lookups(n, 64, batches=5) == 2 * (n - 1) / 64
    assert batched_lookups(n, 1, batches=5) == n - 1


def test_recomputation_reads_every_source_once_a_round() -> None:
    attack = Attack("recompute", 4)
    attack.update(0)
    while attack.waiting:
        attack.answer()
    assert (attack.lookups, len(attack.installs)) == (4, 1)


@pytest.mark.parametrize("n", [2, 3, 4])
def test_nested_sweep_recurses_without_end_while_two_sources_interfere(n: int) -> None:
    found = alternating("nested-sweep", n, 100)
    assert found.installs_meanwhile == 0
    assert (found.installs, found.depth) == (1, 100)


@pytest.mark.parametrize("n", [2, 3, 4])
@pytest.mark.parametrize("most", [1, 3, 10])
def test_nested_sweep_is_forced_to_end(n: int, most: int) -> None:
    found = alternating(f"nested-sweep:{most}", n, 100)
    assert found.installs_meanwhile >= 100 // most - 2
    assert found.depth <= most
    assert found.lookups <= (n - 1) * 100


def test_the_recursion_of_nested_sweep_is_not_that_of_python() -> None:
    assert alternating("nested-sweep", 3, 1_500).depth == 1_500
