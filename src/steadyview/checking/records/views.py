"""What the classes of section V mean, over rows of one vector. Nothing is kept; all is recomputed.

R(k, x, y) is grouped by x; set operations are over L(k, v) and R(k, v), distinct; the join is
R(x, y) with S(y, z). An absent value of a base record is no row; NULL is None.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from fractions import Fraction
from typing import Any, Final

from steadyview.algebra import Row
from steadyview.checking.records.history import BaseKey, Present, RecordView, Shown, TimeLines

Aggregate = Callable[[Sequence[Any]], Any]


def _rows_of(key: Hashable, present: Present) -> list[Row]:
    return [row for _, row in present if row[1] == key]


def _grouped(aggregate: Aggregate) -> RecordView:
    def value(key: Hashable, present: Present) -> Shown:
        rows = _rows_of(key, present)
        if not rows:
            return None
        values = [row[2] for row in rows if row[2] is not None]
        return (aggregate(values),)

    return RecordView(value, _of_group, _groups)


def _of_group(key: Hashable, timelines: TimeLines) -> Sequence[BaseKey]:
    return [
        base
        for base, line in timelines.items()
        if any(row is not None and row[1] == key for row in line)
    ]


def _groups(timelines: TimeLines) -> frozenset[Hashable]:
    return frozenset(row[1] for line in timelines.values() for row in line if row is not None)


def _existing(exists: Callable[[int, int], bool]) -> RecordView:
    def value(key: Hashable, present: Present) -> Shown:
        left = sum(1 for relation, row in present if relation == "L" and row[1] == key)
        right = sum(1 for relation, row in present if relation == "R" and row[1] == key)
        return () if exists(left, right) else None

    return RecordView(value, _of_group, _groups)


def keyed(image: Callable[[Row], Shown]) -> RecordView:
    """A view record for each base record: selection, key-preserving projection."""

    def value(_: Hashable, present: Present) -> Shown:
        return image(present[0][1]) if present else None

    def deciding(key: Hashable, timelines: TimeLines) -> Sequence[BaseKey]:
        return [base for base in timelines if base[1] == key]

    def records(timelines: TimeLines) -> frozenset[Hashable]:
        return frozenset(key for _, key in timelines)

    return RecordView(value, deciding, records)


def _joined(key: Hashable, present: Present) -> Shown:
    referring = [row for relation, row in present if relation == "R" and row[0] == key]
    if not referring:
        return None
    y = referring[0][1]
    return next((row for relation, row in present if relation == "S" and row[0] == y), None)


def _join_bases(key: Hashable, timelines: TimeLines) -> Sequence[BaseKey]:
    mine = timelines.get(("R", key), ())
    referred = {("S", row[1]) for row in mine if row is not None}
    return [base for base in timelines if base == ("R", key) or base in referred]


def _join_records(timelines: TimeLines) -> frozenset[Hashable]:
    return frozenset(key for relation, key in timelines if relation == "R")


RECORD_VIEWS: Final[Mapping[str, RecordView]] = {
    "COUNT": _grouped(len),
    "SUM": _grouped(lambda values: sum(values) if values else None),
    "AVG": _grouped(lambda values: Fraction(sum(values), len(values)) if values else None),
    "MIN": _grouped(lambda values: min(values, default=None)),
    "MAX": _grouped(lambda values: max(values, default=None)),
    "projection": _existing(lambda left, right: left + right > 0),
    "UNION": _existing(lambda left, right: left > 0 or right > 0),
    "INTERSECT": _existing(lambda left, right: left > 0 and right > 0),
    "EXCEPT": _existing(lambda left, right: left > 0 and right == 0),
    "selection": keyed(lambda row: row[1:] if row[2] is not None and row[2] < 25 else None),
    "key projection": keyed(lambda row: row[2:]),
    "join": RecordView(_joined, _join_bases, _join_records),
}
"""By class; `selection` is WHERE y < 25, `key projection` shows y."""
