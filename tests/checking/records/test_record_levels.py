"""The checker of record histories: by hand, and against every vector and chain tried."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from steadyview.checking.records import RECORD_VIEWS, RecordHistory, judge_records
from steadyview.simulation.records import FAULTS, RECORD_WAYS, recorded
from steadyview.simulation.records.worlds import record_world
from tests.checking.records.brute_force import BruteForce, before
from tests.checking.records.by_sql import QUERIES, view_over

KINDS = {"UNION": "sides", "INTERSECT": "sides", "EXCEPT": "sides", "join": "join"}
ROWS = {"join": "join as printed", "MIN": "MIN as printed"}
EACH = 150
"""Histories of each of twelve classes: 1,800."""


def history(line, shown, name="key projection", key="k") -> RecordHistory:
    rows = [None if y is None else (key, "x", y) for y in line]
    return RecordHistory(RECORD_VIEWS[name], {("R", key): rows}, {key: shown})


def only(found: RecordHistory):
    (finding,) = judge_records(found).findings
    return finding


def test_a_record_that_shows_every_version_is_complete() -> None:
    found = only(history([1, 2, None], [(1,), (2,), None]))
    assert found.level == "complete"
    assert found.chain == ((0,), (1,), (2,))


def test_a_record_that_skips_a_version_is_strong() -> None:
    found = only(history([1, 2, 3], [(1,), (3,)]))
    assert found.level == "strong"
    assert found.sentence.endswith("explains all it showed; it never showed 2")


def test_a_record_that_goes_back_is_weak() -> None:
    found = only(history([5, 10, 20, 15], [(5,), (20,), (10,), (15,)]))
    assert (found.level, found.pairwise, found.at) == ("weak", False, 2)
    assert found.sentence == (
        "record k is weak: it showed 10 after 5, 20, and no base state that gives 10 is behind "
        "those that explain the values before (value 3 of 4)"
    )


def test_a_record_that_shows_what_never_was_is_convergent() -> None:
    found = only(history([1, 2], [(1,), (3,), (2,)]))
    assert (found.level, found.at) == ("convergent", 1)
    assert "it showed 3, which no base state gives (value 2 of 3)" in found.sentence


def test_a_record_with_a_wrong_end_has_no_level() -> None:
    found = only(history([1, 2], [(1,), (2,), (1,)]))
    assert found.level == "none"
    assert found.sentence == (
        "record k is not convergent: the last base state does not give 1, its end"
    )


def test_a_record_that_should_have_come_is_not_convergent() -> None:
    timelines = {("R", "k"): [None, ("k", "x", 1)]}
    assert judge_records(RecordHistory(RECORD_VIEWS["COUNT"], timelines, {})).level == "none"


def test_pairs_are_too_little_for_strong() -> None:
    """Time-line b, a, c, b: every pair of the values has its order, and all of them have none."""
    a, b, c = (1,), (2,), (3,)
    found = only(history([2, 1, 3, 2], [b, a, b, c, b]))
    assert (found.level, found.pairwise) == ("weak", True)


def test_two_records_in_a_group_are_never_complete() -> None:
    timelines = {("R", k): [None, (k, "x", n)] for n, k in enumerate("ab", 1)}
    shown = {"x": [None, (1,), (3,)]}
    assert only(RecordHistory(RECORD_VIEWS["SUM"], timelines, shown)).level == "strong"


def test_every_vector_is_a_base_state() -> None:
    """Section III-A, Friends: i1(u3, u5), d2(u3, u2), i3(u3, u1). Three there never were."""
    lines = {"f5": [None, ("f5", "u3", 5)], "f2": [("f2", "u3", 2), None]}
    lines["f1"] = [None, ("f1", "u3", 1)]
    timelines = {("R", key): line for key, line in lines.items()}
    shown = {"u3": [(1,), (3,), (2,)]}
    assert only(RecordHistory(RECORD_VIEWS["COUNT"], timelines, shown)).level == "strong"


@pytest.mark.parametrize("name", QUERIES)
def test_a_view_means_what_its_sql_says(name: str) -> None:
    random = Random(name)
    for _ in range(100):
        world = record_world(random, KINDS.get(name, "groups"))
        timelines = world.timelines()
        rows = [(base[0], random.choice(line)) for base, line in timelines.items()]
        there = [(relation, row) for relation, row in rows if row is not None]
        expected = view_over(name, frozenset(there))
        view = RECORD_VIEWS[name]
        for key in view.records(timelines):
            deciding = view.deciding(key, timelines)
            mine = [(r, row) for r, row in there if (r, row[0]) in deciding]
            assert view.value(key, mine) == expected.get(key)
        assert set(expected) <= view.records(timelines)


def disturbed(random: Random, found: RecordHistory) -> RecordHistory:
    """Some values left out, doubled, exchanged or shown under another key."""
    shown = {key: list(values) for key, values in found.shown.items()}
    for values in shown.values():
        if len(values) > 1 and random.random() < 0.4:
            i, j = random.randrange(len(values)), random.randrange(len(values))
            values[i], values[j] = values[j], values[i]
        if random.random() < 0.2:
            others = random.choice(list(shown.values()))
            values.insert(random.randrange(len(values)), random.choice(others))
    return replace(found, shown=shown)


@pytest.mark.parametrize("name", QUERIES)
def test_the_checker_says_what_trying_everything_says(name: str) -> None:
    way = RECORD_WAYS[ROWS.get(name, name if name != "MAX" else "MAX, ours"), technique(name)]
    seen: Counter = Counter()
    for seed in range(EACH):
        found = recorded(way, FAULTS["none" if seed % 2 else "mixed"], seed).history
        if seed % 3 == 0:
            found = disturbed(Random(seed), found)
        brute = BruteForce(name, found)
        verdict = judge_records(found)
        assert brute.keys() <= {finding.key for finding in verdict.findings}
        for finding in verdict.findings:
            level = brute.level(finding.key)
            seen[level] += 1
            assert finding.level in (level, "complete" if level == "strong" else level)
            assert finding.level == level or brute.is_complete(finding.key)
            if level in ("weak", "strong"):
                assert finding.pairwise == brute.pairs
            assert all(map(before, finding.chain, finding.chain[1:]))
            for vector, value in zip(finding.chain, finding.values, strict=False):
                lines = [found.timelines[base] for base in finding.bases]
                versions = zip(finding.bases, lines, vector, strict=True)
                rows = [(base[0], line[n]) for base, line, n in versions]
                there = frozenset((r, row) for r, row in rows if row is not None)
                assert view_over(name, there).get(finding.key) == value
    assert seen["strong"] > EACH / 4
    assert seen["none"] + seen["convergent"] + seen["weak"] > 5


def technique(name: str) -> str:
    return "ours" if name == "MAX" else "no TAS"
