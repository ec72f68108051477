"""The table on the screen, and docs/results/bench.md and bench.json."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil
from rich.console import Console
from rich.table import Table

from benchmarks.findings import Finding, shown
from benchmarks.site import SHORT, VIEWS
from benchmarks.sizes import Sizes

_HEAD = ("what", "view", "target", "median", "min - max", "verdict")
_BESIDE = (
    "Beside this page: small-batch.md, once.md, many-views.md, gates.md, compression.md, "
    "policies.md, compensation.md and together.md by the same command, tpch-queries.md by "
    "`make bench-tpch`."
)
_PACKAGES = ("pyspark", "deltalake", "pyarrow", "psycopg")


@dataclass(frozen=True)
class Results:
    """Everything a run found out."""

    sizes: Sizes
    runs: int
    findings: Sequence[Finding]
    parts: Sequence[tuple[str, list[float]]]
    machine: dict[str, str]
    seconds: dict[str, float]
    """How long the run itself took: loading, building, all."""


def machine(postgres: str, java: str) -> dict[str, str]:
    """What it ran on, without names or paths."""
    found = {
        "cores": str(os.cpu_count()),
        "memory": f"{psutil.virtual_memory().total / 2**30:.0f} GiB",
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "java": java,
        "postgresql": postgres,
    }
    return {**found, **{p: importlib.metadata.version(p) for p in _PACKAGES}}


def show(results: Results, console: Console) -> None:
    """Print the table."""
    shown_table = Table(title=_title(results))
    for column in _HEAD:
        shown_table.add_column(column)
    for row in map(_cells, results.findings):
        shown_table.add_row(*row)
    console.print(shown_table)
    console.print(_parts_table(results))


def _parts_table(results: Results) -> Table:
    table = Table(title=f"where a refresh of {results.sizes.small:,} changes spends its time (ms)")
    for column in ("part", *SHORT.values()):
        table.add_column(column)
    for name, seconds in results.parts:
        table.add_row(name, *(f"{s * 1000:.0f}" for s in seconds))
    return table


def write(results: Results, folder: Path) -> list[Path]:
    """bench.md and bench.json in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    text, data = folder / "bench.md", folder / "bench.json"
    text.write_text(_markdown(results))
    data.write_text(json.dumps(_json(results), indent=1) + "\n")
    return [text, data]


def _title(results: Results) -> str:
    s = results.sizes
    return f"TPC-H SF {s.scale:g} (and SF {s.smaller_scale:g}), {results.runs} interleaved runs"


def _cells(f: Finding) -> tuple[str, ...]:
    spread = f"{shown(min(f.values), f.unit)} - {shown(max(f.values), f.unit)}"
    return (f.what, f.view, f.target, shown(f.median, f.unit), spread, f.verdict)


def _markdown(results: Results) -> str:
    lines = ["# Speed", "", f"`make bench`: {_title(results)}. {_BESIDE}", ""]
    lines += [", ".join(f"{k} {v}" for k, v in results.machine.items()) + ".", ""]
    lines += findings_table(results.findings)
    lines += ["", _NOTES.strip(), "", f"## Parts of a refresh of {results.sizes.small:,} changes"]
    parts = [(n, *(f"{s * 1000:.0f}" for s in each)) for n, each in results.parts]
    lines += ["", "Medians in milliseconds.", "", *table(("part", *SHORT.values()), parts)]
    steps = [(step, f"{s:.0f}") for step, s in results.seconds.items()]
    lines += ["", "## The run", "", *table(("step", "seconds"), steps)]
    lines += ["", "## The views", ""]
    for name, sql in VIEWS.items():
        lines += [f"`{name}` ({SHORT[name]})", "", "```sql", sql.strip(), "```", ""]
    return "\n".join(lines)


def findings_table(findings: Sequence[Finding]) -> list[str]:
    """The lines of a Markdown table."""
    return table(_HEAD, [_cells(f) for f in findings])


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a Markdown table."""
    return [_row(head), _row(["---"] * len(head)), *map(_row, rows)]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _json(results: Results) -> dict[str, object]:
    return {
        "sizes": asdict(results.sizes),
        "runs": results.runs,
        "machine": results.machine,
        "seconds": results.seconds,
        "findings": [
            {**asdict(f), "median": f.median, "verdict": f.verdict} for f in results.findings
        ],
        "parts_of_a_small_batch": {n: dict(zip(VIEWS, s, strict=True)) for n, s in results.parts},
    }


_NOTES = """
Refresh is propagate and publish: from freezing the sources to the catalog transaction that makes
the new state current; the changes are captured by then. Recompute is what keeps a view with
`'steadyview.fallback' = 'recompute'`: the columns that the view uses are read from the sources, its
SQL runs over them, the base is written. Spark alone is what a user without us would write: the
relations lie there as Parquet files (the columns that the views use, exported once by COPY and
Arrow: a figure of its own, to be added where the files are not there anyway), the same SELECT runs
over them in a session with adaptive execution, the result is written as Parquet. Both take so long
that the views take turns, one in each round. Apply rolls a view's base and state by the changes
since the last time, when these have outgrown them: it was let happen in a row of 0.1 % batches;
what they left of a further roll is counted in proportion. Every ratio is taken within a round. One
process, one Spark session on all cores, warm; PostgreSQL runs beside it on the same cores (fsync
and autovacuum off), lineitem and orders in one database, customer in another, with the primary keys
of TPC-H and the indexes that `steadyview explain` asks for. Changes are inserts, updates and
deletes in equal parts, in transactions of an order with its lines or one customer, in proportion to
the tables' sizes. The hot row is an order: each transaction updates its status (no column of the
views) and inserts a line of it; "a column of the view": updates its date, inserts a line, deletes
the line before. Spread: the same, each transaction at another order.
"""
