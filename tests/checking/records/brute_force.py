"""The levels of section III by their definitions: every vector, every chain, every pair."""

from __future__ import annotations

from itertools import combinations_with_replacement, groupby, product

from tests.checking.records.by_sql import view_over


class BruteForce:
    """One history of a view by its name."""

    def __init__(self, name: str, history) -> None:
        self.history = history
        bases = list(history.timelines)
        lines = [list(enumerate(history.timelines[base])) for base in bases]
        self.views = {}
        for vector in product(*lines):
            there = zip(bases, vector, strict=True)
            rows = frozenset((base[0], row) for base, (_, row) in there if row is not None)
            self.views[tuple(version for version, _ in vector)] = view_over(name, rows)

    def keys(self):
        return {key for view in self.views.values() for key in view} | set(self.history.shown)

    def level(self, key) -> str:
        """The level of one record, `strong` at most."""
        values = [value for value, _ in groupby(self.history.shown.get(key, [None]))]
        if self.views[max(self.views)].get(key) != values[-1]:
            return "none"
        fitting = [{v for v, view in self.views.items() if view.get(key) == x} for x in values]
        if not all(fitting):
            return "convergent"
        self.pairs = all(
            any(before(v, w) for v in fitting[i] for w in fitting[j])
            for i, j in combinations_with_replacement(range(len(values)), 2)
        )
        ends = fitting[0]
        for vectors in fitting[1:]:
            ends = {w for w in vectors if any(before(v, w) for v in ends)}
        return "strong" if ends else "weak"

    def is_complete(self, key) -> bool:
        """Whether the values of all vectors were shown."""
        return {view.get(key) for view in self.views.values()} <= set(
            self.history.shown.get(key, [None])
        )


def before(v, w) -> bool:
    return all(a <= b for a, b in zip(v, w, strict=True))
