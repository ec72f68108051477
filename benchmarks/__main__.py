"""`python -m benchmarks`: load, measure, report. Ends with 1 only if something could not be run."""

from __future__ import annotations

import argparse
import fcntl
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from benchmarks import report
from benchmarks.running import Told, measured
from benchmarks.sizes import FULL, SMOKE, Sizes

HERE = Path(__file__).resolve().parent
CACHE = HERE / ".cache"
RESULTS = HERE.parent / "docs" / "results"


def main() -> int:
    """Run, print, write."""
    sizes, target = _arguments()
    console = Console()
    with _alone(), _progress(console) as told:
        results = measured(sizes, CACHE, told)
    report.show(results, console)
    for path in report.write(results, target):
        console.print(f"written: {path.relative_to(HERE.parent)}")
    return 0


def _arguments() -> tuple[Sizes, Path]:
    """Only a full run's results are worth keeping among the docs."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    parser.add_argument("--smoke", action="store_true", help="very little data; under a minute")
    parser.add_argument("--scale", type=float, help="another scale factor than 1")
    parser.add_argument("--runs", type=int, help="rounds to measure")
    asked = parser.parse_args()
    sizes = SMOKE if asked.smoke else FULL
    if asked.scale:
        sizes = replace(sizes, scale=asked.scale, smaller_scale=asked.scale / 10)
    if asked.runs:
        sizes = replace(sizes, runs=asked.runs)
    return sizes, RESULTS if sizes is FULL else CACHE / "results"


@contextmanager
def _alone() -> Iterator[None]:
    """Two runs at once would disturb each other, and share the cached server."""
    CACHE.mkdir(exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.exit("another benchmark is running")
        yield


@contextmanager
def _progress(console: Console) -> Iterator[Told]:
    """What is being done; as plain lines where nobody watches a terminal."""
    started = time.monotonic()
    if not console.is_terminal:
        yield lambda what: print(f"{time.monotonic() - started:6.1f} s  {what}", flush=True)
        return
    columns = (SpinnerColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("starting", total=None)
        yield lambda what: progress.update(task, description=what)


if __name__ == "__main__":
    sys.exit(main())
