"""Captures of a PostgreSQL table and of a SQLite file, with gates at even times; no Spark.

    python -m tests.update_log.gated FOLDER URL SECONDS       captures until it is killed

The catalog has a view that is to show every multiple of so many seconds at its sources' clocks.
"""

from __future__ import annotations

import json
import sqlite3
import sys
import threading
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import psycopg

from steadyview.catalog import Catalog, Holder, Lease, Published, ViewSpec
from steadyview.runtime import kept
from steadyview.runtime.capture import Conditions
from steadyview.runtime.captures import Captures
from steadyview.runtime.clock import ClockWatch, CountingClock, SystemClock
from steadyview.runtime.gatekeeper import LIMIT, Gatekeeper
from steadyview.sources import open_source
from steadyview.sources.contract import Owner
from steadyview.timing.schedules import EvenTicks, RefreshSchedule
from steadyview.update_log import UpdateLog

SECOND = 1_000_000
SOURCES = ("pg", "lite")


def tick_every(seconds: int) -> None:
    """Every schedule names the multiples of so many seconds, as moments of the sources' clocks."""
    ticks = EvenTicks(seconds * SECOND)
    kept.schedule = lambda text, zone: RefreshSchedule(text or "", zone, True, ticks)  # type: ignore[assignment]


def new_world(folder: Path, url: str) -> None:
    """The two databases, empty."""
    with psycopg.connect(url, autocommit=True) as pg:
        pg.execute("CREATE TABLE t (id bigint PRIMARY KEY)")
        pg.execute("ALTER TABLE t REPLICA IDENTITY FULL")
    with sqlite3.connect(folder / "lite.db") as lite:
        lite.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
        lite.execute("PRAGMA journal_mode = WAL")


@dataclass
class Captured:
    """One life of the captures."""

    catalog: Catalog
    captures: Captures
    log: UpdateLog
    watch: ClockWatch

    def end(self) -> None:
        self.captures.stop()
        for thread in self.captures._threads.values():
            thread.source.close()
        self.catalog.close()


def captured(
    folder: Path, url: str, limit: timedelta = LIMIT, clock: CountingClock | None = None
) -> Captured:
    """Captures as `run` would start them, not started yet."""
    clock = clock or SystemClock()
    catalog = Catalog.create(folder / "warehouse", clock)
    settings = {
        "pg": {"type": "postgresql", "url": url, "tables": ["t"]},
        "lite": {"type": "sqlite", "path": str(folder / "lite.db"), "tables": ["t"]},
    }
    sources, relations = [], {}
    for name, given in settings.items():
        catalog.sources.register(name, str(given["type"]))
        owner = Owner("00c0ffee", catalog.sources.state(name).proof)
        source = open_source(name, given, folder, owner)
        source.prepare(source.schemas())
        relations[name] = [catalog.sources.record_schema(r) for r in source.schemas()]
        sources.append(source)
    _view(catalog)
    log, watch = UpdateLog(folder / "warehouse" / "log"), ClockWatch(clock)
    catalog.commits.trust = watch.check
    conditions = Conditions(Gatekeeper(catalog, clock, limit), watch)
    captures = Captures(sources, relations, catalog, log, conditions=conditions)
    return Captured(catalog, captures, log, watch)


def _view(catalog: Catalog) -> None:
    if catalog.views.find("late") is not None:
        return
    definition = {
        "refresh": {"steadyview.policy": "dpda", "steadyview.schedule": "daily at 00:00"},
        "relations": [{"source": name} for name in SOURCES],
        "inputs": {},
    }
    spec = ViewSpec("late", "", "complete", "incremental", json.dumps(definition), "")
    row = catalog.views.add(spec, 0)
    catalog.views.publish([Published(row.id, 0, 0, 0, 0)])


def main() -> None:
    folder, url, seconds = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    tick_every(seconds)
    life = captured(folder, url)
    with Lease.acquire(folder / "warehouse", Holder(0, "", 0, "gated")), life.catalog.held():
        life.captures.start()
        sys.stdout.write("captures\n")
        sys.stdout.flush()
        pause = threading.Event()
        while not (errors := life.captures.errors()):
            pause.wait(0.05)
        sys.stdout.write(f"{type(min(errors.items())[1]).__name__}\n")
        sys.stdout.flush()
        pause.wait()


if __name__ == "__main__":
    main()
