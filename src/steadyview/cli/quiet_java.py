"""Java prints a warning about a module that Spark uses, on every start. Keep that line from people.

Children inherit our standard error as file descriptor 2. It becomes a pipe; what comes through is
passed on to the real standard error, line by line, without that one line.
"""

from __future__ import annotations

import os
import sys
import threading

_UNWANTED = b"WARNING: Using incubator modules: jdk.incubator.vector"


def hide_incubator_warning() -> None:
    """From here on; our own messages still go straight to the real standard error."""
    real = os.dup(2)
    incoming, outgoing = os.pipe()
    os.dup2(outgoing, 2)
    os.close(outgoing)
    sys.stderr = os.fdopen(
        os.dup(real), "w", encoding="utf-8", errors="backslashreplace", buffering=1
    )
    threading.Thread(target=_pass_on, args=(incoming, real), daemon=True).start()


def _pass_on(incoming: int, real: int) -> None:
    with os.fdopen(incoming, "rb") as lines:
        for line in lines:
            if not line.startswith(_UNWANTED):
                os.write(real, line)
