"""Reading a view that is behind: compensated for the query, refreshed and read, or recomputed.

    python -m benchmarks.compensation [--smoke]

Three views of one SELECT are behind by the same part of their relations' rows: 0.1, 1, 5 and 20 %.
The first is read with a bound of staleness of zero, so that its changes are computed for the query;
the second is refreshed, then read; of the third the query computes the SELECT from the sources. The
changes are captured by then. All three must give the same rows.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import steadyview
from benchmarks import tpch
from benchmarks.findings import RATIO, SECONDS, Finding
from benchmarks.place import COPIES, Told, alone, postgres, teller
from benchmarks.report import findings_table
from benchmarks.site import AGGREGATE, VIEWS, template, write_project
from benchmarks.sizes import TOTAL_ROWS
from benchmarks.tpch import Databases
from benchmarks.workload import Workload
from steadyview.runtime.warehouse import Warehouse

WAYS = {"compensated": "dpda", "refreshed": "dpda", "recomputed": "snapshot"}
"""The views are called like the way in which they are read; with their policies."""
SAME = "SELECT COUNT(*) AS n, BIT_XOR(XXHASH64(*)) AS rows FROM {}"


@dataclass(frozen=True)
class _Sizes:
    scale: float
    shares: tuple[float, ...]
    rounds: int


FULL = _Sizes(0.1, (0.001, 0.01, 0.05, 0.2), 3)
SMOKE = _Sizes(0.01, (0.001, 0.2), 1)
Taken = dict[str, list[float]]


@dataclass
class Bench:
    """An open warehouse whose views are brought up to date between two readings."""

    warehouse: Warehouse
    work: Workload
    taken: dict[float, Taken] = field(default_factory=dict)

    def round(self, share: float, rows: int) -> None:
        """Change so many rows, and read in all three ways."""
        self.work.mixed(max(round(rows * share), 1))
        self.warehouse.run_once()
        found = {}
        for way in WAYS:
            begun = time.perf_counter()
            if way == "refreshed":
                self.warehouse.refresh([way])
            bound = None if way == "refreshed" else timedelta(0)
            answer = self.warehouse.query(SAME.format(way), max_staleness=bound)
            found[way] = str(answer.collect())
            seconds = time.perf_counter() - begun
            self.taken.setdefault(share, {}).setdefault(way, []).append(seconds)
        if len({*found.values()}) != 1:
            raise RuntimeError(f"answers differ: {found}")
        self.warehouse.refresh([], everything=True)


def project(folder: Path, databases: Databases) -> Path:
    """A view for each way."""
    write_project(folder, databases, (), "compensation")
    for name, policy in WAYS.items():
        create = f"CREATE MATERIALIZED VIEW {name} TBLPROPERTIES ('steadyview.policy' = '{policy}')"
        (folder / "views" / f"{name}.sql").write_text(f"{create} AS\n{VIEWS[AGGREGATE]}")
    return folder


def measured(sizes: _Sizes, cache: Path, told: Told) -> dict[float, Taken]:
    """Seconds by share and way; the first round of all shares is warm-up, if there are more."""
    rows = int(TOTAL_ROWS * sizes.scale)
    with ExitStack() as closing:
        folder = Path(closing.enter_context(tempfile.TemporaryDirectory()))
        server = closing.enter_context(postgres(cache))
        databases = tpch.copy_of(template(server, sizes.scale, folder, told), COPIES)
        work = Workload(databases)
        work.prepare()
        told("first states")
        warehouse = closing.enter_context(steadyview.open(project(folder / "kept", databases)))
        warehouse.run_once()
        bench = Bench(warehouse, work)
        if sizes is FULL:
            told("warm-up")
            bench.round(sizes.shares[0], rows)
            bench.taken.clear()
        for number in range(sizes.rounds):
            for share in sizes.shares:
                told(f"round {number + 1} of {sizes.rounds}: {share:.1%} behind")
                bench.round(share, rows)
        return bench.taken


def findings(taken: dict[float, Taken]) -> list[Finding]:
    """Ratios of the same round first, then seconds."""
    found = []
    for share, ways in taken.items():
        for way in ("compensated", "refreshed"):
            ratios = [a / b for a, b in zip(ways[way], ways["recomputed"], strict=True)]
            title = f"{share:.1%} behind: {way} / recomputed"
            found.append(Finding(title, "join + aggregate", RATIO, ratios))
    for share, ways in taken.items():
        for way, seconds in ways.items():
            title = f"{share:.1%} behind: {way}"
            found.append(Finding(title, "join + aggregate", SECONDS, seconds))
    return found


_NOTES = """
One view over three relations in two PostgreSQL databases, TPC-H SF {scale:g}. Compensated: a query
with `--max-staleness 0s` over a `dpda` view. Refreshed: `refresh` of such a view, then the query.
Recomputed: the query over a `snapshot` view, whose SELECT is computed from the sources. Each from
call to answer, without a `run`: taking the lease and beginning to capture are in all of them. The
share is of all rows of the relations, and every row is changed at most once. All three gave the
same answers.
"""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compensation")
    parser.add_argument("--smoke", action="store_true", help="very little data, one round")
    sizes = SMOKE if parser.parse_args().smoke else FULL
    with alone() as cache:
        taken = measured(sizes, cache, teller())
    print("# Reading a view that is behind\n")
    print("\n".join(findings_table(findings(taken))))
    print(_NOTES.format(scale=sizes.scale).rstrip())


if __name__ == "__main__":
    main()
