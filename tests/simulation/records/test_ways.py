"""What promises a level reaches it under every fault; each technique left out is convicted."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from steadyview.checking import LEVELS
from steadyview.checking.records import judge_records
from steadyview.simulation.records import FAULTS, RECORD_WAYS, measured_levels, recorded
from steadyview.simulation.records.faults import (
    AT_ONCE,
    LAG,
    REGISTRY_FIRST,
    REPARTITIONED,
    RESTORED,
    STALE_MANAGERS,
)
from steadyview.simulation.records.shrinking import shrunk
from steadyview.simulation.records.ways import ANY, BASE_KEY, OURS, UNSEEN
from tests.simulation.records.culprits import BY_SCRIPT, CULPRITS

HISTORIES = 10_000 if "STEADYVIEW_SOAK" in os.environ else 300
STRONG = [way for way in RECORD_WAYS.values() if way.is_strong]
PRODUCT = [way for way in STRONG if way.technique in (OURS, UNSEEN)]
EDGES = (LAG, REPARTITIONED, STALE_MANAGERS)


def named(value) -> str:
    return value.name


@pytest.mark.parametrize("fault", FAULTS.values(), ids=named)
@pytest.mark.parametrize("way", STRONG, ids=named)
def test_what_promises_strong_is_strong_under_every_fault(way, fault) -> None:
    assert measured_levels(way, fault, range(HISTORIES)).lost == (0, 0, 0)


@pytest.mark.parametrize("fault", EDGES, ids=named)
@pytest.mark.parametrize("way", PRODUCT, ids=named)
def test_ours_is_strong_with_reads_that_lag_and_streams_that_are_cut_anew(way, fault) -> None:
    assert measured_levels(way, fault, range(HISTORIES)).lost == (0, 0, 0)


@pytest.mark.parametrize("way", PRODUCT, ids=named)
def test_ours_is_strong_with_entries_together_and_several_at_once(way) -> None:
    together = 3 if way.additive is not None else 1
    for changed in (replace(way, at_once=3), replace(way, together=together)):
        assert measured_levels(changed, FAULTS["mixed"], range(HISTORIES)).lost == (0, 0, 0)


@pytest.mark.parametrize("how", [AT_ONCE, REGISTRY_FIRST])
@pytest.mark.parametrize("way", PRODUCT, ids=named)
def test_a_store_that_lost_its_last_writes_or_was_restored_is_right_in_the_end(way, how) -> None:
    found = measured_levels(way, replace(RESTORED, restored=how), range(HISTORIES))
    assert found.lost[0] == 0


@pytest.mark.parametrize("fault", FAULTS.values(), ids=named)
def test_a_guarded_upsert_of_one_base_record_shows_every_version(fault) -> None:
    for way in RECORD_WAYS.values():
        if way.promises == "complete":
            assert measured_levels(way, fault, range(HISTORIES)).reached == {"complete": HISTORIES}


@pytest.mark.parametrize("lanes", [ANY, BASE_KEY])
def test_a_guarded_upsert_needs_no_flow_rule(lanes) -> None:
    """So does a post-image per record with its cn: any tasks, in any order, any number of times."""
    way = replace(RECORD_WAYS["key projection", OURS], lanes=lanes)
    assert measured_levels(way, FAULTS["mixed"], range(HISTORIES)).lost == (0, 0, 0)


def test_theorem_1_holds_as_printed_where_nothing_fails() -> None:
    for view in ("COUNT", "projection", "UNION", "INTERSECT", "EXCEPT"):
        way = RECORD_WAYS[view, "signature"]
        assert measured_levels(way, FAULTS["none"], range(HISTORIES)).lost == (0, 0, 0)


@pytest.mark.parametrize("culprit", [c for c in CULPRITS if c.within != BY_SCRIPT], ids=named)
def test_a_culprit_is_convicted(culprit) -> None:
    wanted = LEVELS.index(culprit.loses)
    verdicts = (
        judge_records(recorded(culprit.way, culprit.fault, seed).history)
        for seed in range(culprit.within)
    )
    assert any(LEVELS.index(verdict.level) < wanted for verdict in verdicts)


def test_a_run_is_its_seed() -> None:
    for way in RECORD_WAYS.values():
        first, again = (recorded(way, FAULTS["mixed"], 7) for _ in range(2))
        assert first.history.shown == again.history.shown
        assert first.requests == again.requests


def test_runs_are_of_some_length_and_managers_do_meet() -> None:
    traces = [recorded(RECORD_WAYS["SUM", OURS], FAULTS["mixed"], seed) for seed in range(200)]
    assert sum(trace.contentions for trace in traces) > 100
    assert sum(len(trace.world.changes) for trace in traces) > 600


def test_a_failing_history_is_made_small_and_still_fails() -> None:
    way = RECORD_WAYS["MIN reference counts as printed", "signature"]
    seed = measured_levels(way, FAULTS["none"], range(100)).first["none"]
    small = shrunk(way, FAULTS["none"], seed, lost="convergent")
    assert small.verdict.level == "none"
    assert sum(line.startswith("base:") for line in small.story) <= 3
    assert small.text.endswith(small.verdict.sentence)
