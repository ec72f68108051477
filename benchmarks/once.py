"""`run --once` from a scheduler: with nothing new and with something new, now and before plans.

    python -m benchmarks.once [--smoke]

On the starter project (two views, SQLite), one copy for each version, built before. Every run is a
process of its own from the start of Python to the end of Java. CPU-seconds are those of all
processes. The archive of Spark's classes was written by the runs before; the version before has
none.
"""

from __future__ import annotations

import argparse
import os
import sqlite3
import sys
import tempfile
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.accounted import Account, account, available
from benchmarks.findings import CPU, RATIO, SECONDS, Finding
from benchmarks.place import Told, alone, teller
from benchmarks.report import findings_table
from benchmarks.versions import BEFORE, NOW, Version, before

MOST = 1 / 3
"""Of the CPU-seconds that the version before used with something new."""
TRANSACTIONS = 60
MAIN = [sys.executable, "-c", "from steadyview.cli import main; main()"]


@dataclass
class Shop:
    """A starter project and the version that keeps it."""

    version: Version
    folder: Path
    nothing: list[Account] = field(default_factory=list)
    something: list[Account] = field(default_factory=list)
    _orders: int = 4

    def run(self, *words: str) -> Account:
        """One command in the project's folder."""
        found = account([*MAIN, *words], self.folder, self.version.environment)
        if found.code:
            raise RuntimeError(f"{self.version.name}: {' '.join(words)} ended with {found.code}")
        return found

    def change(self) -> None:
        """Orders with a line each, a transaction for each."""
        with closing(sqlite3.connect(self.folder / "sales.db")) as sales:
            for _ in range(TRANSACTIONS):
                self._orders += 1
                order = "INSERT INTO orders VALUES (?, 1 + ? % 3)"
                sales.execute(order, (self._orders, self._orders))
                line = "INSERT INTO order_lines VALUES (?, 1, 'lamp', 2, 1950)"
                sales.execute(line, (self._orders,))
                sales.commit()


def shop(version: Version, place: Path, warm_ups: int) -> Shop:
    """The starter project with its first states, after batches: what is written once is there."""
    place.mkdir()
    started = Shop(version, place)
    started.run("init", str(place / "shop"))
    kept = Shop(version, place / "shop")
    kept.run("run", "--once")
    for _ in range(warm_ups):
        kept.change()
        kept.run("run", "--once")
    return kept


def measure(shops: Sequence[Shop], rounds: int, told: Told) -> None:
    """Both versions in turns."""
    for number in range(rounds):
        for each in shops[:: 1 if number % 2 else -1]:
            told(f"round {number + 1} of {rounds}: {each.version.name}")
            each.change()
            each.something.append(each.run("run", "--once"))
            each.nothing.append(each.run("run", "--once"))


def findings(shops: Sequence[Shop], *, brief: bool) -> list[Finding]:
    """The table; a brief run is held to nothing."""
    found = []
    if len(shops) == 2:
        now, then = shops
        for what, most in (("something", None if brief else MOST), ("nothing", None)):
            pairs = zip(getattr(now, what), getattr(then, what), strict=True)
            ratios = [a.cpu / b.cpu for a, b in pairs]
            title = f"{what} new: CPU-seconds, now / before"
            found.append(Finding(title, "starter's two", RATIO, ratios, most=most))
    for each in shops:
        for what in ("something", "nothing"):
            runs: list[Account] = getattr(each, what)
            title, view = f"{what} new, {each.version.name}", "starter's two"
            found.append(Finding(title, view, CPU, [r.cpu for r in runs]))
            found.append(Finding(title, view, SECONDS, [r.seconds for r in runs]))
    return found


def started_spark(shops: Sequence[Shop]) -> list[str]:
    """Of each version, in how many runs with nothing new Java was seen."""
    return [
        f"With nothing new, {each.version.name}: Java was started in "
        f"{sum(run.java for run in each.nothing)} of {len(each.nothing)} runs."
        for each in shops
    ]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.once")
    parser.add_argument("--smoke", action="store_true", help="one round")
    brief = parser.parse_args().smoke
    warm_ups, rounds = (0, 1) if brief else (1, 2)
    print("# `run --once`, now and before\n")
    if not available():
        print("What orphans use can be counted on Linux only: nothing was measured.")
        return
    told = teller()
    with alone(), tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
        earlier = before(folder)
        shops = []
        for number, version in enumerate([NOW, *([earlier] if earlier else [])]):
            told(f"{version.name}: first states")
            shops.append(shop(version, folder / f"shop-{number}", warm_ups))
        measure(shops, rounds, told)
    print("\n".join([*findings_table(findings(shops, brief=brief)), "", *started_spark(shops)]))
    if len(shops) == 1:
        print(f"Git's history does not have commit {BEFORE[:7]}: nothing to compare with.")
    print(_NOTES.rstrip())


_NOTES = f"""
The starter project of `steadyview init`, {TRANSACTIONS} transactions new. Before is commit
{BEFORE[:7]}, the last one without `src/steadyview/plans`, run from git's history. CPU-seconds are
those of all processes, Java's to its end; seconds end with the command. A base is rolled now when
it is due; before, every run rolled all of them.
"""


if __name__ == "__main__":
    main()
