"""Ctrl-C and SIGTERM as a wish to stop: the batch at hand is finished first.

The work runs in a thread of its own. The main thread only waits for signals, and Spark, which takes
over the handling of Ctrl-C when it starts in the main thread, leaves it alone.
A second signal does not wait: the process ends at once, which is safe too, because every durable
step can be redone.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from types import FrameType

from steadyview.cli.reporting import ExitCode
from steadyview.cli.tables import note

_SIGNALS = (signal.SIGINT, signal.SIGTERM)

_LOOK_UP = 0.2
"""Seconds. Python looks for signals between two waits, and one may come just as a wait begins."""


def run_until_signalled(
    work: Callable[[threading.Event], None], told: str = "stopping after this batch"
) -> None:
    """Call `work` with an event that the first signal sets; return or raise what it does.

    `told`: what is said then.
    """
    stop = threading.Event()
    outcome: Future[None] = Future()
    worker = threading.Thread(target=_carry_out, args=(work, stop, outcome), daemon=True)
    with _wishes(stop, told):
        worker.start()
        while worker.is_alive():
            worker.join(_LOOK_UP)
    outcome.result()


def _carry_out(
    work: Callable[[threading.Event], None], stop: threading.Event, outcome: Future[None]
) -> None:
    try:
        work(stop)
    except BaseException as error:  # noqa: BLE001  raised again in the main thread
        outcome.set_exception(error)
    else:
        outcome.set_result(None)


@contextmanager
def _wishes(stop: threading.Event, told: str) -> Iterator[None]:
    def wish(_signal: int, _frame: FrameType | None) -> None:
        if stop.is_set():
            os._exit(ExitCode.INTERRUPTED)
        note(f"{told} (again: at once)")
        stop.set()

    before = {number: signal.signal(number, wish) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
