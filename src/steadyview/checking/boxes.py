"""The lowest vectors of a box at which the view shows a wanted state."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from steadyview.checking.case import Case
from steadyview.checking.commit_order import Vector, reaches
from steadyview.checking.visible import State


class Boxes:
    """The search for one state; `whole`: only vectors that show no global transaction in part."""

    def __init__(self, case: Case, wanted: State, *, whole: bool) -> None:
        self._case = case
        self._wanted = wanted
        self._whole = whole

    def lowest(self, low: Vector, high: Vector) -> Iterator[Vector]:
        """The lowest vectors from `low` to `high` that show the state, in no order."""
        case = self._case
        found: list[Vector] = []
        for vector in product(*(range(a, b + 1) for a, b in zip(low, high, strict=True))):
            case.spend()
            if self._whole and not case.order.is_whole(vector):
                continue
            if case.views.at(vector) == self._wanted and not _is_above(vector, found):
                found.append(vector)
                yield vector


def _is_above(vector: Vector, found: list[Vector]) -> bool:
    return any(reaches(vector, lower) for lower in found)
