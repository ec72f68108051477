"""Figure 7.2 of Zhuge et al. 1996: in every cell the worst level seen is the level promised."""

from __future__ import annotations

import pytest

from examples.papers.levels import Cell, cells, counter_history, measured_cell
from steadyview.maintenance.algorithms import KINDS, kind_of

HISTORIES = (150, 1_200, 9_600)
"""More where the worst level is rare."""


def measured(algorithm: str, column: str) -> Cell:
    for histories in HISTORIES:
        cell = measured_cell(algorithm, column, histories)
        if cell.worst == cell.promised:
            break
    return cell


@pytest.mark.parametrize(("algorithm", "column"), cells())
def test_the_worst_level_seen_is_the_one_promised(algorithm: str, column: str) -> None:
    cell = measured(algorithm, column)
    assert cell.unknown == 0
    assert cell.worst == cell.promised
    if cell.next_level:
        assert counter_history(cell).verdict.level == cell.worst


def test_every_algorithm_has_its_cells() -> None:
    measured_in = {(algorithm, column) for algorithm, column in cells()}
    for name, kind in KINDS.items():
        columns = {"one source" if kind.one_source and s == "single" else s for s in kind.promises}
        assert {(name, column) for column in columns} <= measured_in
    assert kind_of("c-t-strobe:2").promises["single"] == "strong"
