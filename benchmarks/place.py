"""Where benchmarks keep what they load, how they tell what they do, and that only one runs."""

from __future__ import annotations

import fcntl
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks import tpch
from examples.embedded_postgres import EmbeddedPostgres, place_without_spaces

HERE = Path(__file__).resolve().parent
CACHE = HERE / ".cache"
RESULTS = HERE.parent / "docs" / "results"
COPIES = "run"
"""What the names of databases begin with that a run works on."""
Told = Callable[[str], None]


@contextmanager
def alone() -> Iterator[Path]:
    """The cache folder; two runs at once would disturb each other, and share its server."""
    CACHE.mkdir(exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.exit("another benchmark is running")
        yield CACHE


@contextmanager
def postgres(cache: Path) -> Iterator[EmbeddedPostgres]:
    """The server that keeps the templates; copies of them are dropped at the end."""
    server = EmbeddedPostgres(place_without_spaces(cache / "postgres"), tpch.SERVER).start()
    try:
        tpch.drop_copies(server, COPIES)
        try:
            yield server
        finally:
            tpch.drop_copies(server, COPIES)
    finally:
        server.stop()


def teller() -> Told:
    """Lines with seconds on standard error: standard output is for results."""
    started = time.monotonic()
    return lambda what: print(
        f"{time.monotonic() - started:6.1f} s  {what}", file=sys.stderr, flush=True
    )
