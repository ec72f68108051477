"""docs/results/records.md and docs/algorithms.md say of records what the code promises."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from examples.records.levels import EDGES, PRODUCT, RESTORES
from examples.records.page import CLAIMS
from steadyview.simulation.records import COLUMNS, RECORD_WAYS
from steadyview.simulation.records.ways import STREAM, VIEWS
from tests.papers.test_pages import DOCS, MAINTENANCE, table_under

PAGE = DOCS / "results" / "records.md"
CLEAN = {"0", "-", "?"}
"""Nothing was lost; there is no such way; a question mark is no claim."""
PICTURES = ["records-sum.svg", "records-contention.svg", "records-minimum.svg", "records-flow.svg"]


def test_the_files_of_the_table_exist() -> None:
    rows = table_under(DOCS / "algorithms.md", "\n## Records")
    assert len(rows) == 15
    assert all((MAINTENANCE / "records" / row[-1].strip("`")).exists() for row in rows)


def test_every_cell_of_the_table_of_levels_has_ten_thousand_histories_or_more() -> None:
    histories = re.search(r"of ([\d,]+) random histories", PAGE.read_text())[1]
    assert int(histories.replace(",", "")) >= 10_000
    assert [row[0] for row in table_under(PAGE, "### As printed")] == list(CLAIMS)


def test_what_promises_strong_lost_nothing() -> None:
    names = [column.name for column in COLUMNS[6:]]
    written = table_under(PAGE, "### Ours")
    assert {row[0] for row in written} == {view for view in VIEWS if COLUMNS[6].way(view)}
    for view, *cells in written:
        for column, cell in zip(COLUMNS[6:], cells, strict=True):
            way = column.way(view)
            if way is not None and way.is_strong and column.lanes == STREAM:
                assert cell in CLEAN, (view, names)


def test_ours_lost_nothing_at_the_edges() -> None:
    edges = table_under(PAGE, "### Reads that lag")
    restored = table_under(PAGE, "### A store that becomes")
    names = [RECORD_WAYS[key].name for key in PRODUCT]
    assert [row[0] for row in edges] == [row[0] for row in restored] == names
    assert {cell for row in edges for cell in row[1:]} <= CLEAN
    assert len(edges[0]) == 1 + len(EDGES)
    assert {cell for row in restored for cell in row[1:3]} <= CLEAN
    assert not any(cell == "0" for row in restored for cell in row[3:])
    assert len(restored[0]) == 1 + len(RESTORES)


@pytest.mark.parametrize("name", PICTURES)
def test_the_pictures_are_pictures(name: str) -> None:
    assert ElementTree.parse(DOCS / "results" / name).getroot().tag.endswith("svg")
