"""A process that keeps the stores of a project up, and is killed before or after some operation.

    python -m tests.crash.store_driver PROJECT NUMBER before|after

NUMBER counts what changes a store: every call with records, each move of a position, and so on. It
needs no Spark: batches are small, and each call has one record or two.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

import steadyview
from steadyview.runtime import store_keeping
from steadyview.runtime.managers import lanes, log_records
from steadyview.runtime.store_keeping import StoreKeepers
from steadyview.serving import writing
from steadyview.serving.stores import open_store

CHANGING = ("begin", "switch", "sweep", "upsert", "add", "put", "move", "reclaim", "forget")


class Doomed:
    """A store whose client dies at the n-th change."""

    left = 0
    when = "after"

    def __init__(self, store: Any) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        return self._counted(found) if name in CHANGING else found

    def _counted(self, call: Any) -> Any:
        def called(*arguments: Any) -> Any:
            Doomed.left -= 1
            if Doomed.left == 0 and Doomed.when == "before":
                os.kill(os.getpid(), signal.SIGKILL)
            result = call(*arguments)
            if Doomed.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        return called


def main() -> None:
    folder, number, Doomed.when = sys.argv[1:]
    Doomed.left = int(number)
    writing.ROWS = lanes.TOGETHER = log_records.ROWS_TOGETHER = 2
    store_keeping.open_store = lambda *given: Doomed(open_store(*given))
    with steadyview.open(folder) as warehouse:
        for trouble in StoreKeepers(warehouse._parts).now():
            raise trouble.error


if __name__ == "__main__":
    main()
