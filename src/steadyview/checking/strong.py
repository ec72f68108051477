"""Strong: the states are the view along one chain of whole vectors.

    V(v_i) = states[i],   v_0 = nothing <= v_1 <= ... <= v_last = everything

The frontier of state i are the lowest vectors at which it can be shown after the states before it.
If any chain exists, one through frontiers does: whatever lies above a vector lies above a lowest
one below it. So a state without a frontier breaks the level, and no choice is ever taken back.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from steadyview.checking.boxes import Boxes
from steadyview.checking.case import Case
from steadyview.checking.commit_order import Vector, reaches
from steadyview.checking.finding import FAILS, HOLDS, Finding


def strong(case: Case) -> Finding:
    """Whether such a chain exists. Convergence is known to hold."""
    last = len(case.states) - 1
    if case.views.at(case.order.nothing) != case.states[0]:
        return Finding(FAILS, broken=0)
    frontiers: list[Sequence[Vector]] = [[case.order.nothing]]
    for number in range(1, last):
        frontier = _frontier(case, frontiers[-1], number)
        if not frontier:
            return Finding(FAILS, broken=number, before=frontiers[-1])
        frontiers.append(frontier)
    if last:
        frontiers.append([case.order.everything])
    return Finding(HOLDS, _chain(frontiers))


def _frontier(case: Case, before: Sequence[Vector], number: int) -> Sequence[Vector]:
    boxes = Boxes(case, case.states[number], whole=True)
    found = [v for low in before for v in boxes.lowest(low, case.order.everything)]
    return _lowest_of(found) if len(before) > 1 else found


def _lowest_of(vectors: Iterable[Vector]) -> list[Vector]:
    distinct = sorted(set(vectors))
    return [v for v in distinct if not any(u != v and reaches(v, u) for u in distinct)]


def _chain(frontiers: Sequence[Sequence[Vector]]) -> list[Vector]:
    """One vector of each frontier, from the last backwards: below each there is one before."""
    chain = [frontiers[-1][0]]
    for frontier in reversed(frontiers[:-1]):
        chain.append(next(v for v in frontier if reaches(chain[-1], v)))
    return chain[::-1]
