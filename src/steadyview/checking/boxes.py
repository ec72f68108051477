"""The lowest, or the highest, vectors at which the view shows a wanted state, among very many.

A box are the vectors from `low` to `high`. A box is given up where its lowest vector lies above one
already found, or where the extremes of its relations prove that no vector of it shows the state
(`possible`); it is enumerated if it is small, and cut in two otherwise. So a state that is nowhere
is usually found out in a few cuts, whatever the number of vectors. Highest vectors are found in
the same way from the other end.

Only *loud* commits, those that some place of the view takes part in, need to be looked at: in a
lowest vector every source stands where it began or just behind a loud commit, or is raised from
there by a global transaction that must be seen whole.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import product
from math import prod
from typing import Final, TypeAlias

from steadyview.checking.case import Case
from steadyview.checking.commit_order import Vector, reaches
from steadyview.checking.extremes import Extremes
from steadyview.checking.visible import State

Box: TypeAlias = tuple[Vector, Vector]

_DISTANCES: Final = (2, 8, 32, 128)
_SMALL: Final = 32
"""Up to so many vectors, looking at each is cheaper than proving anything about all."""


class Boxes:
    """The search for one state; `whole`: only vectors that show no global transaction in part."""

    def __init__(self, case: Case, wanted: State, *, whole: bool) -> None:
        self._spend = case.budget.spend
        self._order = case.order
        self._views = case.views
        self._wanted = wanted
        self._whole = whole
        self._extremes = Extremes(case.views, wanted)

    def near(self, vector: Vector, *, also_below: bool = False) -> Vector | None:
        """A vector above this one that shows the state, with few commits more if that can be.

        `also_below`: anywhere, near this one if that can be. None if there is none at all.
        """
        nothing, everything = self._order.nothing, self._order.everything
        few = prod([len(commits) + 1 for commits in self._views.loud]) <= _SMALL
        for distance in () if few else _DISTANCES:
            low = self._moved(vector, -distance) if also_below else vector
            high = self._moved(vector, distance)
            found = next(self.lowest(low, high), None)
            if found or (high == everything and (low == nothing or not also_below)):
                return found
        return next(self.lowest(nothing if also_below else vector, everything), None)

    def _moved(self, vector: Vector, distance: int) -> Vector:
        """The vector so many loud commits of every source later, or earlier."""
        moved = []
        for loud, seen, most in zip(self._views.loud, vector, self._order.everything, strict=True):
            place = bisect_right(loud, seen) + distance
            moved.append(loud[place] - 1 if 0 <= place < len(loud) else most if place > 0 else 0)
        return tuple(moved)

    def lowest(self, low: Vector, high: Vector) -> Iterator[Vector]:
        """Vectors from `low` to `high` that show the state, every lowest one among them."""
        return self._search(low, high, upwards=True)

    def highest(self, low: Vector, high: Vector) -> Iterator[Vector]:
        """Vectors from `low` to `high` that show the state, every highest one among them."""
        return self._search(low, high, upwards=False)

    def _search(self, low: Vector, high: Vector, *, upwards: bool) -> Iterator[Vector]:
        found: list[Vector] = []
        waiting: list[Box] = [(low, high)]
        while waiting:
            low, high = self._tightened(*waiting.pop())
            if not reaches(high, low) or _is_beyond(low if upwards else high, found, upwards):
                continue
            loud = [self._loud(x, low[x], high[x]) for x in range(len(low))]
            if prod([len(commits) + 1 for commits in loud]) <= _SMALL:
                for vector in self._looked_at(loud, (low, high), upwards):
                    if not _is_beyond(vector, found, upwards):
                        found.append(vector)
                        yield vector
            elif self._may_show(low, high):
                halves = _halves(low, high, loud)
                waiting += halves[::-1] if upwards else halves

    def _tightened(self, low: Vector, high: Vector) -> Box:
        if not self._whole:
            return low, high
        return self._order.lowest_whole(low), self._order.highest_whole(high)

    def _loud(self, source: int, low: int, high: int) -> Sequence[int]:
        """The numbers of the source's loud commits that `high` shows and `low` does not."""
        loud = self._views.loud[source]
        return loud[bisect_right(loud, low) : bisect_right(loud, high)]

    def _looked_at(
        self, loud: Sequence[Sequence[int]], box: Box, upwards: bool
    ) -> Iterator[Vector]:
        low, high = box
        if upwards:
            nearest = self._order.lowest_whole
            stops = [[k, *commits] for k, commits in zip(low, loud, strict=True)]
        else:
            nearest = self._order.highest_whole
            before = [[n - 1 for n in reversed(commits)] for commits in loud]
            stops = [[k, *numbers] for k, numbers in zip(high, before, strict=True)]
        for vector in product(*stops):
            self._spend()
            if self._whole:
                vector = nearest(vector)
            if self._views.at(vector) == self._wanted and (
                not self._whole or (reaches(high, vector) and reaches(vector, low))
            ):
                yield vector

    def _may_show(self, low: Vector, high: Vector) -> bool:
        self._spend()
        return self._extremes.may_show(low, high)


def _halves(low: Vector, high: Vector, loud: Sequence[Sequence[int]]) -> list[Box]:
    """The box cut in two before a loud commit of the source with most, the lower half first."""
    source = max(range(len(loud)), key=lambda x: len(loud[x]))
    middle = loud[source][len(loud[source]) // 2]
    upper = (*low[:source], middle, *low[source + 1 :]), high
    lower = low, (*high[:source], middle - 1, *high[source + 1 :])
    return [lower, upper]


def _is_beyond(vector: Vector, found: Sequence[Vector], upwards: bool) -> bool:
    """Whether the vector is no lowest (or highest) one because of one that was found."""
    if upwards:
        return any(reaches(vector, lower) for lower in found)
    return any(reaches(higher, vector) for higher in found)
