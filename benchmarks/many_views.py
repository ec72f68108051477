"""A hundred small views over ten joins, a thousand changes a batch: seconds a view and batch, warm.

    python -m benchmarks.many_views [--smoke] [--views 100] [--batches 6] [--both-ways]

Two SQLite files. Each join has views with other keys, sums and HAVING. With `--both-ways` batches
alternate between one statement for all nodes of a join, as the product does it, and one for each
node. From freezing the sources to publication; the changes are captured by then. Ends with `verify`
of all views.
"""

from __future__ import annotations

import argparse
import random
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import steadyview
from benchmarks.by_hand import ByHand, opened
from benchmarks.findings import SECONDS, Finding
from benchmarks.place import teller
from benchmarks.report import findings_table
from steadyview.runtime import grouping

CHANGES = 1_000
MOST = 0.1
"""Seconds a view and batch."""
JOINED, SINGLE, BUILT = "one statement a join", "one statement a node", "all first states"
CUSTOMERS, ORDERS, LINES = 2_000, 20_000, 40_000
SALES = """
CREATE TABLE orders (id INTEGER PRIMARY KEY, customer INTEGER, day INTEGER, status TEXT);
CREATE TABLE lines (id INTEGER PRIMARY KEY, order_id INTEGER, product INTEGER, cents INTEGER);
CREATE INDEX orders_of ON orders (customer);
CREATE INDEX lines_of ON lines (order_id);
"""
CRM = "CREATE TABLE customers (id INTEGER PRIMARY KEY, region INTEGER, size INTEGER);"
PROJECT = """[project]
name = "many"
warehouse = "warehouse"
[sources.sales]
type = "sqlite"
path = "sales.db"
tables = ["orders", "lines"]
[sources.crm]
type = "sqlite"
path = "crm.db"
tables = ["customers"]
"""
JOINS = {
    "lines_of": "sales.lines l JOIN sales.orders o ON o.id = l.order_id",
    "lines_for": (
        "sales.lines l JOIN sales.orders o ON o.id = l.order_id "
        "JOIN crm.customers c ON c.id = o.customer"
    ),
    "orders_for": "sales.orders o JOIN crm.customers c ON c.id = o.customer",
    "open_lines": "sales.lines l JOIN sales.orders o ON o.id = l.order_id AND o.status = 'open'",
    "large": "sales.orders o JOIN crm.customers c ON c.id = o.customer AND c.size > 5",
    "kept_lines": "sales.lines l LEFT JOIN sales.orders o ON o.id = l.order_id",
    "kept_orders": "sales.orders o LEFT JOIN crm.customers c ON c.id = o.customer",
    "orders": "sales.orders o",
    "lines": "sales.lines l",
    "dear_lines": "sales.lines l JOIN sales.orders o ON o.id = l.order_id AND l.cents > 500",
}
KEYS = {
    "l": ("l.product", "l.product % 7"),
    "o": ("o.day", "o.status"),
    "c": ("c.region", "c.size"),
}
SUMS = {"l": ("SUM(l.cents)", "AVG(l.cents)"), "o": ("SUM(o.day)", "COUNT(o.day)"), "c": ()}


def views(many: int) -> dict[str, str]:
    """Their texts: the joins in turn, each time with the next key and sums."""
    found: dict[str, str] = {}
    rest = {join: _aggregates(text) for join, text in JOINS.items()}
    while len(found) < many:
        for join, texts in rest.items():
            if len(found) < many:
                found[f"{join}_{len(found)}"] = next(texts)
    return found


def _aggregates(join: str) -> Iterator[str]:
    tables = [t for t in KEYS if f" {t}" in join and f" {t} " in f"{join} "]
    keys = [key for t in tables for key in KEYS[t]]
    sums = [f"{s} AS s{i}" for i, s in enumerate(s for t in tables for s in SUMS[t])]
    for number in range(1_000):
        key = keys[number % len(keys)]
        more = sums[: number // len(keys) % (len(sums) + 1)]
        having = f" HAVING COUNT(*) > {number}" if number >= len(keys) * (len(sums) + 1) else ""
        listed = ", ".join([f"{key} AS k", "COUNT(*) AS n", *more])
        yield f"SELECT {listed} FROM {join} GROUP BY {key}{having}"


class Shop:
    """The two files, and changes to them."""

    def __init__(self, folder: Path) -> None:
        self._sales, self._crm = folder / "sales.db", folder / "crm.db"
        self._dice = random.Random(1)
        orders = ((i, self._customer(), i % 90, "open") for i in range(ORDERS))
        lines = ((i, i % ORDERS, i % 50, i % 900) for i in range(LINES))
        customers = ((i, i % 9, i % 12) for i in range(CUSTOMERS))
        with self._open() as (sales, crm):
            sales.executescript(SALES)
            sales.executemany("INSERT INTO orders VALUES (?, ?, ?, ?)", orders)
            sales.executemany("INSERT INTO lines VALUES (?, ?, ?, ?)", lines)
            crm.executescript(CRM)
            crm.executemany("INSERT INTO customers VALUES (?, ?, ?)", customers)
            sales.commit()
            crm.commit()
        self._next = LINES

    @contextmanager
    def _open(self) -> Iterator[tuple[sqlite3.Connection, sqlite3.Connection]]:
        paths = (self._sales, self._crm)
        with closing(sqlite3.connect(paths[0])) as one, closing(sqlite3.connect(paths[1])) as two:
            yield one, two

    def _customer(self) -> int:
        return self._dice.randrange(CUSTOMERS)

    def change(self) -> None:
        """A thousand changes, ten to a transaction."""
        with self._open() as (sales, crm):
            for _ in range(CHANGES // 10):
                order, status = self._dice.randrange(ORDERS), self._dice.choice(["open", "paid"])
                sales.execute("UPDATE orders SET status = ? WHERE id = ?", (status, order))
                for _ in range(5):
                    self._next += 1
                    new, order = self._next, self._dice.randrange(ORDERS)
                    row = (new, order, new % 50, new % 900)
                    sales.execute("INSERT INTO lines VALUES (?, ?, ?, ?)", row)
                gone = [(self._dice.randrange(LINES),) for _ in range(3)]
                sales.executemany("DELETE FROM lines WHERE id = ?", gone)
                sales.commit()
                row = (self._dice.randrange(9), self._customer())
                crm.execute("UPDATE customers SET region = ? WHERE id = ?", row)
                crm.commit()


def main() -> None:
    """Measure, print, verify."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.many_views")
    parser.add_argument("--smoke", action="store_true", help="four views, one batch")
    parser.add_argument("--views", type=int, default=100)
    parser.add_argument("--batches", type=int, default=6, help="of each way")
    parser.add_argument("--both-ways", action="store_true", help="also a statement for each node")
    asked = parser.parse_args()
    many, warm_ups, batches = (4, 0, 1) if asked.smoke else (asked.views, 2, asked.batches)
    ways = {JOINED: grouping._MEMBERS, **({SINGLE: 1} if asked.both_ways else {})}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        shop = Shop(folder)
        (folder / "steadyview.toml").write_text(PROJECT)
        (folder / "views").mkdir()
        for name, text in views(many).items():
            (folder / "views" / f"{name}.sql").write_text(text)
        with opened(folder) as kept:
            found = _measured(kept, shop, ways, warm_ups, batches)
        with steadyview.open(folder) as warehouse:
            wrong = [v for v in warehouse.verify() if not v.equal]
    _report(found, many, wrong=len(wrong), brief=asked.smoke)


def _measured(
    views: ByHand, shop: Shop, ways: dict[str, int], warm_ups: int, batches: int
) -> dict[str, list[float]]:
    """Seconds of the batches of each way, after some of warm-up, and of all first states."""
    told = teller()
    told("first states")
    taken = {BUILT: [views.build()], **{way: [] for way in ways}}
    for number in range(warm_ups + batches):
        for way, members in ways.items():
            grouping._MEMBERS = members
            shop.change()
            views.capture()
            took = views.refresh_all()
            told(f"{'warm-up' if number < warm_ups else 'batch'}, {way}: {took:.2f} s")
            if number >= warm_ups:
                taken[way].append(took)
    return taken


def _report(taken: dict[str, list[float]], many: int, *, wrong: int, brief: bool) -> None:
    most = None if brief else MOST
    a_view = [seconds / many for seconds in taken[JOINED]]
    what, each = f"{CHANGES:,} changes", f"{many} views"
    found = [Finding(f"{what}: a view and batch", each, SECONDS, a_view, most=most)]
    for way, seconds in taken.items():
        title = way if way == BUILT else f"{what}: a batch, {way}"
        found.append(Finding(title, each, SECONDS, seconds))
    print(f"# {many} views over {min(many, len(JOINS))} joins\n")
    print("\n".join(findings_table(found)))
    print(f"\nVerified in the end: {wrong} of {many} views differ.")


if __name__ == "__main__":
    main()
