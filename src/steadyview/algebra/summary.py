"""The state of one group of an aggregate view: counts and sums, which add up under any change.

    state(new)  =  state(old) + state(change)

holds for COUNT(*), COUNT(x) and SUM(x), since all three are sums over counted rows. SUM needs the
two counts beside it: COUNT(*) tells when a group is gone, COUNT(x) when SUM(x) is NULL.

A change whose counts are all zero may still have a sum (a row that went and one that came): only a
change that `is_nothing` may be left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from steadyview.algebra.bag import Value


@dataclass(frozen=True)
class Summary:
    """`count` is COUNT(*); `nonnull[a]` is COUNT and `sums[a]` the sum over argument a (0 of none).

    >>> Summary.of([7, None], 1) + Summary.of([5, 2], -1)
    Summary(count=0, nonnull=(0, -1), sums=(2, -2))
    """

    count: int
    nonnull: tuple[int, ...]
    sums: tuple[Value, ...]

    @staticmethod
    def of(arguments: Sequence[Value], count: int) -> Summary:
        """What `count` rows with these argument values contribute. NULL contributes to no sum."""
        return Summary(
            count,
            tuple(0 if value is None else count for value in arguments),
            tuple(0 if value is None else count * value for value in arguments),
        )

    def __add__(self, other: Summary) -> Summary:
        return Summary(
            self.count + other.count,
            tuple(x + y for x, y in zip(self.nonnull, other.nonnull, strict=True)),
            tuple(x + y for x, y in zip(self.sums, other.sums, strict=True)),
        )

    @property
    def is_nothing(self) -> bool:
        """Whether adding it changes no state."""
        return not self.count and not any(self.nonnull) and not any(self.sums)
