"""Measure and write: `make papers`, or `python -m examples.papers [--histories N] [--jobs N]`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from examples.papers.adversary import alternating, c_strobe_attacked
from examples.papers.deferring import added, judged_stretch, stretches
from examples.papers.levels import cells, drawn, measured_cell
from examples.papers.messages import (
    ALGORITHMS,
    BATCHES,
    RATES,
    SIZES,
    batched_lookups,
    eca_terms,
    point,
)
from examples.papers.page import Findings, charts, counter_histories, page
from steadyview.simulation.deferred import way_of

_RESULTS = Path(__file__).parents[2] / "docs" / "results"
_ALTERNATIONS = [(name, n) for name in ("nested-sweep", "nested-sweep:10") for n in (2, 3, 4)]
_ALTERNATING_UPDATES = 200
_OPEN = (0, 1, 2, 4, 8, 16)
"""Open queries of ECA."""


def main() -> None:
    """Parse the arguments, measure, write; exit code 1 if a promise was not what was seen."""
    parser = argparse.ArgumentParser(prog="make papers", description=__doc__.splitlines()[0])
    parser.add_argument("--histories", type=int, default=10_000, help="for each cell of Figure 7.2")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=_RESULTS)
    arguments = parser.parse_args()
    found = measure(arguments.histories, arguments.jobs)
    (arguments.folder / "papers.md").write_text(page(found))
    (arguments.folder / "papers-counter-histories.md").write_text(counter_histories(found))
    for name, chart in charts(found).items():
        (arguments.folder / name).write_text(chart.svg())
    say(f"wrote {arguments.folder / 'papers.md'}")
    wrong = [c for c in found.cells if c.worst != c.promised or c.unknown]
    guilty = [row for row in found.deferred if way_of(row.way).promises and row.broken]
    for row in guilty:
        say(f"{row.way}: clean promised, {dict(row.broken)} seen")
    for cell in wrong:
        seen = f"{cell.worst} seen, {cell.unknown} unknown"
        say(f"{cell.algorithm}, {cell.column}: {cell.promised} promised, {seen}")
    sys.exit(bool(wrong or guilty))


def measure(histories: int, jobs: int) -> Findings:
    """Everything, several processes at once."""
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        levels = [pool.submit(measured_cell, *cell, histories) for cell in cells()]
        wanted = [(a, n, rate) for a in ALGORITHMS for n in SIZES for rate in RATES]
        points = [pool.submit(point, *which) for which in wanted]
        sizes = [(n, size) for n in SIZES for size in BATCHES]
        batches = [pool.submit(batched_lookups, *which) for which in sizes]
        seen = gathered("levels", levels, lambda c: f"{c.algorithm}, {c.column}: {c.worst}")
        below = [cell for cell in seen if cell.next_level]
        diagrams = gathered("diagrams", [pool.submit(drawn, c) for c in below], first)
        judged = [pool.submit(judged_stretch, *which) for which in stretches()]
        return Findings(
            seen,
            gathered("messages", points, lambda p: f"{p.algorithm}, n = {p.n}, rate {p.rate:g}"),
            {n: c_strobe_attacked(n) for n in SIZES if n > 2},
            {which: alternating(*which, _ALTERNATING_UPDATES) for which in _ALTERNATIONS},
            dict(zip(sizes, gathered("batches", batches), strict=True)),
            dict(zip([(c.algorithm, c.column) for c in below], diagrams, strict=True)),
            {(n, opened): eca_terms(n, opened) for n in SIZES for opened in _OPEN},
            added(gathered("deferred views", judged, lambda c: c.way)),
        )


def gathered(
    what: str, futures: Sequence[Future[Any]], told: Callable[[Any], str] = str
) -> list[Any]:
    """The results in order, each told when its turn comes."""
    found = []
    for number, future in enumerate(futures, 1):
        found.append(future.result())
        say(f"{what} {number}/{len(futures)}: {told(found[-1])}")
    return found


def first(text: str) -> str:
    """The first line."""
    return text.splitlines()[0]


def say(line: str) -> None:
    """Progress is for the person who waits."""
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
