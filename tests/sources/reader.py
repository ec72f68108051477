"""A reader in a process of its own, to be killed or measured.

    python -m tests.sources.reader STATE MODE

STATE is a JSON file: settings, tables, warehouse, position, seq, proof. In mode "log" every chunk
is appended, durably, as one line to STATE.log before it is acknowledged, and its line number is
printed. In mode "measure" chunks are counted until the given number of row images has come; then
the peak memory is printed.
"""

from __future__ import annotations

import json
import os
import re
import resource
import sys
from pathlib import Path
from typing import Any

from steadyview.changes import Chunk
from steadyview.sources import Monitor, open_source
from steadyview.sources.contract import Owner


def opened(state: dict[str, Any]) -> Monitor:
    settings = {**state["settings"], "tables": state["tables"]}
    source = open_source("src", settings, Path(state["folder"]), Owner(state["warehouse"]))
    position = source.position(state["position"])
    return source.monitor(source.schemas(), position, state["seq"], state["proof"])


def as_line(chunk: Chunk, proof: str) -> str:
    rows = [
        [list(name.path), row] for name, table in chunk.rows.items() for row in table.to_pylist()
    ]
    seqs = [t.seq for t in chunk.transactions]
    place = {"position": str(chunk.position), "open": chunk.open, "proof": proof}
    return json.dumps({"rows": rows, "seqs": seqs, **place})


def keep_log(state: dict[str, Any], path: Path) -> None:
    monitor = opened(state)
    with path.open("a") as log:
        for number in range(1_000_000):
            chunk = monitor.poll(60)
            if chunk is None:
                return
            log.write(as_line(chunk, monitor.proof) + "\n")
            log.flush()
            os.fsync(log.fileno())
            if not chunk.open:
                monitor.acknowledge(chunk.position)
            sys.stdout.write(f"{number}\n")
            sys.stdout.flush()


def peak_kb() -> int:
    """This program's own peak: `getrusage` has that of the process that started it as well."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = re.search(r"VmHWM:\s*(\d+) kB", status.read_text())
    assert found is not None
    return int(found[1])


def measure(state: dict[str, Any]) -> None:
    monitor = opened(state)
    images, opens, largest, ended = 0, 0, 0, 0
    while not ended:
        chunk = monitor.poll(120)
        assert chunk is not None
        size = sum(t.num_rows for t in chunk.rows.values())
        images, opens, largest = images + size, opens + chunk.open, max(largest, size)
        ended += len(chunk.transactions)
    peak = peak_kb()
    sys.stdout.write(
        json.dumps(
            {"images": images, "open": opens, "largest": largest, "ended": ended, "kb": peak}
        )
    )


if __name__ == "__main__":
    described = json.loads(Path(sys.argv[1]).read_text())
    if sys.argv[2] == "log":
        keep_log(described, Path(sys.argv[1] + ".log"))
    else:
        measure(described)
