"""Measure and write: `make records`, or `python -m examples.records [--histories N] [--jobs N]`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict
from functools import reduce
from math import inf
from multiprocessing import get_context
from operator import add
from pathlib import Path
from time import monotonic

from examples.records.figures import Figure, points
from examples.records.kept import Kept
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
from examples.records.page import Cells, RecordFindings, charts, counter_histories, page
from steadyview.simulation.records import Levels
from steadyview.simulation.records.queues import Throughput

_RESULTS = Path(__file__).parents[2] / "docs" / "results"


def main() -> None:
    """Parse the arguments, measure, write; exit code 1 if a promise was not what was seen."""
    parser = argparse.ArgumentParser(prog="make records", description=__doc__.splitlines()[0])
    parser.add_argument("--histories", type=int, default=10_000, help="for each cell")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=_RESULTS)
    parser.add_argument("--minutes", type=float, default=inf, help="begin nothing after them")
    parser.add_argument("--kept", type=Path, help="a file of what was measured; it is added to")
    arguments = parser.parse_args()
    kept = Kept(arguments.kept)
    until = monotonic() + 60 * arguments.minutes
    found = measure(arguments.histories, arguments.jobs, kept, until)
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


def measure(histories: int, jobs: int, kept: Kept, until: float) -> RecordFindings:
    """Everything, several processes at once; cells that are not begun at a time are left out."""
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool, _ended(pool):
        figures = _figures(pool, kept)
        missing = [which for which in cells() if which not in kept]
        wanted = {which: _stretches(pool, which, histories) for which in missing}
        for number, (which, futures) in enumerate(wanted.items(), 1):
            is_late = monotonic() > until
            if is_late and sum(future.cancel() for future in futures):
                continue
            seen = reduce(add, (future.result().seen for future in futures))
            kept.add(which, asdict(seen))
            say(f"levels {number}/{len(wanted)}: {', '.join(which)}: {seen.lost}")
        there = [which for which in cells() if which in kept]
        found = {which: LevelCell(*which, Levels(**kept[which])) for which in there}
        return RecordFindings(histories, found, figures, _drawings(pool, found, kept))


@contextmanager
def _ended(pool: ProcessPoolExecutor) -> Iterator[None]:
    """Nothing more is begun after an error."""
    try:
        yield
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        raise


def _figures(pool: ProcessPoolExecutor, kept: Kept) -> list[Figure]:
    names = [(point.__name__, *arguments) for point, arguments in points()]
    futures = {
        name: pool.submit(point, *arguments)
        for name, (point, arguments) in zip(names, points(), strict=True)
        if name not in kept
    }
    for number, (name, future) in enumerate(futures.items(), 1):
        kept.add(name, asdict(future.result()))
        say(f"figures {number}/{len(futures)}: {kept[name]}")
    return [Figure(**{**kept[name], "found": Throughput(**kept[name]["found"])}) for name in names]


def _drawings(pool: ProcessPoolExecutor, found: Cells, kept: Kept) -> dict[tuple[str, str], str]:
    failing = [cell for which, cell in found.items() if is_drawn(which) and is_lost(cell)]
    pictures = {
        (cell.row, cell.column): pool.submit(drawn, *_worst(cell))
        for cell in failing
        if ("drawn", cell.row, cell.column) not in kept
    }
    for number, (which, picture) in enumerate(pictures.items(), 1):
        kept.add(("drawn", *which), picture.result())
        say(f"made small {number}/{len(pictures)}: {', '.join(which)}")
    return {(c.row, c.column): kept["drawn", c.row, c.column] for c in failing}


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
