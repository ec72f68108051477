"""The live display of the demo, and its clock."""

from __future__ import annotations

import threading
import time
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from steadyview.cli.status_table import status_line, status_table


class Watcher(AbstractContextManager["Watcher"]):
    """Shows every status; sets `stop` when all views have been current for `seconds`."""

    def __init__(self, seconds: float, stop: threading.Event) -> None:
        self.seconds = seconds
        self._timer = threading.Timer(seconds, stop.set)
        self._started = 0.0
        self._last_line = 0.0
        console = Console()
        self._live = Live(console=console, refresh_per_second=4) if console.is_terminal else None

    def __enter__(self) -> Watcher:
        if self._live:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._timer.cancel()
        if self._live:
            self._live.stop()

    def progress(self, status: Any) -> None:
        """Show one status; the clock starts when every view has a first state."""
        now = time.monotonic()
        cns = [view.cn for view in status.views]
        if not self._started and cns and None not in cns:
            self._started = now
            self._timer.start()
        self._show(status, now)

    def _show(self, status: Any, now: float) -> None:
        left = self.seconds - (now - self._started) if self._started else self.seconds
        if self._live:
            head = Text(f"{max(0, left):.0f} s left", style="dim")
            self._live.update(Group(head, status_table(status)))
        elif now - self._last_line >= 5:
            self._last_line = now
            print(f"  {status_line(status)}", flush=True)
