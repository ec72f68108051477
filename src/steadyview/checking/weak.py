"""Weak: every state is the view over some vector, each state on its own.

A global transaction may be seen at some of its sources only.
"""

from __future__ import annotations

from steadyview.checking.boxes import Boxes
from steadyview.checking.case import Case
from steadyview.checking.commit_order import Vector
from steadyview.checking.finding import FAILS, HOLDS, Finding


def weak(case: Case) -> Finding:
    """Whether every state has such a vector. Convergence is known to hold."""
    vectors: list[Vector] = []
    for number, state in enumerate(case.states[:-1]):
        boxes = Boxes(case, state, whole=False)
        vector = next(boxes.lowest(case.order.nothing, case.order.everything), None)
        if vector is None:
            return Finding(FAILS, broken=number)
        vectors.append(vector)
    return Finding(HOLDS, [*vectors, case.order.everything])
