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
    """For `measured(..., mapped=...)`; in the main thread. With one job nothing is started."""
    if jobs == 1:
        yield map
        return
    # who is started while Ctrl-C is ignored ignores it, from its first moment on
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        pool = multiprocessing.get_context("spawn").Pool(jobs)
    finally:
        signal.signal(signal.SIGINT, before)
    with pool:
        yield pool.imap
