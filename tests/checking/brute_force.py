"""The levels by their definitions, with every order and every vector tried."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import groupby, product
from typing import Any

from tests.checking.small_histories import SmallHistory


class BruteForce:
    """Everything that can be said about a small history, by trying."""

    def __init__(self, small: SmallHistory) -> None:
        self.small = small
        self.states = [bag for bag, _ in groupby(small.history.states)]
        all_states = small.history.states
        self.numbers = [i for i, bag in enumerate(all_states) if all_states[:i][-1:] != (bag,)]
        self.commits = small.commits()

    @cached_property
    def vectors(self) -> list[Any]:
        """The view over every vector of prefixes."""
        prefixes = [[c[:k] for k in range(len(c) + 1)] for c in self.commits.values()]
        return [
            self.small.shows(dict(zip(self.commits, vector, strict=True)))
            for vector in product(*prefixes)
        ]

    @cached_property
    def chains(self) -> list[list[Any]]:
        """What a reader sees along every order of the transactions, without repetitions."""
        chains = [
            [self.small.after(order[:n]) for n in range(len(order) + 1)]
            for order in orders(self.small)
        ]
        return [[state for state, _ in groupby(chain)] for chain in chains]

    def level(self) -> str:
        """The highest level whose definition holds, and that of every level below it."""
        if self.states[-1] != self.small.shows(self.commits):
            return "none"
        if not all(state in self.vectors for state in self.states):
            return "convergent"
        if not any(is_shown_by(self.states, chain) for chain in self.chains):
            return "weak"
        return "complete" if self.states in self.chains else "strong"

    def first_broken(self) -> int | None:
        """The first state of the history that breaks the next level."""
        broken = {
            "none": lambda n: n == len(self.states) - 1,
            "convergent": lambda n: self.states[n] not in self.vectors,
            "weak": lambda n: not any(is_shown_by(self.states[: n + 1], c) for c in self.chains),
            "strong": lambda n: self.states[: n + 1] not in [c[: n + 1] for c in self.chains],
        }
        level, last = self.level(), len(self.states) - 1
        if level == "complete":
            return None
        found = (n for n in range(last + 1) if broken[level](n))
        return self.numbers[next(found, last)]


def is_shown_by(states: Sequence[Any], chain: Sequence[Any]) -> bool:
    """Whether the chain begins with the first state and passes all others, in order."""
    rest = iter(chain)
    return chain[0] == states[0] and all(any(state == found for found in rest) for state in states)


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
