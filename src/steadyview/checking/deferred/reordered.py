"""Property 5, no transactions reordered.

After each step, for x < y (`precedence`) that both affect the view:  y in X(A)  =>  x in X(A)
"""

from __future__ import annotations

from steadyview.checking.deferred.conviction import Conviction
from steadyview.checking.deferred.history import DeferredHistory
from steadyview.checking.deferred.names import REORDERED
from steadyview.checking.deferred.precedence import precedes


def reordered(history: DeferredHistory) -> Conviction | None:
    """The first step that shows a later transaction without an earlier one."""
    for number, step in enumerate(history.steps):
        shown = history.shown[number]
        unseen = [x for x in history.affecting[step.view] if x.id not in shown]
        for y in history.affecting[step.view] if unseen else ():
            if y.id not in shown:
                continue
            for x in unseen:
                reason = precedes(history.order, x, y)
                if reason is not None:
                    facts = {"step": number, "view": step.view, "target": step.target}
                    pair = {"x": x.id, "y": y.id, "committed": x.commit_time}
                    return Conviction(REORDERED, {**facts, **pair, **reason})
    return None
