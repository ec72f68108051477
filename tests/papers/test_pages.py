"""docs/algorithms.md and docs/results/papers.md say what `maintenance.algorithms` promises."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from examples.papers.levels import COLUMNS, ROWS
from examples.papers.plot import Chart
from steadyview.checking.deferred import PROPERTIES
from steadyview.maintenance.algorithms import GLOBAL, KINDS, LOCAL, SINGLE, Kind, kind_of
from steadyview.simulation.deferred import WAYS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
MAINTENANCE = ROOT / "src" / "steadyview" / "maintenance"


def table_under(page: Path, heading: str) -> list[list[str]]:
    """The rows of the first table below a heading, without its own head."""
    below = page.read_text().partition(heading)[2]
    lines = re.search(r"((?:^\|.*\|\n)+)", below, re.M)[1].splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def row_of(kind: Kind) -> list[str]:
    """What docs/algorithms.md has to say of one algorithm."""
    return [
        f"`{kind.name}`" + (", one source" if kind.one_source else ""),
        *(kind.promises.get(scenario, "-") for scenario in (SINGLE, LOCAL, GLOBAL)),
        kind.messages,
        "yes" if kind.keys else "no",
        "yes" if kind.quiescence else "no",
        f"`{kind.file}`",
    ]


def test_the_table_of_algorithms_is_that_of_the_code() -> None:
    documented = table_under(DOCS / "algorithms.md", "# The algorithms")
    assert documented == [row_of(kind) for kind in KINDS.values()]


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_the_file_of_an_algorithm_exists(kind: Kind) -> None:
    assert (MAINTENANCE / kind.file).exists()


def test_the_measured_levels_are_those_promised() -> None:
    written = table_under(DOCS / "results" / "papers.md", "Figure 7.2")
    assert [row[0] for row in written] == [f"`{name}`" for name in ROWS]
    for name, *cells in written:
        promises = dict(kind_of(name.strip("`")).promises)
        promises["one source"] = promises[SINGLE]
        seen = {column: cell for column, cell in zip(COLUMNS, cells, strict=True) if cell != "-"}
        assert {column: cell.split()[0] for column, cell in seen.items()} == {
            column: promises[column] for column in seen
        }


def documented_ways() -> dict[str, tuple[set[str], str]]:
    """By way, what docs/algorithms.md says that it breaks, and its file."""
    rows = table_under(DOCS / "algorithms.md", "# Deferred views")
    return {
        way.strip("`"): (set(breaks.split(", ")) - {"nothing"}, file.strip("`"))
        for way, breaks, file in rows
    }


def test_the_table_of_deferred_ways_is_that_of_the_code() -> None:
    ways = documented_ways()
    assert list(ways) == list(WAYS)
    for name, (breaks, file) in ways.items():
        assert not (WAYS[name].promises and breaks)
        assert (ROOT / "src" / "steadyview" / file).exists()


def test_the_properties_measured_of_each_way_are_those_documented() -> None:
    measured = table_under(DOCS / "results" / "papers.md", "# Deferred views")
    ways = documented_ways()
    assert [row[0].strip("`") for row in measured] == list(WAYS)
    for name, histories, *counts in measured:
        way = name.strip("`")
        broken = {p for p, count in zip(PROPERTIES, counts, strict=True) if int(count)}
        assert broken == ways[way][0]
        assert int(histories) >= (20_000 if WAYS[way].promises else 2_000)


def test_every_number_of_histories_is_ten_thousand_or_more() -> None:
    text = (DOCS / "results" / "papers.md").read_text()
    histories = int(re.search(r"in ([\d,]+) random histories", text)[1].replace(",", ""))
    assert histories >= 10_000


@pytest.mark.parametrize("name", ["papers-rate.svg", "papers-relations.svg", "papers-batch.svg"])
def test_the_pictures_are_pictures(name: str) -> None:
    assert ElementTree.parse(DOCS / "results" / name).getroot().tag.endswith("svg")


def test_a_chart_has_a_line_and_a_name_for_each_of_its_lines() -> None:
    lines = {"a < b": [(1, 1.0), (10, 5.0)], "c": [(1, 1.0), (10, 5.0)]}
    drawn = ElementTree.fromstring(Chart("title", "across", "up", lines).svg())
    texts = [element for element in drawn if element.tag.endswith("text")]
    assert len([e for e in drawn if e.tag.endswith("polyline")]) == 2
    assert {"a < b", "c"} <= {element.text for element in texts}
    places = [element.get("y") for element in texts if element.text in lines]
    assert len(set(places)) == 2
