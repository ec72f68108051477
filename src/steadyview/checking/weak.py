"""Weak: every state is the view over some vector, each state on its own.

A global transaction may be seen at some of its sources only.
"""

from __future__ import annotations

from collections.abc import Sequence

from steadyview.checking.boxes import Boxes
from steadyview.checking.case import Case
from steadyview.checking.commit_order import Vector
from steadyview.checking.finding import FAILS, HOLDS, Finding


def weak(case: Case, begun: Sequence[Vector]) -> Finding:
    """Whether every state has such a vector. Convergence is known, and vectors of the first."""
    last = len(case.states) - 1
    vectors = list(begun[:last])
    for number in range(len(vectors), last):
        near = vectors[-1] if vectors else case.order.nothing
        vector = Boxes(case, case.states[number], whole=False).near(near, also_below=True)
        if vector is None:
            return Finding(FAILS, vectors, number)
        vectors.append(vector)
    return Finding(HOLDS, [*vectors, case.order.everything])
