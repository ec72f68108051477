"""Bags of rows with signed counts: the free abelian group over rows.

A bag is a function from rows to integers that is zero almost everywhere. Relations have counts
above zero, changes have any; `old + change == new` holds without conditions, also where a count
passes below zero on the way.

Assumes: rows are hashable, and equal in Python exactly where SQL's `<=>` calls them equal. That
holds for tuples of integers, decimals, strings, bytes, booleans, dates and NULL (None) whose
columns are each of one type. It does not hold for NaN.
Invariant: no stored count is zero, so equal bags compare equal.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Any, Generic, TypeAlias, TypeVar

Value: TypeAlias = Any
"""One SQL value: an int, Decimal, str, bool, bytes, date, datetime, or None for NULL."""
Row: TypeAlias = tuple[Value, ...]
"""The columns of one row, by number."""

R = TypeVar("R", bound=Hashable)
S = TypeVar("S", bound=Hashable)


class Bag(Generic[R]):
    """An immutable bag. Iterating gives (row, count) pairs with counts other than zero.

    >>> Bag([("x", 2), ("y", 1)]) - Bag([("x", 1), ("z", 1)])
    Bag([('x', 1), ('y', 1), ('z', -1)])
    """

    __slots__ = ("_counts",)

    def __init__(self, counted: Iterable[tuple[R, int]] = ()) -> None:
        counts: dict[R, int] = {}
        for row, count in counted:
            counts[row] = counts.get(row, 0) + count
        self._counts: Mapping[R, int] = {row: n for row, n in counts.items() if n}

    @staticmethod
    def _made(counts: Mapping[S, int]) -> Bag[S]:
        """Around counts of which none is zero."""
        bag: Bag[S] = Bag.__new__(Bag)
        bag._counts = counts
        return bag

    @staticmethod
    def of(rows: Iterable[S]) -> Bag[S]:
        """Every row once for each time it comes.

        >>> Bag.of("aba")
        Bag([('a', 2), ('b', 1)])
        """
        return Bag((row, 1) for row in rows)

    def __iter__(self) -> Iterator[tuple[R, int]]:
        return iter(self._counts.items())

    def __len__(self) -> int:
        """How many distinct rows there are."""
        return len(self._counts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Bag) and self._counts == other._counts

    def __hash__(self) -> int:
        return hash(frozenset(self._counts.items()))

    def __repr__(self) -> str:
        return f"Bag({list(self)})"

    def __add__(self, other: Bag[R]) -> Bag[R]:
        if not other._counts:
            return self
        if not self._counts:
            return other
        counts = dict(self._counts)
        for row, count in other._counts.items():
            total = counts.get(row, 0) + count
            if total:
                counts[row] = total
            else:
                del counts[row]
        return Bag._made(counts)

    def __neg__(self) -> Bag[R]:
        return Bag._made({row: -count for row, count in self._counts.items()})

    def __sub__(self, other: Bag[R]) -> Bag[R]:
        return self + -other

    def count(self, row: R) -> int:
        """How often the row is there; below zero where it is owed."""
        return self._counts.get(row, 0)

    def where(self, holds: Callable[[R], bool]) -> Bag[R]:
        """The rows for which `holds`, with their counts."""
        return Bag._made({row: count for row, count in self._counts.items() if holds(row)})

    def plus(self) -> Bag[R]:
        """The rows with counts above zero."""
        return Bag._made({row: count for row, count in self._counts.items() if count > 0})

    def distinct(self) -> Bag[R]:
        """Every row once, whatever its count.

        >>> Bag([("x", 3), ("y", -1)]).distinct()
        Bag([('x', 1), ('y', 1)])
        """
        return Bag._made(dict.fromkeys(self._counts, 1))

    def map(self, image: Callable[[R], S]) -> Bag[S]:
        """Every row replaced by its image; counts of equal images are added.

        >>> Bag([((1, 5), 2), ((2, 5), -1)]).map(lambda row: row[1])
        Bag([(5, 1)])
        """
        return Bag((image(row), count) for row, count in self)
