"""Complete: the states are exactly what a reader sees while transactions happen one by one.

    states  =  V(v_0), V(v_1), ..., V(v_m)  without repetitions,
    v_0 = nothing, v_m = everything, v_{j+1} = v_j and one transaction more

Searched depth first over (vector, number of the state it shows), listed order first: a history
whose transactions are listed as the warehouse took them in is walked through without a detour. What
was visited once and did not lead to the end never will.

A transaction that no place of the view takes part in leaves every state as it was, and only makes
others possible: where it may come next, nothing else needs to be tried.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter

from steadyview.checking.case import Case
from steadyview.checking.commit_order import Vector
from steadyview.checking.finding import FAILS, HOLDS, Finding

Node = tuple[Vector, int]


def complete(case: Case, _begun: Sequence[Vector] = ()) -> Finding:
    """Whether some order of the transactions shows the states and nothing else."""
    states, last, everything = case.states, len(case.states) - 1, case.order.everything
    at, mute, spend = case.views.at, case.views.mute, case.budget.spend
    came_from: dict[Node, Node | None] = {}
    waiting: list[tuple[Vector, int, Node | None]] = [(case.order.nothing, 0, None)]
    while waiting:
        vector, number, parent = waiting.pop()
        spend()
        state = at(vector)
        if state != states[number]:
            # Before the first state there is nothing, so the view must begin with it.
            if number == last or parent is None or state != states[number + 1]:
                continue
            number += 1
        node = vector, number
        if node in came_from:
            continue
        came_from[node] = parent
        if vector == everything and number == last:
            way = _nodes(came_from, node)
            return Finding(HOLDS, _chain(way), path=[vector for vector, _ in way])
        steps = sorted(case.order.steps(vector), reverse=True)
        free = [step for step in steps if step[0] in mute] if mute else []
        waiting += [(after, number, node) for _, after in free[:1] or steps]
    return _failed(case, came_from)


def _nodes(came_from: dict[Node, Node | None], node: Node | None) -> list[Node]:
    """The way to the node, from the beginning."""
    way: list[Node] = []
    while node is not None:
        way.append(node)
        node = came_from[node]
    return way[::-1]


def _chain(way: Sequence[Node]) -> list[Vector]:
    """For each state the first vector on the way that shows it."""
    first: dict[int, Vector] = {}
    for vector, number in way:
        first.setdefault(number, vector)
    return list(first.values())


def _failed(case: Case, came_from: dict[Node, Node | None]) -> Finding:
    if not came_from:
        return Finding(FAILS, broken=0)
    furthest = max(came_from, key=itemgetter(1))
    broken = min(furthest[1] + 1, len(case.states) - 1)
    return Finding(FAILS, _chain(_nodes(came_from, furthest)), broken)
