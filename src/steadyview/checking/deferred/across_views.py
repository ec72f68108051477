"""Property 4, transactions applied atomically across views.

For a step of v to t and a step of w to u, and the transactions C that affect both views,

    t = u   =>   X(A(v)) and X(A(w)) are the same within C
    t < u   =>   X(A(v)) is a subset of X(A(w)) within C
"""

from __future__ import annotations

from collections.abc import Iterator

from steadyview.checking.deferred.conviction import Conviction
from steadyview.checking.deferred.history import DeferredHistory, DeferredTransaction
from steadyview.checking.deferred.names import ACROSS_VIEWS


def across_views(history: DeferredHistory) -> Conviction | None:
    """Two steps and a transaction that the one to the earlier time shows, and the other not."""
    for early, late in _pairs(history):
        x = _only_in(history, early, late)
        if x is not None:
            first, second = history.steps[early], history.steps[late]
            here = {"step": early, "view": first.view, "target": first.target, "x": x.id}
            there = {"other": late, "other_view": second.view, "other_target": second.target}
            return Conviction(ACROSS_VIEWS, {**here, **there})
    return None


def _pairs(history: DeferredHistory) -> Iterator[tuple[int, int]]:
    """Steps of different views, the target of the first not after that of the second."""
    for early, first in enumerate(history.steps):
        for late, second in enumerate(history.steps):
            if first.view != second.view and first.target <= second.target:
                yield early, late


def _only_in(history: DeferredHistory, here: int, there: int) -> DeferredTransaction | None:
    """A transaction that affects both views and is shown after the first step alone."""
    view, other = history.steps[here].view, history.steps[there].view
    only = history.shown[here] - history.shown[there]
    common = (x for x in history.affecting[view] if x.id in only and x.rows.get(other))
    return next(common, None)
