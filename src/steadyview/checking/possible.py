"""Whether a state can be shown anywhere between two extremes.

Conditions look at single rows, so more rows never make a joined row disappear: with `least` and
`most` the joined rows where every relation holds the fewest and the most of each row,

    least  <=  joined  <=  most        for all vectors of a box

(of `most`, only what can contribute to the state is needed). A projection keeps that order. Of a
group, counts lie between those of its extremes, and a sum between (least positive + most negative
values) and (most positive + least negative values).

False is a proof; True says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TypeAlias

from steadyview.algebra import Row, Value
from steadyview.checking.flat_rows import Layout
from steadyview.checking.visible import Shown, State, Visible
from steadyview.views.definition import Definition
from steadyview.views.sql_values import add, at_least, at_most, greater, multiply

Joined: TypeAlias = Sequence[tuple[Row, int]]
Possible: TypeAlias = Callable[[Joined, Joined, State], bool]

_STATE_COLUMN = re.compile(r"_(count|nonnull|visible_sum)(?:_(\d+))?")


def possible_of(
    definition: Definition, layout: Layout, visible: Visible, shown: Sequence[Shown]
) -> Possible:
    """The test for one view: may (least, most) hide a vector that shows the state?"""
    if definition.grouping is not None:
        return _Groups(definition, layout, shown).possible

    def possible(least: Joined, most: Joined, wanted: State) -> bool:
        top = visible(most)
        if any(not 0 < count <= top.get(row, 0) for row, count in wanted.items()):
            return False
        return all(count <= wanted.get(row, 0) for row, count in visible(least).items())

    return possible


@dataclass
class _Extreme:
    """One group's counts, and the sums of its values above and below zero."""

    count: int
    nonnull: list[int]
    above: list[Value] = field(default_factory=list)
    below: list[Value] = field(default_factory=list)


class _Groups:
    """The test for an aggregate view. A group is recognized where all keys are shown."""

    def __init__(self, definition: Definition, layout: Layout, shown: Sequence[Shown]) -> None:
        grouping = definition.grouping
        assert grouping is not None
        outputs = [output.sql for output in definition.outputs]
        keys = [f"_g{g}" for g in range(len(grouping.keys))]
        self._places = [outputs.index(key) for key in keys] if {*keys} <= {*outputs} else None
        self._tell = [shown[place].tell for place in self._places or ()]
        self._keys = layout.values(grouping.keys)
        self._is_global = not keys
        self._arguments = layout.values([argument.sql for argument in grouping.arguments])
        self._summed = [argument.summed for argument in grouping.arguments]
        found = [(place, _STATE_COLUMN.fullmatch(sql)) for place, sql in enumerate(outputs)]
        self._columns = [(place, m[1], int(m[2] or 0)) for place, m in found if m]

    def possible(self, least: Joined, most: Joined, wanted: State) -> bool:
        """Whether every wanted row is within its group's extremes, and no group is forgotten."""
        low, high = self._extremes(least), self._extremes(most)
        if self._places is None:
            return len(low) <= sum(wanted.values()) <= len(high)
        groups = {tuple([row[place] for place in self._places]): row for row in wanted}
        if len(groups) != sum(wanted.values()) or not low.keys() <= groups.keys():
            return False
        return all(
            key in high and self._fits(row, low.get(key) or self._nothing(), high[key])
            for key, row in groups.items()
        )

    def _extremes(self, joined: Joined) -> Mapping[Row, _Extreme]:
        groups = {(): self._nothing()} if self._is_global else {}
        for flat, count in joined:
            key = self._keys(flat)
            if self._places is not None:
                key = tuple([t(v) if t else v for t, v in zip(self._tell, key, strict=True)])
            group = groups.setdefault(key, self._nothing())
            group.count += count
            for a, value in enumerate(self._arguments(flat)):
                if value is not None:
                    group.nonnull[a] += count
                    if self._summed[a]:
                        side = group.above if greater(value, 0) else group.below
                        side[a] = add(side[a], multiply(value, count))
        return groups

    def _nothing(self) -> _Extreme:
        arguments = len(self._summed)
        return _Extreme(0, [0] * arguments, [0] * arguments, [0] * arguments)

    def _fits(self, row: Row, low: _Extreme, high: _Extreme) -> bool:
        for place, name, a in self._columns:
            value = row[place]
            if name == "count":
                fits = _between(low.count, value, high.count)
            elif name == "nonnull":
                fits = _between(low.nonnull[a], value, high.nonnull[a])
            elif value is None:
                fits = low.nonnull[a] == 0
            else:
                bottom, top = add(low.above[a], high.below[a]), add(high.above[a], low.below[a])
                fits = high.nonnull[a] > 0 and _between(bottom, value, top)
            if not fits:
                return False
        return True


def _between(low: Value, value: Value, high: Value) -> bool:
    """Whether a recorded value, of whatever kind, may be a number between the two."""
    if type(value) in (int, Decimal):
        return bool(at_least(value, low) and at_most(value, high))
    return not (value is None or isinstance(value, str | tuple))
