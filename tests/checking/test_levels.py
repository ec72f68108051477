"""Every level against its definition, on small worlds where everything can be tried."""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise, product
from math import prod

import pytest

from steadyview.algebra import Bag
from steadyview.checking import (
    HOLDS,
    LEVELS,
    UNKNOWN,
    History,
    Relation,
    Transaction,
    boxes,
    judge,
)
from steadyview.checking.commit_order import reaches
from tests.checking.brute_force import BruteForce
from tests.checking.small_histories import COUNTING, VIEWS, SmallHistory

SEEDS = range(3000)
PARTS = [range(part, 3000, 6) for part in range(6)]


@pytest.mark.parametrize("seeds", PARTS, ids=str)
def test_oracle_every_history_has_the_level_of_its_definition(seeds):
    for seed in seeds:
        small = SmallHistory(seed)
        truth, verdict = BruteForce(small), judge(small.history)
        assert verdict.level == truth.level(), seed
        reached = LEVELS.index(verdict.level)
        answers = [verdict.holds(level) for level in LEVELS]
        assert answers == ["holds"] * (reached + 1) + ["fails"] * (4 - reached), seed


@pytest.mark.parametrize("seeds", [range(s, s + 300) for s in range(0, 900, 300)], ids=str)
def test_oracle_also_where_very_different_vectors_look_alike(seeds):
    for seed in seeds:
        small = SmallHistory(seed, transactions=(3, 6), views=COUNTING)
        truth, verdict = BruteForce(small), judge(small.history)
        assert verdict.level == truth.level(), seed
        assert (verdict.breaks and verdict.breaks.state) == truth.first_broken(), seed
        check_witness(small, verdict)


def sized(sizes, counts):
    """COUNT(*) over the product of relations, each alone at its source, of these sizes."""
    relations = {
        name: Relation(name, ("a",), Bag([((0,), numbers[0])])) for name, numbers in sizes.items()
    }
    transactions = [
        Transaction(f"{name}.{i}", {name: Bag([((0,), new - old)])})
        for name, numbers in sizes.items()
        for i, (old, new) in enumerate(pairwise(numbers))
    ]
    view = f"SELECT COUNT(*) AS n FROM {', '.join(sizes)}"
    return History(view, relations, transactions, [Bag.of([(n,)]) for n in counts])


def test_oracle_a_chain_is_found_if_there_is_one_however_many_lead_nowhere():
    choose, levels = random.Random(5), Counter()
    for _ in range(1500):
        # Five different sizes, so that every transaction changes something.
        sizes = {f"r{i}": choose.sample(range(1, 8), 5) for i in range(3)}
        vectors = list(product(range(5), repeat=3))
        count = {v: prod(s[k] for s, k in zip(sizes.values(), v, strict=True)) for v in vectors}
        middle = [count[choose.choice(vectors)] for _ in range(choose.randint(2, 4))]
        counts = [count[0, 0, 0], *middle, count[4, 4, 4]]
        reached = {(0, 0, 0)}
        for n in counts[1:-1]:
            reached = {
                v for v in vectors if count[v] == n and any(reaches(v, u) for u in reached)
            }
        verdict = judge(sized(sizes, counts))
        levels[verdict.level] += 1
        assert (verdict.holds("strong") == HOLDS) == bool(reached)
        chain = [tuple(entry["vector"].values()) for entry in verdict.witness["chain"]]
        assert [count[v] for v in chain] == counts
        assert verdict.level == "weak" or all(reaches(v, u) for u, v in pairwise(chain))
    assert min(levels["weak"], levels["strong"]) > 300


def test_a_chain_is_made_anew_where_the_first_that_offered_itself_leads_nowhere():
    # 6 is 2 x 3 after one commit of r1, or 3 x 2 after two of r0; but 12 is 6 x 2 only.
    verdict = judge(sized({"r0": [2, 5, 3, 6], "r1": [2, 3]}, [4, 6, 12, 18]))
    assert verdict.level == "strong"
    vectors = [tuple(entry["vector"].values()) for entry in verdict.witness["chain"]]
    assert vectors == [(0, 0), (2, 0), (3, 0), (3, 1)]


def test_oracle_the_level_is_the_same_where_boxes_are_cut_down_to_single_vectors(monkeypatch):
    monkeypatch.setattr(boxes, "_SMALL", 1)
    monkeypatch.setattr(boxes, "_DISTANCES", (1,))
    for seed in range(3000, 4000):
        views = COUNTING if seed % 2 else VIEWS
        small = SmallHistory(seed, transactions=(3, 6), views=views)
        assert judge(small.history).level == BruteForce(small).level(), seed


@pytest.mark.parametrize("seeds", PARTS[:3], ids=str)
def test_oracle_the_state_that_breaks_the_next_level_is_the_first_that_does(seeds):
    for seed in seeds:
        small = SmallHistory(seed)
        breaks = judge(small.history).breaks
        assert (breaks and breaks.state) == BruteForce(small).first_broken(), seed


def test_the_small_histories_are_of_every_level_and_break_in_every_way():
    verdicts = [judge(SmallHistory(seed).history) for seed in SEEDS]
    levels = Counter(verdict.level for verdict in verdicts)
    assert len(levels) == 5
    assert min(levels.values()) > len(SEEDS) // 50
    kinds = {verdict.breaks.kind for verdict in verdicts if verdict.breaks}
    assert kinds == {
        *("different", "skipped", "part", "nowhere", "beginning", "half", "backwards", "unshown")
    }


@pytest.mark.parametrize("seeds", PARTS, ids=str)
def test_the_witness_proves_the_level_by_itself(seeds):
    for seed in seeds:
        small = SmallHistory(seed)
        check_witness(small, judge(small.history))


def check_witness(small, verdict):
    chain = verdict.witness["chain"]
    for entry in chain:
        assert shown_at(small, entry["vector"]) == small.history.states[entry["state"]]
    if verdict.level == "none":
        assert chain == []
    elif verdict.level == "convergent":
        assert [entry["state"] for entry in chain] == [len(small.states) - 1]
    else:
        assert [entry["state"] for entry in chain] == list(range(len(small.states)))
    if verdict.level in ("strong", "complete"):
        check_chain(small, [entry["vector"] for entry in chain])
    if verdict.level == "complete":
        check_order(small, verdict.witness["order"])


def shown_at(small, vector):
    return small.shows({source: c[: vector[source]] for source, c in small.commits().items()})


def check_chain(small, vectors):
    commits = small.commits()
    assert small.history.states[0] == small.after([])
    assert shown_at(small, vectors[-1]) == small.shows(commits)
    for low, high in pairwise(vectors):
        assert all(low[source] <= high[source] for source in commits)
    for vector in vectors:
        for t in range(len(small.transactions)):
            seen = {c.index(t) < vector[source] for source, c in commits.items() if t in c}
            assert len(seen) <= 1, "a global transaction is seen in part"


def check_order(small, order):
    numbers = [int(name.removeprefix("t")) for name in order]
    for commits in small.commits().values():
        places = [numbers.index(t) for t in commits]
        assert places == sorted(places)
    seen = [small.after(numbers[:n]) for n in range(len(numbers) + 1)]
    assert without_repetitions(seen) == without_repetitions(small.history.states)


def without_repetitions(states):
    return [state for i, state in enumerate(states) if i == 0 or states[i - 1] != state]


def test_a_search_that_is_cut_off_never_says_more_than_it_knows():
    unknowns = 0
    for seed in range(0, 3000, 10):
        small = SmallHistory(seed)
        truth = LEVELS.index(judge(small.history).level)
        for budget in (0, 50, 100, 200, 400, 800):
            verdict = judge(small.history, budget)
            for level in LEVELS[1:]:
                answer = verdict.holds(level)
                unknowns += answer == UNKNOWN
                assert answer in (UNKNOWN, "holds" if LEVELS.index(level) <= truth else "fails")
            assert verdict.holds(verdict.level) == HOLDS
            assert verdict.sentence
    assert unknowns > 100


def test_a_cut_off_search_says_so():
    small = next(s for s in map(SmallHistory, SEEDS) if BruteForce(s).level() == "strong")
    verdict = judge(small.history, budget=0)
    assert verdict.level == "convergent"
    assert verdict.holds("weak") == verdict.holds("complete") == UNKNOWN
    assert verdict.sentence.endswith("whether it is weak is unknown: the search was cut off")
    assert verdict.to_dict()["witness"]["breaks"]["kind"] == UNKNOWN
