"""A month of changes, as committed and compressed: bytes, and seconds of applying it.

    python -m benchmarks.compression [--smoke]

A SQLite file in which products are sold, hour after hour by a clock that is moved on. Two kinds of
views: sums per product, whose few rows change all the time, and the sales of a product group, most
of whose rows come once and stay. Of each there are several that are the same: in turns one is
applied as it was committed and one after compression, from the base of the month's beginning. In
the end all of a kind must hold the same rows.
"""

from __future__ import annotations

import argparse
import random
import sqlite3
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

import steadyview
from benchmarks.findings import MEGABYTES, RATIO, SECONDS, Finding
from benchmarks.place import Told, alone, teller
from benchmarks.report import findings_table
from steadyview.runtime.clock import SystemClock
from steadyview.runtime.kept import shape_of
from steadyview.runtime.warehouse import Warehouse
from steadyview.warehouse.apply import Applier
from steadyview.warehouse.view_store import ViewStore

HOUR = 3_600_000_000
PRODUCTS, AT_ONCE = 2_000, 100
KINDS = {
    "sums": (
        "SELECT product, COUNT(*) AS sold, SUM(cents) AS cents FROM shop.sales GROUP BY product"
    ),
    "rows": "SELECT id, product, cents FROM shop.sales WHERE product % 2 = 0",
}
COMMITTED, NET = "as committed", "compressed"
TABLE = "CREATE TABLE sales (id INTEGER PRIMARY KEY, product INTEGER, cents INTEGER)"
PROJECT = """[project]
name = "month"
warehouse = "warehouse"
retention = "60 days"
[sources.shop]
type = "sqlite"
path = "shop.db"
tables = ["sales"]
"""


@dataclass(frozen=True)
class _Sizes:
    hours: int
    transactions: int
    """Each hour."""
    rounds: int


FULL, SMOKE = _Sizes(720, 8, 3), _Sizes(30, 4, 1)


def names(kind: str, rounds: int) -> list[tuple[str, str]]:
    """The pairs of views of a kind, the first one to warm up."""
    return [(f"{kind}_plain_{i}", f"{kind}_net_{i}") for i in range(rounds + 1)]


def project(folder: Path, rounds: int) -> Path:
    """The folder of a project whose views show nothing of the month until they are refreshed."""
    (folder / "views").mkdir(parents=True)
    (folder / "steadyview.toml").write_text(PROJECT)
    with closing(sqlite3.connect(folder / "shop.db")) as shop:
        shop.execute(TABLE)
        shop.executemany("INSERT INTO sales VALUES (?, ?, 100)", ((i, i) for i in range(PRODUCTS)))
        shop.commit()
    properties = (
        "'steadyview.policy' = 'ipda', 'steadyview.table' = 'never', 'steadyview.changes' = 'never'"
    )
    for kind, select in KINDS.items():
        for name in (name for pair in names(kind, rounds) for name in pair):
            text = f"CREATE MATERIALIZED VIEW {name} TBLPROPERTIES ({properties}) AS {select}"
            (folder / "views" / f"{name}.sql").write_text(text)
    return folder


@contextmanager
def moved_clock(hours: int) -> Iterator[list[int]]:
    """A clock that is so far behind, and is moved on by whoever has it; then it is as it was."""
    behind, tell = [-(hours + 1) * HOUR], SystemClock.now_us
    SystemClock.now_us = lambda clock: tell(clock) + behind[0]  # type: ignore[method-assign]
    try:
        yield behind
    finally:
        SystemClock.now_us = tell  # type: ignore[method-assign]


def month(warehouse: Warehouse, folder: Path, sizes: _Sizes, clock: list[int]) -> None:
    """What is committed hour by hour, captured as it comes."""
    dice, number = random.Random(1), PRODUCTS
    with (
        closing(sqlite3.connect(folder / "shop.db")) as shop,
        warehouse._following() as wait_for,
    ):
        for _ in range(sizes.hours):
            for _ in range(sizes.transactions):
                for _ in range(AT_ONCE):
                    number += 1
                    shop.execute(
                        "INSERT INTO sales VALUES (?, ?, ?)",
                        (number, dice.randrange(PRODUCTS), dice.randrange(1, 900)),
                    )
                shop.execute("DELETE FROM sales WHERE id = ?", (dice.randrange(number),))
                shop.commit()
                snapshot = warehouse._parts.sources["shop"].snapshot()
                wait_for("shop", snapshot.horizon)
                snapshot.close()
            clock[0] += HOUR


def bytes_of(warehouse: Warehouse, name: str) -> float:
    """Megabytes of a view's changes."""
    return sum(file.size for file in _store(warehouse, name).delta.files()) / 1e6


def applied(warehouse: Warehouse, name: str) -> float:
    """Seconds that it takes to roll the view's base over the month."""
    row, store = warehouse._catalog.views.get(name), _store(warehouse, name)
    assert row.cn is not None
    started = time.monotonic()
    Applier(warehouse._parts.spark, store).roll(
        store.newest_base(), row.cn, row.delta_version or 0
    )
    return time.monotonic() - started


def _store(warehouse: Warehouse, name: str) -> ViewStore:
    row = warehouse._catalog.views.get(name)
    return ViewStore(warehouse.project.warehouse, row, shape_of(row))


def rows(warehouse: Warehouse, name: str) -> pa.Table:
    """All that a view shows, in order."""
    found = warehouse.view(name).read().toArrow()
    return found.sort_by([(column, "ascending") for column in found.column_names])


def measured(warehouse: Warehouse, sizes: _Sizes, told: Told) -> list[Finding]:
    """Each kind: what compression saves, and what applying takes with and without."""
    found: list[Finding] = []
    for kind in KINDS:
        pairs = names(kind, sizes.rounds)
        sizes_of = {COMMITTED: [bytes_of(warehouse, plain) for plain, _ in pairs]}
        took: list[float] = []
        for keep in ("hour", "day", None):
            told(f"{kind}: {'each ' + keep if keep else 'one range'}")
            for _, net in pairs:
                started = time.monotonic()
                warehouse.compress(net, keep=keep)
                took += [time.monotonic() - started] if keep == "hour" else []
            what = f"{NET}, each {keep}'s end stays" if keep else f"{NET} into one range"
            sizes_of[what] = [bytes_of(warehouse, net) for _, net in pairs]
        seconds = defaultdict(list)
        for number, pair in enumerate(pairs):
            ways = [*zip((COMMITTED, NET), pair, strict=True)]
            for way, name in ways[:: 1 if number % 2 else -1]:
                told(f"{kind}: apply {way}")
                seconds[way].append(applied(warehouse, name))
        first = rows(warehouse, pairs[0][0])
        assert all(rows(warehouse, name).equals(first) for pair in pairs for name in pair), kind
        found += _findings(kind, sizes_of, took, {way: s[1:] for way, s in seconds.items()})
    return found


def _findings(
    kind: str,
    sizes_of: Mapping[str, Sequence[float]],
    took: Sequence[float],
    seconds: Mapping[str, Sequence[float]],
) -> list[Finding]:
    found = [Finding(f"changes, {way}", kind, MEGABYTES, size) for way, size in sizes_of.items()]
    found += [Finding(f"apply of a month {way}", kind, SECONDS, s) for way, s in seconds.items()]
    both = zip(seconds[NET], seconds[COMMITTED], strict=True)
    ratios = [net / committed for net, committed in both]
    return [
        *found,
        Finding(f"apply {NET} / {COMMITTED}", kind, RATIO, ratios),
        Finding("compressing it, each hour's end stays", kind, SECONDS, took[1:]),
    ]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compression")
    parser.add_argument("--smoke", action="store_true", help="some hours")
    sizes = SMOKE if parser.parse_args().smoke else FULL
    told = teller()
    with (
        alone(),
        tempfile.TemporaryDirectory() as place,
        moved_clock(sizes.hours) as clock,
        steadyview.open(project(Path(place) / "month", sizes.rounds)) as warehouse,
    ):
        told("first states")
        warehouse.run_once()
        told("a month")
        month(warehouse, Path(place) / "month", sizes, clock)
        told("propagated")
        warehouse.run_once()
        warehouse.refresh([], everything=True)
        commits = warehouse.status().cn
        table = findings_table(measured(warehouse, sizes, told))
    print("# A month of changes, compressed\n")
    print("\n".join([*table, "", _NOTES.format(commits=commits, hours=sizes.hours).rstrip()]))


_NOTES = f"""
{{commits:,}} commits in {{hours}} hours, {AT_ONCE} sales each, over {PRODUCTS:,} products. `sums`
is kept per product, `rows` are the sales of every second one. Both sides are of one run, in turns,
from the base of the month's beginning; in the end all views of a kind held the same rows.
"""


if __name__ == "__main__":
    main()
