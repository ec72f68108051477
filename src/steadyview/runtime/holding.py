"""Who we are when we take the lease of a warehouse."""

from __future__ import annotations

import os
import socket

from steadyview.catalog import Clock, Holder


def this_process(command: str, clock: Clock) -> Holder:
    """This process, for whoever is refused the lease meanwhile."""
    return Holder(os.getpid(), socket.gethostname(), clock.now_us(), f"steadyview {command}")
