"""Several processes that measure. The result does not depend on how many there are.

Processes are started anew, not forked: whoever uses this may have threads. They leave Ctrl-C to the
one that started them, which ends them.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from steadyview.simulation.measuring import Mapped


@contextmanager
def workers(jobs: int) -> Iterator[Mapped]:
    """For `measured(..., mapped=...)`. With one job nothing is started."""
    if jobs == 1:
        yield map
        return
    with multiprocessing.get_context("spawn").Pool(jobs, _deaf_to_interrupts) as pool:
        yield pool.imap


def _deaf_to_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
