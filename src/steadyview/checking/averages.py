"""When a recorded average is the average of a group.

An average often has no exact decimal, so it was rounded when it was recorded. Spark's AVG of whole
numbers is the nearest double; of decimals it is a decimal with at least four digits behind the
point, rounded half up. Accepted are the exact value, the nearest double, and for decimals the
value rounded to as many digits as were recorded, if these are four or more.

Not an equivalence: two different averages may both be what was recorded. So all averages have one
hash, and are only ever compared where the rest of a row is equal.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import isfinite
from typing import Final

from steadyview.algebra import Value

_FEWEST_DIGITS: Final = 4


@dataclass(frozen=True, eq=False)
class Average:
    """An average as it was recorded, in whatever form; `Exact` is one of a view."""

    value: Value

    def __hash__(self) -> int:
        return 0

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Exact):
            return other == self
        return isinstance(other, Average) and bool(self.value == other.value)


@dataclass(frozen=True, eq=False)
class Exact(Average):
    """The exact average of a group, of whole numbers or of decimals."""

    value: Fraction
    of_decimals: bool

    def __hash__(self) -> int:
        return 0

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Exact):
            return self.value == other.value
        return isinstance(other, Average) and self._may_be(other.value)

    def _may_be(self, recorded: Value) -> bool:
        if recorded == self.value or nearest_double(recorded) == nearest_double(self.value):
            return True
        if not self.of_decimals or type(recorded) is not Decimal:
            return False
        exponent = recorded.as_tuple().exponent
        digits = -exponent if isinstance(exponent, int) else 0
        return digits >= _FEWEST_DIGITS and _rounded(self.value, digits) == Fraction(recorded)


def nearest_double(number: Value) -> Value:
    """The double, or the number itself where it is beyond all doubles."""
    try:
        double = float(number)
    except OverflowError:
        return number
    return double if isfinite(double) else number


def _rounded(number: Fraction, digits: int) -> Fraction:
    """Half up, which is away from zero.

    >>> _rounded(Fraction(-5, 8), 2)
    Fraction(-63, 100)
    """
    scale = 10**digits
    whole = int(abs(number) * scale + Fraction(1, 2))
    return Fraction(whole if number >= 0 else -whole, scale)
