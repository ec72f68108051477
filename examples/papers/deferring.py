"""Sections 3 and 4 of Beyer et al.: how many histories of each way break each of six properties."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from operator import add

from steadyview.simulation.deferred import WAYS, Convicted, convicted, way_of

HISTORIES, CLEAN_HISTORIES = 2_000, 20_000
"""Of a way that is to be convicted, and of one that promises to be clean."""
_STRETCH = 2_000


def stretches() -> list[tuple[str, int]]:
    """(way, first seed) of everything, in the order of the table."""
    return [(name, first) for name in WAYS for first in range(0, histories(name), _STRETCH)]


def histories(name: str) -> int:
    """How many of a way."""
    return CLEAN_HISTORIES if way_of(name).promises else HISTORIES


def judged_stretch(name: str, first: int) -> Convicted:
    """Run and judge some seeds."""
    return convicted(way_of(name), range(first, first + _STRETCH))


def added(found: Iterable[Convicted]) -> list[Convicted]:
    """The stretches of each way as one row."""
    rows: dict[str, list[Convicted]] = {}
    for stretch in found:
        rows.setdefault(stretch.way, []).append(stretch)
    return [reduce(add, stretches) for stretches in rows.values()]
