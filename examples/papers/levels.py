"""Figure 7.2 of Zhuge et al.: which algorithm reaches which level in which scenario, measured.

The picture is a spectrum; here it is a table. A cell holds the lowest level of consistency that the
checker found in any of its histories, beside the one that is promised. Where a cell is below
complete, one seed whose history does not reach the next level shows that no more can be promised.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from steadyview.checking import LEVELS, level_above
from steadyview.maintenance.algorithms import BATCHED, GLOBAL, LOCAL, SINGLE, Kind, kind_of
from steadyview.simulation.counterexamples import Counterexample, counterexample
from steadyview.simulation.measuring import measured

ONE_SOURCE = "one source"
COLUMNS = (ONE_SOURCE, SINGLE, LOCAL, GLOBAL)
ROWS = (
    "conventional",
    "recompute",
    "eca",
    "eca-key",
    "strobe",
    "t-strobe",
    "g-strobe",
    "c-strobe",
    "c-t-strobe",
    "c-t-strobe:2",
    "sweep",
    "sweep-parallel",
    "sweep-pipelined",
    "sweep-whole",
    "nested-sweep",
    "nested-sweep:2",
    BATCHED,
)
_ALSO_ONE_SOURCE = {"conventional", "strobe", "t-strobe", BATCHED}
"""Algorithms for several sources that the figure also has over one."""


@dataclass(frozen=True)
class Cell:
    """One algorithm in one column, and what was seen; `seed` reaches no more than the worst."""

    algorithm: str
    column: str
    promised: str
    levels: Mapping[str, int]
    unknown: int = 0
    seed: int | None = None

    @property
    def histories(self) -> int:
        """How many were judged."""
        return sum(self.levels.values())

    @property
    def worst(self) -> str | None:
        """The lowest level seen; None if no history could be judged."""
        return next((level for level in LEVELS if self.levels.get(level)), None)

    @property
    def next_level(self) -> str | None:
        """The level above the worst."""
        return level_above(self.worst) if self.worst else None


def cells() -> list[tuple[str, str]]:
    """(algorithm, column) of every cell that is not empty."""
    return [(row, column) for row in ROWS for column in COLUMNS if _scenario(row, column)]


def _scenario(algorithm: str, column: str) -> str | None:
    """The scenario that a column means for an algorithm; None where the cell is empty."""
    kind = kind_of(algorithm)
    if column == ONE_SOURCE:
        return SINGLE if kind.one_source or algorithm in _ALSO_ONE_SOURCE else None
    if column == SINGLE and kind.one_source:
        return None
    return column if column in kind.promises else None


def _kind(algorithm: str, column: str) -> Kind:
    kind = kind_of(algorithm)
    return replace(kind, one_source=kind.one_source or column == ONE_SOURCE)


def measured_cell(algorithm: str, column: str, histories: int) -> Cell:
    """Judge the histories of seeds 0, 1, 2, ..."""
    kind, scenario = _kind(algorithm, column), _scenario(algorithm, column)
    assert scenario is not None
    found = measured(kind, scenario, range(histories))
    cell = Cell(algorithm, column, kind.promises[scenario], dict(found.levels), found.unknown)
    return replace(cell, seed=found.first.get(cell.worst)) if cell.next_level else cell


def counter_history(cell: Cell) -> Counterexample:
    """The smallest history found that does not reach the next level."""
    scenario = _scenario(cell.algorithm, cell.column)
    assert scenario is not None
    assert cell.seed is not None
    kind = _kind(cell.algorithm, cell.column)
    found = counterexample(kind, scenario, cell.seed, below=cell.next_level)
    assert found is not None
    return found


def drawn(cell: Cell) -> str:
    """The same as a diagram."""
    return counter_history(cell).text
