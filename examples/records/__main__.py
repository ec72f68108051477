"""Measure and write: `make records`, or `python -m examples.records [--histories N] [--jobs N]`."""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import Future, ProcessPoolExecutor
from functools import reduce
from multiprocessing import get_context
from operator import add
from pathlib import Path

from examples.records.figures import points
from examples.records.levels import (
    STRETCH,
    LevelCell,
    cells,
    drawn,
    histories_of,
    is_drawn,
    is_promised,
    stretch,
)
from examples.records.page import RecordFindings, charts, counter_histories, page

_RESULTS = Path(__file__).parents[2] / "docs" / "results"


def main() -> None:
    """Parse the arguments, measure, write; exit code 1 if a promise was not what was seen."""
    parser = argparse.ArgumentParser(prog="make records", description=__doc__.splitlines()[0])
    parser.add_argument("--histories", type=int, default=10_000, help="for each cell")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=_RESULTS)
    arguments = parser.parse_args()
    found = measure(arguments.histories, arguments.jobs)
    (arguments.folder / "records.md").write_text(page(found))
    (arguments.folder / "records-counter-histories.md").write_text(counter_histories(found))
    for name, chart in charts(found).items():
        (arguments.folder / name).write_text(chart.svg())
    say(f"wrote {arguments.folder / 'records.md'}")
    broken = [cell for which, cell in found.cells.items() if is_promised(which) and is_lost(cell)]
    for cell in broken:
        say(f"{cell.row}, {cell.column}: promised, but {cell.seen.lost} seen")
    sys.exit(bool(broken))


def is_lost(cell: LevelCell) -> bool:
    """Of a restored store only the end counts."""
    lost = cell.seen.lost
    return bool(lost[0] if cell.table == "restored" else any(lost))


def measure(histories: int, jobs: int) -> RecordFindings:
    """Everything, several processes at once."""
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        wanted = {which: _stretches(pool, which, histories) for which in cells()}
        figures = [pool.submit(point, *arguments) for point, arguments in points()]
        found = {}
        for number, (which, futures) in enumerate(wanted.items(), 1):
            seen = reduce(add, (future.result().seen for future in futures))
            found[which] = LevelCell(*which, seen)
            say(f"levels {number}/{len(wanted)}: {', '.join(which)}: {seen.lost}")
        measured = []
        for number, future in enumerate(figures, 1):
            measured.append(future.result())
            say(f"figures {number}/{len(figures)}: {measured[-1]}")
        failing = [cell for which, cell in found.items() if is_drawn(which) and is_lost(cell)]
        pictures = [pool.submit(drawn, *_worst(cell)) for cell in failing]
        drawings = {}
        for number, (cell, picture) in enumerate(zip(failing, pictures, strict=True), 1):
            drawings[cell.row, cell.column] = picture.result()
            say(f"made small {number}/{len(failing)}: {cell.row}, {cell.column}")
        return RecordFindings(histories, found, measured, drawings)


def _worst(cell: LevelCell) -> tuple[tuple[str, str, str], int, str]:
    """The first seed of the lowest level that was seen."""
    which = (cell.table, cell.row, cell.column)
    return which, cell.seen.first[cell.seen.worst], cell.seen.worst


def _stretches(
    pool: ProcessPoolExecutor, which: tuple[str, str, str], histories: int
) -> list[Future[LevelCell]]:
    wanted = histories_of(which, histories)
    return [
        pool.submit(stretch, which, first, min(STRETCH, wanted - first))
        for first in range(0, wanted, STRETCH)
    ]


def say(line: str) -> None:
    """Progress is for the person who waits."""
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
