"""Named places, one after every durable step, at which a test may kill the process.

`STEADYVIEW_CRASH_AT=log-committed` ends the process (SIGKILL: nothing is cleaned up, as in a power
cut) the first time that place is reached; `log-committed:3` the third time. Without the variable a
crash point costs two lookups. `BATCH`, `TIDYING`, `BUILD`, `LIFE`, `READERS` and `SERVING` name
them all, in the order in which a batch, the housekeeping after it, a long first build, a change of
view files, a reader of changes and a store pass them, so that a test can loop over them; an unknown
name is refused, so that none is missed.
"""

from __future__ import annotations

import os
import signal
from collections import Counter

VARIABLE = "STEADYVIEW_CRASH_AT"

BATCH = (
    "log-file-written",
    "log-committed",
    "admitted",
    "answers-stored",
    "delta-written",
    "state-committed",
    "steps-committed",
    "delta-committed",
    "base-written",
    "base-committed",
    "published",
    "settled",
    "acknowledged",
    "table-written",
    "table-committed",
    "table-placed",
)
TIDYING = (
    "states-forgotten",
    "compaction-written",
    "compacted",
    "pruned",
    "delta-republished",
    "vacuumed",
    "bases-invalidated",
    "commits-forgotten",
)
BUILD = (
    "build-begun",
    "span-written",
    "span-stored",
)
LIFE = (
    "view-added",
    "given-up",
    "swapped",
    "paused",
    "change-recorded",
    "file-changed",
)
READERS = (
    "state-offered",
    "changes-offered",
    "changes-handed-out",
    "changes-acknowledged",
)
SERVING = (
    "records-begun",
    "records-written",
    "records-switched",
    "position-moved",
    "floor-raised",
)

_NAMES = frozenset(BATCH + TIDYING + BUILD + LIFE + READERS + SERVING)
_reached: Counter[str] = Counter()


def crash_point(name: str) -> None:
    """Kill this process here if the environment asks for it; otherwise nothing."""
    if name not in _NAMES:
        raise ValueError(f'unknown crash point "{name}"')
    wanted = os.environ.get(VARIABLE)
    if not wanted:
        return
    _reached[name] += 1
    place, _, time = wanted.partition(":")
    if place == name and _reached[name] == int(time or 1):
        os.kill(os.getpid(), signal.SIGKILL)
