"""Update programs over live stores: strong, with managers that die, come late, live twice."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from steadyview.simulation.records import FAULTS, RECORD_WAYS, measured_levels
from steadyview.simulation.records.ways import OURS, UNSEEN
from tests.serving.live_records import LiveRecords
from tests.serving.stores import FAMILIES, place

HISTORIES = 2_000 if "STEADYVIEW_SOAK" in os.environ else 12
WAYS = [
    way
    for (view, technique), way in RECORD_WAYS.items()
    if technique in (OURS, UNSEEN) and not view.startswith("join")
]


@pytest.fixture(params=FAMILIES)
def records(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[type[LiveRecords]]:
    with place(request.param, tmp_path) as at, at.open() as store:
        store.prepare()
        yield type("Records", (LiveRecords,), {"live": store})


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
def test_records_in_a_live_store_are_strong_under_every_fault(way, records) -> None:
    kept = replace(way, store=records)
    assert measured_levels(kept, FAULTS["mixed"], range(HISTORIES)).lost == (0, 0, 0)


def test_without_a_signature_a_live_store_loses(records) -> None:
    """The run convicts here too: an addition under a new number each time is done twice."""

    class Forgetful(records):
        numbers = iter(range(10**6, 2 * 10**6))

        def _added(self, request):
            fresh = [(replace(e, number=next(self.numbers)), a) for e, a in request.additions]
            super()._added(request._replace(additions=tuple(fresh)))

    kept = replace(RECORD_WAYS["SUM", UNSEEN], store=Forgetful, reclaims=False)
    assert measured_levels(kept, FAULTS["crash"], range(10)).lost[0] > 0
