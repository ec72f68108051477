"""The table "view class x technique x fault": how many histories did not reach strong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from steadyview.checking import level_above
from steadyview.simulation.records import COLUMNS, FAULTS, RECORD_WAYS, Levels, measured_levels
from steadyview.simulation.records.faults import (
    AT_ONCE,
    LAG,
    REGISTRY_ELSEWHERE,
    REGISTRY_FIRST,
    REGISTRY_LAST,
    REPARTITIONED,
    RESTORED,
    STALE_MANAGERS,
    RunFaults,
)
from steadyview.simulation.records.shrinking import shrunk
from steadyview.simulation.records.ways import OURS, STREAM, UNSEEN, VIEWS, LevelColumn, RecordWay

STRETCH = 2_500
"""Histories in one go of a process."""
AT_EDGES = 1_000
"""Histories of a cell outside the table of levels, at most."""
EDGES: dict[str, tuple[RunFaults, Callable[[RecordWay], RecordWay | None]]] = {
    "reads that lag": (LAG, lambda way: way),
    "new streams": (REPARTITIONED, lambda way: way),
    "new streams, stale managers": (STALE_MANAGERS, lambda way: way),
    "three together": (
        FAULTS["mixed"],
        lambda way: replace(way, together=3) if way.additive is not None else None,
    ),
    "three at once": (FAULTS["mixed"], lambda way: replace(way, at_once=3)),
}
RESTORES = {
    how: replace(RESTORED, restored=how)
    for how in (AT_ONCE, REGISTRY_FIRST, REGISTRY_LAST, REGISTRY_ELSEWHERE)
}
"""Only the end is judged: what readers saw goes back with the store."""
PRODUCT = [key for key, way in RECORD_WAYS.items() if key[1] in (OURS, UNSEEN)]


@dataclass(frozen=True)
class LevelCell:
    """`row` and `column` of one of the tables, and what was seen."""

    table: str
    row: str
    column: str
    seen: Levels


def cells() -> list[tuple[str, str, str]]:
    """(table, row, column) of everything, what says most first."""
    found = [
        ("levels", view, column.name)
        for column in COLUMNS
        for view in VIEWS
        if column.way(view)
    ]
    for key in PRODUCT:
        row = RECORD_WAYS[key].name
        found += [("edges", row, name) for name in EDGES if EDGES[name][1](RECORD_WAYS[key])]
        found += [("restored", row, name) for name in RESTORES]
    return sorted(found, key=_turn)


def _turn(cell: tuple[str, str, str]) -> int:
    """What is measured first: ours under all faults, the printed forms, the edges, the rest."""
    if cell[2] == "ours, mixed":
        return 0
    if is_drawn(cell):
        return 1
    return 2 if cell[0] != "levels" else 3


def histories_of(cell: tuple[str, str, str], wanted: int) -> int:
    """How many histories a cell has."""
    return wanted if cell[0] == "levels" else min(wanted, AT_EDGES)


def stretch(cell: tuple[str, str, str], first: int, histories: int) -> LevelCell:
    """Some seeds of a cell."""
    way, faults = _measured(*cell)
    return LevelCell(*cell, measured_levels(way, faults, range(first, first + histories)))


def is_drawn(cell: tuple[str, str, str]) -> bool:
    """Whether a failing history of it is shown: the printed forms."""
    return cell[0] == "levels" and cell[2] in [column.name for column in COLUMNS[:6]]


def drawn(cell: tuple[str, str, str], seed: int, level: str) -> str:
    """The history of a seed that only reaches `level`, made small."""
    way, faults = _measured(*cell)
    return shrunk(way, faults, seed, lost=level_above(level) or level).text


def is_promised(cell: tuple[str, str, str]) -> bool:
    """Whether nothing may be lost there (when restored: the end)."""
    table, row, column = cell
    if table == "levels":
        way, _ = _measured(*cell)
        return way.is_strong and way.lanes == STREAM
    return table == "edges" or column in (AT_ONCE, REGISTRY_FIRST)


def _measured(table: str, row: str, name: str) -> tuple[RecordWay, RunFaults]:
    if table == "levels":
        column = _COLUMNS[name]
        way = column.way(row)
        assert way is not None
        return way, FAULTS[column.fault]
    way = next(RECORD_WAYS[key] for key in PRODUCT if RECORD_WAYS[key].name == row)
    if table == "restored":
        return way, RESTORES[name]
    faults, changed = EDGES[name]
    edge = changed(way)
    assert edge is not None
    return edge, faults


_COLUMNS: dict[str, LevelColumn] = {column.name: column for column in COLUMNS}
