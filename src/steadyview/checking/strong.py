"""Strong: the states are the view along one chain of whole vectors.

    V(v_i) = states[i],   v_0 = nothing <= v_1 <= ... <= v_last = everything

The chain is made upwards, for each state a low vector above the one before. Where a state has none,
the highest vectors that show it are found, then the highest below them that show the state before
it, and so on down, until

- a state has none either: then these states have no chain in any case, and the level fails;
- or the chain made so far lies below one: then it goes on from there, between the two.

No choice is taken back one by one: whatever lies below a vector that shows a state lies below a
highest one. So the answer is exact, and where it is `fails`, the state that had no vector is the
first that no chain reaches.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from steadyview.checking.boxes import Boxes
from steadyview.checking.case import Case
from steadyview.checking.commit_order import Vector, reaches
from steadyview.checking.finding import FAILS, HOLDS, Finding


def strong(case: Case, begun: Sequence[Vector]) -> Finding:
    """Whether such a chain exists. Convergence is known; `begun` is a chain of the first states."""
    if case.views.at(case.order.nothing) != case.states[0]:
        return Finding(FAILS, broken=0)
    last = len(case.states) - 1
    chain: list[Vector] = [case.order.nothing, *begun[1:last]]
    while len(chain) < last:
        number = len(chain)
        vector = _boxes(case, number).near(chain[-1])
        longer = [*chain, vector] if vector else _made_anew(case, chain)
        if longer is None:
            return Finding(FAILS, chain, number)
        chain = longer
    return Finding(HOLDS, [*chain, case.order.everything][: last + 1])


def _made_anew(case: Case, chain: Sequence[Vector]) -> list[Vector] | None:
    """A chain that is longer by one state than this one; None if there is none."""
    tops = [_highest(_boxes(case, len(chain)).highest(case.order.nothing, case.order.everything))]
    kept = len(chain)
    while tops[0]:
        if any(reaches(top, chain[kept - 1]) for top in tops[0]):
            return _between(case, chain[:kept], tops)
        kept -= 1
        boxes = _boxes(case, kept)
        below = [v for top in tops[0] for v in boxes.highest(case.order.nothing, top)]
        tops = [_highest(below), *tops]
    return None


def _between(
    case: Case, chain: Sequence[Vector], tops: Sequence[Sequence[Vector]]
) -> list[Vector]:
    """The chain continued by low vectors below the tops, one state for each of the tops."""
    longer = list(chain)
    limit = chain[-1]
    for highest in tops:
        limit = next(top for top in highest if reaches(top, limit))
        longer.append(next(_boxes(case, len(longer)).lowest(longer[-1], limit)))
    return longer


def _boxes(case: Case, number: int) -> Boxes:
    return Boxes(case, case.states[number], whole=True)


def _highest(vectors: Iterable[Vector]) -> Sequence[Vector]:
    """Those of the vectors that no other lies above."""
    distinct = sorted(set(vectors))
    return [v for v in distinct if not any(u != v and reaches(u, v) for u in distinct)]
