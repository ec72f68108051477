"""Proofs that a state is shown nowhere in a box of vectors.

Every relation of a box has two extremes, the fewest and the most of each row that any of its
versions holds. Their joins bound the view from below and above (`possible`). Of the upper one only
what can become a row of the state is joined: rows of a place whose visible columns occur in it.
"""

from __future__ import annotations

from collections.abc import Callable

from steadyview.algebra import Row
from steadyview.checking.commit_order import Vector
from steadyview.checking.compiled_view import JoinedOccurrence
from steadyview.checking.flat_rows import row_of
from steadyview.checking.view_states import ViewStates
from steadyview.checking.visible import State


class Extremes:
    """The proofs about one state."""

    def __init__(self, views: ViewStates, wanted: State) -> None:
        self._views = views
        self._wanted = wanted
        self._occurs: list[Callable[[Row], bool] | None] | None = None

    def may_show(self, low: Vector, high: Vector) -> bool:
        """False if surely no vector from `low` to `high` shows the state."""
        versions = zip(self._views.versions(low), self._views.versions(high), strict=True)
        pairs = [
            rows.extremes(first, last)
            for rows, (first, last) in zip(self._views.places, versions, strict=True)
        ]
        view = self._views.view
        least = view.joined(fewest for fewest, _ in pairs)
        most = view.joined(self._occurring(depth, rows) for depth, (_, rows) in enumerate(pairs))
        self._views.budget.spend(len(most) + sum(len(rows) for _, rows in pairs))
        return view.possible(least, most, self._wanted)

    def _occurring(self, depth: int, rows: dict[Row, int]) -> dict[Row, int]:
        if self._occurs is None:
            self._occurs = [self._test(place) for place in self._views.view.places]
        occurs = self._occurs[depth]
        return rows if occurs is None else {row: n for row, n in rows.items() if occurs(row)}

    def _test(self, place: JoinedOccurrence) -> Callable[[Row], bool] | None:
        if not place.shown:
            return None
        here, there = (row_of(positions) for positions in zip(*place.shown, strict=True))
        known = {there(row) for row in self._wanted}
        return lambda row: here(row) in known
