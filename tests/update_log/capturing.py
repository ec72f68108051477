"""A process that captures a PostgreSQL table and is killed with a transaction in hand.

    python -m tests.update_log.capturing WAREHOUSE URL
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

from steadyview.catalog import Catalog
from steadyview.runtime import capture
from steadyview.runtime.capture import Capture
from steadyview.sources import open_source
from steadyview.sources.contract import Owner
from steadyview.update_log import UpdateLog
from tests.catalog.clocks import SetClock

HELD_SECONDS = 30.0


def captured(warehouse: Path, url: str) -> Capture:
    """A capture of table "t", as `run` would start it now."""
    catalog = Catalog.create(warehouse, SetClock())
    catalog.sources.register("src", "postgresql")
    owner = Owner("00c0ffee", catalog.sources.state("src").proof)
    settings = {"type": "postgresql", "url": url, "tables": ["t"]}
    source = open_source("src", settings, warehouse, owner)
    source.prepare(source.schemas())
    relations = [catalog.sources.record_schema(r) for r in source.schemas()]
    log = UpdateLog(warehouse / "log")
    made = Capture(source, relations, catalog, log, capture.Conditions.free(catalog))
    made.start()
    return made


def hold(made: Capture, changes: int) -> None:
    """Until so many changes were polled, and the thread has gone round a few times since."""
    until = time.monotonic() + 60
    while made.changes < changes:
        assert made.is_alive(), made.error
        assert time.monotonic() < until, "nothing was captured"
        time.sleep(0.01)
    time.sleep(1.0)


def slowly() -> None:
    """What was polled stays in hand for long; an idle source is kept up at every turn."""
    capture.FLUSH_SECONDS, capture.IDLE_SECONDS = HELD_SECONDS, 0.0


if __name__ == "__main__":
    slowly()
    hold(captured(Path(sys.argv[1]), sys.argv[2]), 1)
    os.kill(os.getpid(), signal.SIGKILL)
