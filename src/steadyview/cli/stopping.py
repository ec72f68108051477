"""Ctrl-C and SIGTERM as a wish to stop: the batch at hand is finished first.

A second Ctrl-C does not wait: it interrupts, which is safe too (every durable step can be redone).
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from steadyview.cli.tables import note

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def stopped_by_signals(stop: threading.Event) -> Iterator[None]:
    """Set `stop` on the first signal, raise KeyboardInterrupt on the second; main thread only."""

    def wish(_signal: int, _frame: FrameType | None) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()
        note("stopping after this batch (again: at once)")

    before = {number: signal.signal(number, wish) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
