"""A process that captures transactions 1..N in flushes of two, until it is done or killed.

    python crashing.py WAREHOUSE N

What `runtime` does, without a source: recover, then append, flush, admit. Started again, it goes on
where the catalog says.
"""

from __future__ import annotations

import sys
from pathlib import Path

from steadyview.catalog import Catalog
from steadyview.update_log import UpdateLog
from tests.catalog.clocks import SetClock
from tests.update_log.captured import SHOP, chunk


def capture(warehouse: Path, upto: int) -> None:
    with Catalog.create(warehouse, SetClock()) as catalog:
        catalog.sources.register("sales", "postgresql")
        log = UpdateLog(warehouse / "log")
        state = catalog.sources.state("sales")
        number = log.recover("sales", state.flush)
        writer = log.writer("sales", SHOP, number, state.last_seq + 1)
        for seq in range(state.last_seq + 1, upto + 1, 2):
            writer.append(chunk([s for s in (seq, seq + 1) if s <= upto]))
            catalog.commits.admit(writer.flush())


if __name__ == "__main__":
    capture(Path(sys.argv[1]), int(sys.argv[2]))
