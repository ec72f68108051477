"""Property 1, no lost updates: every row is applied in the end.

    the last step of v, to t  and  t >= every commit time   =>   A holds every row of aff(v)

A history that ends before such a step says nothing here. A row that comes later than it should is
not lost; `real_time` convicts that.
"""

from __future__ import annotations

from steadyview.checking.deferred.conviction import Conviction
from steadyview.checking.deferred.history import DeferredHistory
from steadyview.checking.deferred.names import LOST


def lost(history: DeferredHistory) -> Conviction | None:
    """The first transaction, by commit time, with a row that was never applied."""
    newest = max((x.commit_time for x in history.transactions), default=0)
    last = {step.view: number for number, step in enumerate(history.steps)}
    for view, number in last.items():
        target = history.steps[number].target
        if target < newest:
            continue
        for x in sorted(history.affecting[view], key=lambda x: x.commit_time):
            missing = [row for row in x.rows[view] if not history.applied[number][row]]
            if missing:
                facts = {"step": number, "view": view, "target": target, "rows": missing}
                return Conviction(LOST, {**facts, "x": x.id, "committed": x.commit_time})
    return None
