"""Views whose records are sums over base rows: COUNT, SUM, AVG, projection, set operations.

A base row adds amounts to one record. The first amounts count rows, and

    the record is there  <=>  it has rows;   what is shown follows from the amounts alone

The row count is always kept, hidden where the view does not show it. SUM alone does not know when
to go: 0 may be a sum of rows. COUNT(y) with NULLs, as printed (an update within the group is
ignored), misses y -> NULL; counting only non-NULL values, a group of NULLs is absent where 0 is
right. A set operation counts a value's rows on its left and on its right (section V-C).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from steadyview.algebra import Row
from steadyview.maintenance.records.entries import LogEntry, RecordKey
from steadyview.maintenance.records.requests import Amounts, Fields


@dataclass(frozen=True)
class AdditiveView:
    """`rows`: how many rows amounts stand for; `shown`: what readers see, None if absent."""

    name: str
    key: Callable[[str, Row], RecordKey]
    amounts: Callable[[str, Row], Amounts]
    rows: Callable[[Amounts], int]
    shown: Callable[[Amounts], Fields | None]

    def additions(self, entry: LogEntry) -> Mapping[RecordKey, Amounts]:
        """What an entry adds to each record: one operation per record.

        An update within a group is one addition, of y' - y. As deletion and insertion the second
        half would be taken for a repetition of the first.
        """
        found: dict[RecordKey, Amounts] = {}
        for row, sign in ((entry.old, -1), (entry.new, 1)):
            if row is not None:
                key = self.key(entry.relation, row)
                amounts = tuple(sign * n for n in self.amounts(entry.relation, row))
                found[key] = added(found.get(key), amounts)
        return {key: amounts for key, amounts in found.items() if any(amounts)}


def added(before: Amounts | None, more: Amounts) -> Amounts:
    """The sum.

    >>> added((1, 5), (-1, 2)), added(None, (1, 1))
    ((0, 7), (1, 1))
    """
    return tuple(map(int.__add__, before, more)) if before else more


def _group(_: str, row: Row) -> RecordKey:
    group: RecordKey = row[1]
    return group


def _values(_: str, row: Row) -> Amounts:
    return (1, int(row[2] is not None), row[2] or 0)


def _count(amounts: Amounts) -> Fields | None:
    return (amounts[1],)


def _sum(amounts: Amounts) -> Fields | None:
    return (amounts[2] if amounts[1] else None,)


def _avg(amounts: Amounts) -> Fields | None:
    return (Fraction(amounts[2], amounts[1]) if amounts[1] else None,)


def _there(_: Amounts) -> Fields | None:
    return ()


def _first(amounts: Amounts) -> int:
    return amounts[0]


def _sides(relation: str, _: Row) -> Amounts:
    return (1, 0) if relation == "L" else (0, 1)


def _both(amounts: Amounts) -> int:
    return amounts[0] + amounts[1]


def _union(_: Amounts) -> Fields | None:
    return ()


def _intersect(amounts: Amounts) -> Fields | None:
    return () if amounts[0] > 0 and amounts[1] > 0 else None


def _except(amounts: Amounts) -> Fields | None:
    return () if amounts[0] > 0 and amounts[1] == 0 else None


def _of(name: str, amounts: Any, rows: Any, shown: Any) -> AdditiveView:
    return AdditiveView(name, _group, amounts, rows, shown)


_VIEWS = (
    _of("COUNT", _values, _first, _count),
    _of("SUM", _values, _first, _sum),
    _of("AVG", _values, _first, _avg),
    _of("projection", lambda *_: (1,), _first, _there),
    _of("UNION", _sides, _both, _union),
    _of("INTERSECT", _sides, _both, _intersect),
    _of("EXCEPT", _sides, _both, _except),
)
ADDITIVE_VIEWS: Final[Mapping[str, AdditiveView]] = {view.name: view for view in _VIEWS}
"""Over R(k, x, y) grouped by x; set operations over L(k, v) and R(k, v), distinct."""
