"""A bag over time, as versions: a step function of the count for every row.

    c(row, t)  =  base(row)  +  sum of the steps of row at times <= t

Steps at one time are one step, and steps that leave a count as it was are none, so a row with m
changes has at most m + 1 versions whatever its history: nothing cancels in pairs, and a hot row
stays linear.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from steadyview.algebra.bag import Bag

R = TypeVar("R", bound=Hashable)

BEGINNING: Final = -(2**63)
"""Before every time."""
FOREVER: Final = 2**63 - 1
"""After every time that comes; the time of what is known but has no place in the order yet."""


@dataclass(frozen=True)
class Step(Generic[R]):
    """From `time` on, the row's count is higher by `count`."""

    row: R
    count: int
    time: int


@dataclass(frozen=True)
class Version(Generic[R]):
    """The row has this count (never zero) at every t with start <= t < end."""

    row: R
    count: int
    start: int
    end: int


class Versions(Generic[R]):
    """The step functions of a bag's rows.

    >>> coming_and_going = [Step("x", 1, 5), Step("x", -1, 7)]
    >>> [Versions(Bag(), coming_and_going).count("x", t) for t in (4, 5, 6, 7)]
    [0, 1, 1, 0]
    """

    def __init__(self, base: Bag[R], steps: Iterable[Step[R]]) -> None:
        changes: dict[R, dict[int, int]] = defaultdict(lambda: defaultdict(int))
        for row, count in base:
            changes[row][BEGINNING] += count
        for step in steps:
            changes[step.row][step.time] += step.count
        levels = ((row, _levels(at)) for row, at in changes.items())
        self._levels: Mapping[R, _Levels] = {row: steps for row, steps in levels if steps.times}

    def rows(self) -> Iterator[R]:
        """Every row whose count is other than zero at some time, once."""
        return iter(self._levels)

    def count(self, row: R, time: int) -> int:
        """The row's count at the time."""
        levels = self._levels.get(row)
        if levels is None:
            return 0
        place = bisect_right(levels.times, time)
        return levels.counts[place - 1] if place else 0

    def at(self, time: int) -> Bag[R]:
        """The whole bag at the time."""
        return Bag((row, self.count(row, time)) for row in self._levels)

    def __iter__(self) -> Iterator[Version[R]]:
        """Every version, each row's in order of time."""
        for row, levels in self._levels.items():
            ends = (*levels.times[1:], FOREVER)
            for start, end, count in zip(levels.times, ends, levels.counts, strict=True):
                if count:
                    yield Version(row, count, start, end)


@dataclass(frozen=True)
class _Levels:
    """From times[i] until the next time, the count is counts[i]; before times[0] it is zero."""

    times: tuple[int, ...]
    counts: tuple[int, ...]


def _levels(changes: Mapping[int, int]) -> _Levels:
    times, counts, level = [], [], 0
    for time, change in sorted(changes.items()):
        if change:
            level += change
            times.append(time)
            counts.append(level)
    return _Levels(tuple(times), tuple(counts))
