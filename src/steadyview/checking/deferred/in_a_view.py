"""Property 3, transactions applied atomically to a view.

A step applies all rows that a transaction has in the view's delta, or none of them.
"""

from __future__ import annotations

from steadyview.checking.deferred.conviction import Conviction
from steadyview.checking.deferred.history import DeferredHistory
from steadyview.checking.deferred.names import IN_A_VIEW


def in_a_view(history: DeferredHistory) -> Conviction | None:
    """The first step that takes a part of a transaction."""
    for number, step in enumerate(history.steps):
        taken = set(step.rows)
        if not taken:
            continue
        for x in history.affecting[step.view]:
            rows = x.rows[step.view]
            left = [row for row in rows if row not in taken]
            if left and len(left) < len(rows):
                facts = {"step": number, "view": step.view, "target": step.target, "x": x.id}
                part = {"applied": [row for row in rows if row in taken], "left": left}
                return Conviction(IN_A_VIEW, {**facts, **part})
    return None
