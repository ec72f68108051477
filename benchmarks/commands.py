"""How long commands take, in seconds and as ratios to `python -c "import pyspark"`.

    python -m benchmarks.commands

On the starter project, built and changed once. Each command runs some times, the others in between;
the median counts. The archive of Spark's classes is in a folder of this benchmark's own: "nothing
kept" are starts without one. A source that is down is a stalled socket on the loopback: it takes a
connection and says nothing. Measured from outside: the interpreter's start is inside every figure.
"""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

ROUNDS = 5
MAIN = [sys.executable, "-c", "from steadyview.cli import main; main()"]
COMMANDS = {
    'python -c "import pyspark"': [sys.executable, "-c", "import pyspark"],
    "--help": [*MAIN, "--help"],
    "status": [*MAIN, "status"],
    "source list": [*MAIN, "source", "list"],
    "check": [*MAIN, "check"],
    "explain": [*MAIN, "explain", "revenue_by_region"],
    "history (rows)": [*MAIN, "history", "order_details"],
    "history (aggregates)": [*MAIN, "history", "revenue_by_region"],
}
DOWN = {"check, a source down": [*MAIN, "check"], "explain, a source down": COMMANDS["explain"]}
QUERY = [*MAIN, "query", "SELECT * FROM revenue_by_region ORDER BY region"]


def main() -> None:
    """Measure and print a table."""
    with tempfile.TemporaryDirectory() as folder:
        shop = Path(folder) / "shop"
        run([*MAIN, "init", str(shop)], Path(folder))
        os.environ["XDG_CACHE_HOME"] = str(Path(folder) / "cache")
        run([*MAIN, "run", "--once"], shop)
        change(shop)
        run([*MAIN, "run", "--once"], shop)
        taken = measured(COMMANDS, shop, ROUNDS)
        kept(Path(folder) / "cache")
        taken |= measured({"query, no run up": QUERY}, shop, 3)
        os.environ["XDG_CACHE_HOME"] = "/proc/nowhere"
        taken |= measured({"query, no run up, nothing kept": QUERY}, shop, 3)
        os.environ["XDG_CACHE_HOME"] = str(Path(folder) / "cache")
        with keeping(shop):
            taken |= measured({"query, run up": QUERY}, shop, ROUNDS)
        with a_source_down(shop):
            taken |= measured(DOWN, shop, 3)
    unit = taken['python -c "import pyspark"']
    print("| command | seconds | ratio |\n|---|---|---|")
    for name, seconds in taken.items():
        print(f"| `{name}` | {seconds:.2f} | {seconds / unit:.1f} |")


def change(folder: Path) -> None:
    """One transaction that both views show."""
    with closing(sqlite3.connect(folder / "sales.db")) as sales, sales:
        sales.execute("UPDATE order_lines SET price_cents = price_cents + 1")


def kept(cache: Path) -> None:
    """Wait for the archive of classes, which is written behind the first command."""
    until = time.monotonic() + 60
    while not list(cache.rglob("*.jsa")) and time.monotonic() < until:
        time.sleep(0.2)


def measured(commands: dict[str, list[str]], folder: Path, rounds: int) -> dict[str, float]:
    """The median seconds of each command."""
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            begun = time.monotonic()
            run(command, folder)
            times[name].append(time.monotonic() - begun)
    return {name: statistics.median(found) for name, found in times.items()}


def run(command: list[str], folder: Path) -> None:
    """Run to the end; what it prints is not looked at, an answer of "no" is one."""
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if ended.returncode not in (0, 1):
        raise SystemExit(f"{command}: {ended.stderr}")


@contextmanager
def keeping(folder: Path) -> Iterator[None]:
    """`run` is up and every view has its state."""
    process = subprocess.Popen(
        [*MAIN, "run", "--json"], cwd=folder, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        for line in process.stdout:
            views = json.loads(line)["views"]
            if views and all(view["state"] == "active" for view in views):
                break
        # nobody reads the rest: it would stand still when the pipe is full
        threading.Thread(target=process.stdout.read, daemon=True).start()
        run(QUERY, folder)
        yield
    finally:
        process.terminate()
        process.wait()


@contextmanager
def a_source_down(folder: Path) -> Iterator[None]:
    """A third source that takes connections and says nothing."""
    file = folder / "steadyview.toml"
    before = file.read_text()
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"postgresql://nobody@127.0.0.1:{server.getsockname()[1]}/nothing"
        section = f'\n[sources.away]\ntype = "postgresql"\nurl = "{url}"\ntables = ["t"]\n'
        file.write_text(before + section)
        yield
    file.write_text(before)


if __name__ == "__main__":
    main()
