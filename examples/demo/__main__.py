"""Run the demo: `make demo`, or `python -m examples.demo [--seconds 40] [--folder demo-project]`.

Everything started here is stopped here, also on Ctrl-C: the writers, Spark, PostgreSQL.
"""

from __future__ import annotations

import argparse
import json
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console

from examples.demo import shop
from examples.demo.later import show_later
from examples.demo.report import print_report
from examples.demo.served import LiveGets
from examples.demo.watching import Watcher
from examples.embedded_postgres import EmbeddedPostgres, place_without_spaces
from steadyview.cli.opening import opened
from steadyview.cli.quiet_java import hide_incubator_warning
from steadyview.cli.stopping import run_until_signalled
from steadyview.papers.conventional import Shadow

_SEED = 7


def main() -> None:
    """Parse the arguments, run the demo, and say what was left behind."""
    parser = argparse.ArgumentParser(prog="make demo", description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=40, help="how long the writers write")
    parser.add_argument("--folder", type=Path, default=Path("demo-project"))
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    hide_incubator_warning()
    try:
        middle = run_demo(arguments.folder, arguments.seconds)
    except KeyboardInterrupt:
        print("\nstopped; servers and writers are stopped as well")
        sys.exit(130)
    print_what_next(arguments.folder, middle)


def run_demo(folder: Path, seconds: float) -> int:
    """The whole demo; a cn from its middle. Servers and processes are gone when it ends."""
    prepare_folder(folder)
    with ExitStack() as running:
        say("starting PostgreSQL, filling the shop")
        server = EmbeddedPostgres(place_without_spaces(folder / "postgres"))
        running.callback(server.stop)
        url = server.start().create_database("sales")
        shop.create_sales(url, _SEED)
        shop.create_crm(folder / "crm.db", _SEED)
        shop.create_project(folder, url, sys.executable)
        say("starting writers on both databases, then Spark (some seconds)")
        writers = running.enter_context(writing(url, folder / "crm.db"))
        warehouse = running.enter_context(opened(folder))
        # Beside the views, but never shown in them: what the same answers give uncompensated.
        shadow = Shadow(Path(running.enter_context(tempfile.TemporaryDirectory())))
        gets = LiveGets(folder)
        with gets:
            watch(warehouse, seconds, shadow)
        done = finish(writers)
        say("writers stopped; taking in what they wrote last")
        warehouse.run_once()
        middle = print_report(warehouse, shadow, done)
        print(*gets.told(warehouse), sep="\n")
        show_later(warehouse, folder, url, Console())
        return middle


def prepare_folder(folder: Path) -> None:
    """An empty folder; an earlier demo's is replaced, anything else is left alone."""
    if folder.exists() and not (folder / "start-postgres.sh").exists() and any(folder.iterdir()):
        sys.exit(f'"{folder}" exists and is not from a demo; name another: --folder DIR')
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)


@contextmanager
def writing(url: str, crm: Path) -> Iterator[subprocess.Popen[str]]:
    """The writers' process; killed at the end if it still runs."""
    command = [sys.executable, "-m", "examples.demo.writers", url, str(crm)]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def finish(writers: subprocess.Popen[str]) -> dict[str, Any]:
    """Ask the writers to end, and take what they did."""
    output, _ = writers.communicate()
    if writers.returncode:
        sys.exit("the writers failed; see above")
    return json.loads(output)


def watch(warehouse: Any, seconds: float, shadow: Shadow) -> None:
    """Maintain the views for so long, with a live display; Ctrl-C ends the batch and the demo."""
    watcher = Watcher(seconds)

    def work(stop: threading.Event) -> None:
        with watcher.showing(stop):
            warehouse.run(stop, watcher.progress, shadow)

    run_until_signalled(work)
    if not watcher.time_is_up:
        raise KeyboardInterrupt


def say(text: str) -> None:
    """One line of progress."""
    print(f"· {text} ...", flush=True)


def print_what_next(folder: Path, middle: int) -> None:
    """Commands to try on what was left behind; none of them needs a source."""
    print(f"The project is in {folder}/ (its PostgreSQL is stopped). Try:\n")
    program = Path(sys.executable).with_name("steadyview")
    near = program.relative_to(Path.cwd()) if program.is_relative_to(Path.cwd()) else program
    for command in (
        'query "SELECT * FROM revenue_by_region ORDER BY revenue DESC"',
        f'query "SELECT * FROM revenue_by_region ORDER BY revenue DESC" --at {middle}',
        "history revenue_by_region --limit 10",
        "get revenue_by_region north",
    ):
        print(f"  {near} {command} --project {shlex.quote(str(folder))}")
    print(f"\n{folder}/start-postgres.sh starts its PostgreSQL again; then run and verify work.")


if __name__ == "__main__":
    main()
