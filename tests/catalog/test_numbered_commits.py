"""The simulator's commit table numbers, dates and answers as the catalog's does."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from steadyview.catalog import Catalog
from steadyview.changes import Flush
from steadyview.errors import OutsideRetention
from steadyview.simulation.deferred.commit_numbers import NumberedCommits
from tests.catalog.clocks import SetClock

MADE = 1_000
events = st.one_of(
    st.tuples(st.just("clock"), st.integers(-30, 30)),
    st.tuples(st.just("admit"), st.integers(1, 4)),
    st.tuples(st.just("ask"), st.integers(0, 60)),
)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(happened=st.lists(events, max_size=20))
def test_the_commit_table_in_memory_is_that_of_the_catalog(happened) -> None:
    clock, memory, seq, flush = SetClock(MADE), NumberedCommits(MADE), 0, 0
    with tempfile.TemporaryDirectory() as folder, Catalog.create(Path(folder), clock) as catalog:
        catalog.sources.register("crm", "sqlite")
        for what, amount in happened:
            if what == "clock":
                clock.now += amount
            elif what == "admit":
                flush += 1
                run = catalog.commits.admit(Flush("crm", flush, seq + 1, seq + amount, "p"))
                seq += amount
                times = memory.admit(amount, clock.now)
                assert times == [run.time_from + i for i in range(amount)]
                assert memory.last_cn == run.cn_to == catalog.commits.last_cn()
            else:
                assert memory.cn_at(MADE + amount, clock.now) == asked(catalog, MADE + amount)


def asked(catalog: Catalog, time: int) -> int | None:
    try:
        return catalog.commits.cn_at(time)
    except OutsideRetention:
        return None
