"""Records of a view delta, and their net effect.

A record adds amounts to one group of the view; the first amount is the count. A view without
aggregates is one that groups by all its columns and has nothing but the count.

    net(D)(g)   =  sum of the amounts of the records of g in D;  groups with nothing but zeros go
    V + net(D)  =  V with the records of D applied one by one, in their order

Beyer et al., sections 2 and 5 (Lemmas 9 to 11). A group whose count is zero in `net` may stay: its
other amounts still count. In a view it is no group.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from steadyview.algebra import Row

Amounts: TypeAlias = tuple[int, ...]
Groups: TypeAlias = Mapping[Row, Amounts]
"""The rows of a view, or of a net effect."""


@dataclass(frozen=True)
class DeltaRecord:
    """One record of a view's delta; `timestamp` is None where only commit records have one."""

    id: int
    xid: str
    view: str
    group: Row
    amounts: Amounts
    timestamp: int | None = None


def net_effect(records: Iterable[DeltaRecord]) -> Groups:
    """What the records amount to, in whatever order they come.

    >>> come = DeltaRecord(1, "x", "v", ("a",), (1, 5))
    >>> gone = DeltaRecord(2, "y", "v", ("a",), (-1, -2))
    >>> net_effect([gone, come])
    {('a',): (0, 3)}
    """
    found: dict[Row, Amounts] = {}
    for record in records:
        found[record.group] = _sum(found.get(record.group), record.amounts)
    return {group: amounts for group, amounts in found.items() if any(amounts)}


def rolled(view: Groups, net: Groups) -> Groups:
    """The view with a net effect applied. ValueError if a group had fewer than no rows."""
    found = dict(view)
    for group, amounts in net.items():
        found[group] = _sum(found.get(group), amounts)
        if found[group][0] < 0:
            raise ValueError(f"group {group} would have {found[group][0]} rows")
        if found[group][0] == 0:
            del found[group]
    return found


def _sum(before: Amounts | None, more: Amounts) -> Amounts:
    return tuple(map(int.__add__, before, more)) if before else more
