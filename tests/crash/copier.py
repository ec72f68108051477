"""A process that keeps copies of views outside the warehouse, and may be killed at any moment.

    python -m tests.crash.copier PROJECT COPIES VIEW...

COPIES is a SQLite file. A delivery's rows and its position are kept in one transaction of it, then
acknowledged; so each change is in there exactly once. Ends by itself with `--once` before PROJECT,
when it has caught up.
"""

from __future__ import annotations

import json
import sqlite3
import sys
import threading
from contextlib import ExitStack, closing
from pathlib import Path

import pyarrow as pa

import steadyview
from steadyview.runtime.subscribing import Delivery

TABLES = """
CREATE TABLE IF NOT EXISTS rows (view TEXT, row TEXT, count INTEGER, PRIMARY KEY (view, row));
CREATE TABLE IF NOT EXISTS positions (view TEXT PRIMARY KEY, epoch INTEGER, cn INTEGER);
"""
ADD = """INSERT INTO rows VALUES (?, ?, ?)
    ON CONFLICT DO UPDATE SET count = count + excluded.count"""
LOOK = 0.1


def copied(project: str, copies: Path, views: list[str], *, once: bool) -> None:
    """Follow the views, each under a subscription of its name."""
    with ExitStack() as closes:
        warehouse = closes.enter_context(steadyview.open(project))
        kept = closes.enter_context(closing(sqlite3.connect(copies, isolation_level=None)))
        kept.executescript(TABLES)
        readers = {v: closes.enter_context(warehouse.subscribe(v, f"copy_{v}")) for v in views}
        while True:
            found = False
            for view, reader in readers.items():
                if (delivery := reader.next()) is not None:
                    found = True
                    take(kept, view, delivery)
                    reader.acknowledge()
            if not found and once:
                return
            if not found:
                threading.Event().wait(LOOK)


def take(kept: sqlite3.Connection, view: str, delivery: Delivery) -> None:
    """Keep what is not in there yet."""
    kept.execute("BEGIN IMMEDIATE")
    asked = "SELECT cn FROM positions WHERE view = ? AND epoch = ?"
    known = kept.execute(asked, (view, delivery.epoch)).fetchone()
    last = -1 if known is None else known[0]
    if delivery.state and last < delivery.cn:
        kept.execute("DELETE FROM rows WHERE view = ?", (view,))
    for table in delivery.tables():
        kept.executemany(ADD, [(view, row, n) for row, n, cn in told(table) if cn > last])
    kept.execute("DELETE FROM rows WHERE count = 0")
    position = (view, delivery.epoch, max(last, delivery.cn))
    kept.execute("INSERT OR REPLACE INTO positions VALUES (?, ?, ?)", position)
    kept.execute("COMMIT")


def told(table: pa.Table) -> list[tuple[str, int, int]]:
    """Rows as texts, with count and cn."""
    columns = [column.to_pylist() for column in table.columns]
    return [(as_text(row), n, cn) for *row, n, cn, _ in zip(*columns, strict=True)]


def as_text(row: list[object]) -> str:
    """The same for the same row."""
    return json.dumps(row, default=str)


if __name__ == "__main__":
    words = sys.argv[1:]
    once = words[0] == "--once"
    place, file, *names = words[1:] if once else words
    copied(place, Path(file), names, once=once)
