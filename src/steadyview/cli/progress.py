"""What `run` shows while it runs: a live table where somebody watches, else a line now and then."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

from rich.live import Live
from rich.text import Text

from steadyview.cli.status_table import status_line, status_table
from steadyview.cli.tables import console, note
from steadyview.cli.values import json_value

if TYPE_CHECKING:
    from steadyview.runtime.status import Status

Progress = Callable[["Status"], None]
_SECONDS_BETWEEN_LINES = 5.0


def progress_display() -> AbstractContextManager[Progress]:
    """The display that fits standard error: a live table on a terminal, else plain lines."""
    return _live_table() if console(stderr=True).is_terminal else _plain_lines()


@contextmanager
def _live_table() -> Iterator[Progress]:
    with Live(
        Text("starting Spark and connecting to the sources ..."),
        console=console(stderr=True),
        refresh_per_second=4,
    ) as live:
        yield lambda status: live.update(status_table(status))


@contextmanager
def _plain_lines() -> Iterator[Progress]:
    last, due = "", float("-inf")

    def show(status: Status) -> None:
        nonlocal last, due
        line, now = status_line(status), time.monotonic()
        if line != last and now >= due:
            note(line)
            last, due = line, now + _SECONDS_BETWEEN_LINES

    yield show


@contextmanager
def json_lines() -> Iterator[Progress]:
    """Every status as one line of JSON on standard output."""

    def show(status: Status) -> None:
        print(json.dumps(json_value(status.to_dict()), ensure_ascii=False), flush=True)

    yield show
