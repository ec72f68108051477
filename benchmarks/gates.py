"""Freshness of an immediate view across gates: from a commit to its rows being shown.

    python -m benchmarks.gates [--smoke]

A PostgreSQL table is written to ten times a second; one view shows every commit, another one reads
that table and a SQLite file as of each full minute. So at every minute a gate is open for both
sources. In the last minute the file is away: that gate waits for its limit.
"""

from __future__ import annotations

import argparse
import sqlite3
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

import steadyview
from benchmarks.findings import SECONDS, Finding
from benchmarks.place import Told, alone, teller
from benchmarks.report import findings_table
from examples.embedded_postgres import embedded_postgres

EVERY = 0.1
LIMIT = 3
AROUND = 0.5
"""Seconds after a full minute: what was committed then met its gate, if anything did."""
MOST = 1.0
"""Second that a gate is open whose sources all answer: so long it can hold anything back."""
_PROJECT = """[project]
name = "gates"
warehouse = "warehouse"
gate_limit = "{limit}s"

[spark]
"spark.master" = "local[2]"
"spark.ui.enabled" = "false"

[sources.pg]
type = "postgresql"
url = "{url}"
tables = ["public.t"]
audit = "off"

[sources.lite]
type = "sqlite"
path = "lite.db"
tables = ["u"]
audit = "off"
"""
_VIEWS = {
    "live": "SELECT id FROM pg.t",
    "by_the_minute": (
        "CREATE MATERIALIZED VIEW by_the_minute TBLPROPERTIES ('steadyview.policy' = 'dpda',"
        " 'steadyview.schedule' = 'cron * * * * * UTC') AS"
        " SELECT COUNT(*) AS n FROM pg.t JOIN lite.u ON t.id % 10 = u.id"
    ),
}


@dataclass
class Seen:
    """When each commit ended, and when the view showed it; wall-clock seconds."""

    committed: list[float] = field(default_factory=list)
    shown: list[float] = field(default_factory=list)
    gates: list[float] = field(default_factory=list)

    def delays(self, since: float, upto: float) -> Iterator[float]:
        """Of the commits whose place in their minute lies between."""
        for committed, shown in zip(self.committed, self.shown, strict=False):
            if since <= committed % 60 < upto:
                yield shown - committed


@contextmanager
def kept(folder: Path, url: str) -> Iterator[steadyview.Warehouse]:
    """The project with its first states, and a run that keeps it."""
    (folder / "views").mkdir()
    (folder / "steadyview.toml").write_text(_PROJECT.format(limit=LIMIT, url=url))
    for name, text in _VIEWS.items():
        (folder / "views" / f"{name}.sql").write_text(text)
    with psycopg.connect(url, autocommit=True) as pg:
        pg.execute("CREATE TABLE t (id bigint PRIMARY KEY)")
        pg.execute("ALTER TABLE t REPLICA IDENTITY FULL")
    with sqlite3.connect(folder / "lite.db") as lite:
        lite.execute("CREATE TABLE u (id INTEGER PRIMARY KEY)")
        lite.executemany("INSERT INTO u VALUES (?)", [(n,) for n in range(10)])
    stop = threading.Event()
    with steadyview.open(folder) as warehouse:
        warehouse.run_once()
        thread = threading.Thread(target=warehouse.run, args=(stop,))
        thread.start()
        try:
            yield warehouse
        finally:
            stop.set()
            thread.join()


def measure(warehouse: steadyview.Warehouse, url: str, until: float) -> Seen:
    """Commit, and look at what the view shows, until then."""
    seen, stop = Seen(), threading.Event()
    first = warehouse.status().cn

    def look() -> None:
        while not (stop.is_set() and len(seen.shown) >= len(seen.committed)):
            shown = warehouse._catalog.views.get("live").cn or 0
            missing = shown - first - len(seen.shown)
            seen.shown += [time.time()] * missing
            time.sleep(0.005)

    looking = threading.Thread(target=look)
    looking.start()
    with psycopg.connect(url, autocommit=True) as pg:
        while time.time() < until:
            pg.execute("INSERT INTO t SELECT count(*) FROM t")
            seen.committed.append(time.time())
            time.sleep(EVERY)
    stop.set()
    looking.join()
    bound = warehouse._catalog.gates.of(0, 2**62)
    seen.gates = [(gate.bound or 0) / 1e6 - gate.time / 1e6 for gate in bound]
    return seen


@contextmanager
def away(file: Path) -> Iterator[None]:
    """The file is somewhere else for a while."""
    file.rename(file.with_name("moved.db"))
    try:
        yield
    finally:
        with suppress(FileNotFoundError):
            file.with_name("moved.db").rename(file)


def measured(minutes: int, told: Told) -> tuple[Seen, Seen]:
    """Over so many full minutes, and over one without the file."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        with embedded_postgres(folder / "data") as server:
            url = server.create_database("gates")
            (folder / "project").mkdir()
            told("first states")
            with kept(folder / "project", url) as warehouse:
                told(f"{minutes} gates")
                half = (time.time() // 60 + minutes) * 60 + 30
                seen = measure(warehouse, url, half)
                told("a gate without the file")
                with away(folder / "project" / "lite.db"):
                    alone_ = measure(warehouse, url, half + 30 + 2 * LIMIT)
                alone_.gates = alone_.gates[len(seen.gates) :]
                return seen, alone_


def findings(seen: Seen, without: Seen) -> list[Finding]:
    """How fresh the immediate view was, far from gates and at them."""
    far, near = [*seen.delays(5, 59)], [*seen.delays(0, AROUND)]
    held = [*without.delays(0, AROUND)]
    view = "every commit"
    return [
        Finding("commit to shown, between gates", view, SECONDS, far),
        Finding("commit to shown, first half second behind a gate", view, SECONDS, near),
        Finding("full minute to gate closed", "by the minute", SECONDS, seen.gates, most=MOST),
        Finding(f"a source away, limit {LIMIT} s: commit to shown", view, SECONDS, held),
        Finding("the same: to the gate closed", "by the minute", SECONDS, without.gates),
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gates")
    parser.add_argument("--smoke", action="store_true", help="one gate")
    minutes = 1 if parser.parse_args(arguments).smoke else 5
    with alone():
        seen, without = measured(minutes, teller())
    print("# Freshness across gates\n")
    print("\n".join(findings_table(findings(seen, without))))
    print(_NOTES.rstrip())


_NOTES = f"""
Ten commits a second at a PostgreSQL table; a view that shows every commit, and one over that table
and a SQLite file as of each full minute (`cron * * * * *`), whose gate is open for both sources. A
commit is shown when the catalog says so; all in one process on one machine. A gate is closed when
both sources were heard from beyond its time; one that is away is waited for {LIMIT} s
(`gate_limit`). Behind a gate the view by the minute is refreshed, which the other one waits for.
"""


if __name__ == "__main__":
    main()
