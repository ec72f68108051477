"""`python -m benchmarks`: load, measure, report. Ends with 1 only if something could not be run.

First the speed table, then the sections: modules of this package that run by themselves
(`python -m benchmarks.NAME [--smoke]`) and print a page of results. A full run keeps each page as
docs/results/NAME.md.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from benchmarks import report
from benchmarks.place import CACHE, HERE, RESULTS, Told, alone
from benchmarks.running import measured
from benchmarks.sizes import FULL, SMOKE, Sizes

SECTIONS = ("small_batch", "once", "many_views", "serving")
"""Each in a process and a Spark of its own, one after the other."""


def main() -> int:
    """Run, print, write."""
    sizes, target = _arguments()
    console = Console()
    with alone() as cache, _progress(console) as told:
        results = measured(sizes, cache, told)
    report.show(results, console)
    _written(console, report.write(results, target))
    failed = [name for name in SECTIONS if not _section(name, target, console, brief=sizes.brief)]
    for name in failed:
        console.print(f"could not be run: python -m benchmarks.{name}")
    return 1 if failed else 0


def _section(name: str, target: Path, console: Console, *, brief: bool) -> bool:
    """Run a section, show and keep its page; whether it could be run."""
    command = [sys.executable, "-m", f"benchmarks.{name}", *(["--smoke"] if brief else [])]
    ended = subprocess.run(
        command, cwd=HERE.parent, stdout=subprocess.PIPE, text=True, check=False
    )
    console.print(ended.stdout, markup=False, highlight=False, soft_wrap=True)
    if ended.returncode == 0:
        page = target / f"{name.replace('_', '-')}.md"
        page.write_text(ended.stdout)
        _written(console, [page])
    return ended.returncode == 0


def _written(console: Console, paths: list[Path]) -> None:
    for path in paths:
        console.print(f"written: {path.relative_to(HERE.parent)}")


def _arguments() -> tuple[Sizes, Path]:
    """Only a full run's results are worth keeping among the docs."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    parser.add_argument("--smoke", action="store_true", help="very little data; a minute or two")
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
