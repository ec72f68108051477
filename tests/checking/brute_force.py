"""The levels by their definitions, with every order and every vector tried."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, product
from typing import Any

from tests.checking.small_histories import SmallHistory


def level(small: SmallHistory) -> str:
    """The highest level whose definition holds, and that of every level below it."""
    states = [bag for bag, _ in groupby(small.history.states)]
    commits = small.commits()
    if states[-1] != small.shows(commits):
        return "none"
    prefixes = [[c[:k] for k in range(len(c) + 1)] for c in commits.values()]
    seen = [small.shows(dict(zip(commits, vector, strict=True))) for vector in product(*prefixes)]
    if not all(state in seen for state in states):
        return "convergent"
    chains = [[small.after(o[:n]) for n in range(len(o) + 1)] for o in orders(small)]
    chains = [[state for state, _ in groupby(chain)] for chain in chains]
    if states in chains:
        return "complete"
    return "strong" if any(is_shown_by(states, chain) for chain in chains) else "weak"


def is_shown_by(states: Sequence[Any], chain: Sequence[Any]) -> bool:
    """Whether the chain begins with the first state and passes all others, in order."""
    if chain[0] != states[0]:
        return False
    rest = iter(chain)
    return all(any(state == found for found in rest) for state in states)


def orders(small: SmallHistory) -> Iterator[list[int]]:
    """All orders of the transactions that agree with every source's own."""
    commits = small.commits()
    sources = [{s for s, c in commits.items() if t in c} for t in range(len(small.transactions))]

    def extended(order: list[int]) -> Iterator[list[int]]:
        if len(order) == len(sources):
            yield order
        for t in set(range(len(sources))) - set(order):
            if all(u in order for u in range(t) if sources[u] & sources[t]):
                yield from extended([*order, t])

    return extended([])
