"""The partial order of a history's transactions, and the vectors in it.

A vector says for each source how many of its commits are seen, counted from the first:

    v = (k_1, ..., k_n)    source x is seen as after the first k_x transactions that changed it

Transactions of one source are ordered, a global transaction is one element at several sources, and
nothing else is ordered. A vector is *whole* if it shows no global transaction at some of its
sources only; whole vectors are exactly the sets of transactions closed under "came before".
Invariant: with u and v, the componentwise maximum and minimum are whole too. So above every vector
there is a lowest whole one, and below it a highest.

Assumes: the transactions are listed in an order that agrees with every source's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TypeAlias

Vector: TypeAlias = tuple[int, ...]
"""How many commits of each source are seen, by source number."""


def reaches(vector: Vector, other: Vector) -> bool:
    """Whether the vector shows everything that `other` shows.

    >>> reaches((2, 1), (1, 1)), reaches((2, 0), (1, 1))
    (True, False)
    """
    return all(map(int.__ge__, vector, other))


class CommitOrder:
    """`touched[t]` are the numbers of the sources that transaction t changed, ascending."""

    def __init__(self, touched: Sequence[tuple[int, ...]], sources: int) -> None:
        self._touched = touched
        self.commits: list[list[int]] = [[] for _ in range(sources)]
        self._globals: list[tuple[tuple[int, int], ...]] = []
        for number, at in enumerate(touched):
            if len(at) > 1:
                self._globals.append(tuple((source, len(self.commits[source])) for source in at))
            for source in at:
                self.commits[source].append(number)
        self.nothing: Vector = (0,) * sources
        self.everything: Vector = tuple(map(len, self.commits))

    def between(self, low: Vector, high: Vector) -> list[int]:
        """The transactions that `high` shows, at any source, and `low` does not."""
        seen = zip(self.commits, low, high, strict=True)
        return sorted({number for commits, a, b in seen for number in commits[a:b]})

    def half_seen(self, vector: Vector) -> tuple[int, list[int], list[int]]:
        """A global transaction that the vector shows in part, where it does, where it does not."""
        for parts in self._globals:
            seen = [source for source, place in parts if vector[source] > place]
            unseen = [source for source, place in parts if vector[source] <= place]
            if seen and unseen:
                source, place = parts[0]
                return self.commits[source][place], seen, unseen
        raise ValueError(f"{vector} is whole")

    def steps(self, vector: Vector) -> Iterator[tuple[int, Vector]]:
        """Every transaction that may come next after a whole vector, and the vector after it."""
        for source, seen in enumerate(vector):
            commits = self.commits[source]
            if seen == len(commits):
                continue
            number = commits[seen]
            at = self._touched[number]
            if len(at) == 1:
                yield number, (*vector[:source], seen + 1, *vector[source + 1 :])
            elif at[0] == source and all(self._is_next(number, y, vector) for y in at):
                yield number, tuple(k + (y in at) for y, k in enumerate(vector))

    def _is_next(self, number: int, source: int, vector: Vector) -> bool:
        commits, seen = self.commits[source], vector[source]
        return seen < len(commits) and commits[seen] == number

    def lowest_whole(self, vector: Vector) -> Vector:
        """The lowest whole vector that shows at least this much."""
        if not self._globals:
            return vector
        needs = [self._needs[self.commits[x][k - 1]] for x, k in enumerate(vector) if k]
        return tuple(map(max, vector, *needs)) if needs else vector

    def highest_whole(self, vector: Vector) -> Vector:
        """The highest whole vector that shows at most this much."""
        if not self._globals:
            return vector
        return tuple(self._possible(x, vector) for x in range(len(vector)))

    def _possible(self, source: int, limit: Vector) -> int:
        """How many commits of the source can be seen without seeing anything beyond the limit."""
        commits, low, high = self.commits[source], 0, limit[source]
        while low < high:
            middle = (low + high + 1) // 2
            if reaches(limit, self._needs[commits[middle - 1]]):
                low = middle
            else:
                high = middle - 1
        return low

    @cached_property
    def _needs(self) -> list[Vector]:
        """For each transaction the lowest whole vector that shows it."""
        needs: list[Vector] = []
        latest = [self.nothing] * len(self.commits)
        seen = [0] * len(self.commits)
        for at in self._touched:
            need = list(map(max, self.nothing, *(latest[x] for x in at))) if at else []
            for x in at:
                seen[x] += 1
                need[x] = seen[x]
            for x in at:
                latest[x] = tuple(need)
            needs.append(tuple(need))
        return needs
