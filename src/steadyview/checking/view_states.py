"""The view at any vector, computed when asked and remembered.

A relation changes at its own source only, so it has one state per prefix of that source's commits,
in whatever order sources are interleaved; prefixes between which it does not change are one
*version* of it. The view at a vector is a function of the versions:

    V(v)  =  visible ( rows(version_0) |x| rows(version_1) |x| ... )

and the join of the first places is shared by all vectors that agree on their versions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from operator import ne
from typing import Final, TypeAlias

from steadyview.algebra import Row
from steadyview.checking.budget import Budget
from steadyview.checking.commit_order import Vector
from steadyview.checking.compiled_view import CompiledView, Counted, Index, JoinedOccurrence
from steadyview.checking.history import History
from steadyview.checking.visible import State
from steadyview.errors import DefiniteError

Version: TypeAlias = int
_BEGINNING: Final[Sequence[Counted]] = [((), 1)]
_MOST_REMEMBERED: Final = 500_000
"""Rows kept for the next time before all are forgotten: a bound on memory, not on the answer."""


class PlaceRows:
    """The rows of one place of the view, version by version."""

    def __init__(self, place: JoinedOccurrence, history: History, commits: Sequence[int]) -> None:
        self.place = place
        self.versions: list[Version] = [0]
        self._rows = {0: place.kept(history.relations[place.relation].rows)}
        self._held = 0
        self.changes: list[dict[Row, int]] = []
        self.changed_by: set[int] = set()
        for number in commits:
            change = history.transactions[number].changes.get(place.relation)
            kept = place.kept(change) if change else None
            if kept:
                self.changes.append(kept)
                self.changed_by.add(number)
            self.versions.append(len(self.changes))
        self._indexes: dict[Version, Index] = {}

    def rows(self, version: Version) -> Mapping[Row, int]:
        """The rows that take part, with counts above zero."""
        rows = self._rows.get(version)
        if rows is None:
            known = max([v for v in self._rows if v < version])
            rows = dict(self._rows[known])
            for change in self.changes[known:version]:
                self._apply(change, rows)
            self._remember(version, rows)
        return rows

    def _remember(self, version: Version, rows: dict[Row, int]) -> None:
        self._held += len(rows)
        if self._held > _MOST_REMEMBERED:
            self._held, self._rows = len(rows), {0: self._rows[0]}
            self._indexes.clear()
        self._rows[version] = rows

    def index(self, version: Version) -> Index:
        """The same, by what they are joined on."""
        index = self._indexes.get(version)
        if index is None:
            index = self._indexes[version] = self.place.index(self.rows(version))
        return index

    def extremes(self, first: Version, last: Version) -> tuple[dict[Row, int], dict[Row, int]]:
        """The fewest and the most of every row that any version from first to last holds."""
        rows = dict(self.rows(first))
        fewest, most = dict(rows), dict(rows)
        for change in self.changes[first:last]:
            for row, count in change.items():
                now = rows[row] = rows.get(row, 0) + count
                if now > most.get(row, 0):
                    most[row] = now
                elif now < fewest.get(row, 0):
                    fewest[row] = now
        return {row: count for row, count in fewest.items() if count}, most

    def _apply(self, change: Mapping[Row, int], rows: dict[Row, int]) -> None:
        for row, count in change.items():
            after = rows.get(row, 0) + count
            if after > 0:
                rows[row] = after
            elif after == 0:
                del rows[row]
            else:
                raise DefiniteError(f'"{self.place.relation}" loses a row that it does not hold')


class ViewStates:
    """V as a function of vectors."""

    def __init__(
        self,
        view: CompiledView,
        history: History,
        source_of: Mapping[str, int],
        commits: Sequence[Sequence[int]],
        budget: Budget,
    ) -> None:
        """`source_of` relations by name; `commits`: each source's transactions, by number."""
        self.view = view
        self.budget = budget
        self._sources = len(commits)
        self.places: list[PlaceRows] = []
        self._versions: list[tuple[list[Version], int]] = []
        loud: set[int] = set()
        for place in view.places:
            source = source_of[place.relation]
            rows = PlaceRows(place, history, commits[source])
            self.places.append(rows)
            self._versions.append((rows.versions, source))
            loud |= rows.changed_by
        self.mute = set(range(len(history.transactions))) - loud
        self._states: dict[tuple[Version, ...], State] = {}
        self._joined: dict[tuple[Version, ...], Sequence[Counted]] = {(): _BEGINNING}
        self._remembered = 0

    def at(self, vector: Vector) -> State:
        """What a reader of the view over this source state sees."""
        versions = tuple(self.versions(vector))
        state = self._states.get(versions)
        if state is None:
            state = self._states[versions] = self.view.visible(self._join(versions))
        return state

    def versions(self, vector: Vector) -> list[Version]:
        """The version of every place at this vector."""
        return [versions[vector[source]] for versions, source in self._versions]

    @cached_property
    def loud(self) -> Sequence[Sequence[int]]:
        """Per source, after how many commits a place has another version than just before."""
        loud: list[set[int]] = [set() for _ in range(self._sources)]
        for versions, source in self._versions:
            changed = map(ne, versions, versions[1:])
            loud[source].update(k for k, is_new in enumerate(changed, start=1) if is_new)
        return [sorted(places) for places in loud]

    def _join(self, versions: tuple[Version, ...]) -> Sequence[Counted]:
        """The join of the first places, as many as there are versions."""
        joined = self._joined.get(versions)
        if joined is None:
            left = self._join(versions[:-1])
            rows = self.places[len(versions) - 1]
            joined = rows.place.join(left, rows.index(versions[-1])) if left else []
            self._remember(versions, joined)
        return joined

    def _remember(self, versions: tuple[Version, ...], joined: Sequence[Counted]) -> None:
        self.budget.spend(len(joined))
        self._remembered += len(joined)
        if self._remembered > _MOST_REMEMBERED:
            self._joined = {(): _BEGINNING}
            self._states.clear()
            self._remembered = len(joined)
        self._joined[versions] = joined
