"""Property 2, no redundant updates: A(i) holds no row twice."""

from __future__ import annotations

from steadyview.checking.deferred.conviction import Conviction
from steadyview.checking.deferred.history import DeferredHistory
from steadyview.checking.deferred.names import REDUNDANT


def redundant(history: DeferredHistory) -> Conviction | None:
    """The first row that is applied again, and by which steps."""
    for number, step in enumerate(history.steps):
        for row, times in history.applied[number].items():
            if times > 1:
                by = [
                    s.target
                    for s in history.steps[: number + 1]
                    if s.view == step.view
                    for again in s.rows
                    if again == row
                ]
                facts = {"step": number, "view": step.view, "target": step.target, "row": row}
                return Conviction(REDUNDANT, {**facts, "times": times, "by": by})
    return None
