"""Beyer et al., section 6: Debits, Credits and TotalCredits combined by valid times, as printed.

A valid time goes from a table's last change to its first change not reflected; tables whose valid
times overlap may be combined. Whether the last change is dated by its update or by its commit
decides whether the rewritten query shows a debit without its credit. Figure 3 is not in our text of
the paper; the workload is the one that gives both printed tables:

    t1  x adds a debit of 1        t3  the refresh of TotalCredits writes    t5  x adds its credit
    t2  the refresh begins         t4  it commits                            t6  x commits
"""

from __future__ import annotations

import pytest

from steadyview.checking.deferred import (
    ApplyStep,
    DeferredHistory,
    DeferredTransaction,
    convictions,
)

EVER = 99
UPDATED = {"Debits": 1, "TotalCredits": 3, "Credits": 5}
COMMITTED = {"Debits": 6, "TotalCredits": 4, "Credits": 6}
X = DeferredTransaction("x", 1, 6, 6, {"Debits": (1,), "TotalCredits": (2,)})
"""Its debit, and its row in the delta of TotalCredits."""


def valid_times(starts: dict[str, int]) -> dict[str, tuple[int, int]]:
    """Base tables are valid for ever; TotalCredits until Credits changed under it."""
    ends = {"Debits": EVER, "Credits": EVER, "TotalCredits": UPDATED["Credits"]}
    return {table: (start, ends[table]) for table, start in starts.items()}


def overlap(times: dict[str, tuple[int, int]], *tables: str) -> tuple[int, int] | None:
    start, end = max(times[t][0] for t in tables), min(times[t][1] for t in tables)
    return (start, end) if start < end else None


def test_the_printed_valid_times_by_update() -> None:
    times = valid_times(UPDATED)
    assert times == {"Debits": (1, EVER), "Credits": (5, EVER), "TotalCredits": (3, 5)}
    assert overlap(times, "Debits", "TotalCredits") == (3, 5)


def test_the_printed_valid_times_by_commit() -> None:
    times = valid_times(COMMITTED)
    assert times == {"Debits": (6, EVER), "Credits": (6, EVER), "TotalCredits": (4, 5)}
    assert overlap(times, "Debits", "TotalCredits") is None
    assert overlap(times, "Debits", "Credits") == (6, EVER)


@pytest.mark.parametrize("time", range(*overlap(valid_times(UPDATED), "Debits", "TotalCredits")))
def test_what_update_times_combine_shows_a_debit_without_its_credit(time: int) -> None:
    """The rewritten query takes Debits with x and TotalCredits without it for the same moment."""
    taken = [ApplyStep("Debits", time, (1,)), ApplyStep("TotalCredits", time, ())]
    found = {c.breaks: c.sentence for c in convictions(DeferredHistory([X], taken))}
    assert found["not atomic across views"] == (
        f"x has rows of both, and Debits shows it at {time} but TotalCredits does not at {time}"
    )


@pytest.mark.parametrize(("time", "rows"), [(4, ((), ())), (6, ((1,), (2,)))])
def test_what_commit_times_combine_is_consistent(time: int, rows) -> None:
    taken = [ApplyStep("Debits", time, rows[0]), ApplyStep("TotalCredits", time, rows[1])]
    assert convictions(DeferredHistory([X], taken)) == ()
