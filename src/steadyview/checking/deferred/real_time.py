"""Property 6, real time preserved.

    after a step of v to t:   A  =  the rows of {x in aff(v): commit time <= t}, each once

It implies the other five.
"""

from __future__ import annotations

from collections import Counter

from steadyview.checking.deferred.conviction import Conviction
from steadyview.checking.deferred.history import DeferredHistory
from steadyview.checking.deferred.names import REAL_TIME


def real_time(history: DeferredHistory) -> Conviction | None:
    """The first step with a row too many or too few, and whose it is."""
    for number, step in enumerate(history.steps):
        wanted = Counter(
            row
            for x in history.affecting[step.view]
            if x.commit_time <= step.target
            for row in x.rows[step.view]
        )
        found = history.applied[number]
        if found != wanted:
            row = min((wanted - found) or (found - wanted))
            owner = history.owners.get((step.view, row))
            facts = {"step": number, "view": step.view, "target": step.target, "row": row}
            whose = {
                "x": owner.id if owner else None,
                "committed": owner.commit_time if owner else None,
            }
            return Conviction(REAL_TIME, {**facts, **whose, "times": found[row]})
    return None
