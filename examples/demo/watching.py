"""The live display of the demo, and its clock."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from steadyview.cli.status_table import status_line, status_table

_SECONDS_BETWEEN_LINES = 5.0


class Watcher:
    """Shows every status. Its clock starts when every view has a first state."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.time_is_up = False
        self._started: float | None = None
        self._last_line = float("-inf")
        self._timer: threading.Timer | None = None
        self._live: Live | None = None
        self._stop = threading.Event()

    @contextmanager
    def showing(self, stop: threading.Event) -> Iterator[None]:
        """Display until the end of the block; `stop` is set when the time is up."""
        console = Console()
        self._stop = stop
        self._live = Live(console=console, refresh_per_second=4) if console.is_terminal else None
        try:
            if self._live:
                self._live.start()
            yield
        finally:
            if self._timer:
                self._timer.cancel()
            if self._live:
                self._live.stop()

    def progress(self, status: Any) -> None:
        """Take one status."""
        now = time.monotonic()
        cns = [view.cn for view in status.views]
        if self._started is None and cns and None not in cns:
            self._started = now
            self._timer = threading.Timer(self.seconds, self._end)
            self._timer.start()
        self._show(status, now)

    def _end(self) -> None:
        # A Ctrl-C before this is no end of time, however long the batch at hand still takes.
        self.time_is_up = not self._stop.is_set()
        self._stop.set()

    def _show(self, status: Any, now: float) -> None:
        left = self.seconds - (now - self._started) if self._started else self.seconds
        if self._live:
            head = Text(f"{max(0, left):.0f} s left", style="dim")
            self._live.update(Group(head, status_table(status)))
        elif now - self._last_line >= _SECONDS_BETWEEN_LINES:
            self._last_line = now
            print(f"  {status_line(status)}", flush=True)
