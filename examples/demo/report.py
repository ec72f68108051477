"""What the demo shows at its end."""

from __future__ import annotations

import random
from bisect import bisect_left
from typing import Any

from rich.console import Console
from rich.table import Table

from examples.demo.watching import Watcher

_VIEW = "revenue_by_region"
_EVERYTHING = 1_000_000


def print_report(warehouse: Any, watcher: Watcher, done: dict[str, Any], summary: Any) -> None:
    """Numbers of the run, then the verdict of `verify` at several past commits."""
    console = Console()
    table = Table(title="What happened", title_justify="left", show_header=False)
    for row in _facts(warehouse, watcher, done, summary):
        table.add_row(*row)
    console.print(table)
    console.print(_verdicts(warehouse, watcher))


def _facts(
    warehouse: Any, watcher: Watcher, done: dict[str, Any], summary: Any
) -> list[tuple[str, str]]:
    counts = done["counts"]
    fresh = freshness(warehouse, watcher, done)
    return [
        ("transactions committed by the writers", f"{counts['sales'] + counts['crm']:,}"),
        ("rolled back by them (must leave no trace)", f"{counts['rolled back']:,}"),
        ("states of every view, each readable", f"{warehouse.status().cn:,}"),
        ("freshness, commit to visible, median", f"{quantile(fresh, 0.5):.2f} s"),
        ("freshness, 99 of 100 within", f"{quantile(fresh, 0.99):.2f} s"),
    ]


def freshness(warehouse: Any, watcher: Watcher, done: dict[str, Any]) -> list[float]:
    """Seconds from a commit at PostgreSQL to the moment its state was published, sorted."""
    cns = [cn for cn, _ in watcher.published]
    committed = {int(xid): moment for xid, moment in done["committed"].items()}
    seconds = []
    for commit in warehouse.view(_VIEW).history(_EVERYTHING):
        place = bisect_left(cns, commit.cn)
        # The first published state holds what was there before anybody looked.
        if commit.source == "sales" and commit.transaction in committed and 0 < place < len(cns):
            seconds.append(watcher.published[place][1] - committed[commit.transaction])
    return sorted(seconds)


def quantile(values: list[float], share: float) -> float:
    """The value that `share` of the sorted values do not exceed.

    >>> quantile([1.0, 2.0, 3.0, 4.0], 0.5)
    2.0
    """
    return values[max(0, int(len(values) * share + 0.5) - 1)] if values else float("nan")


def _verdicts(warehouse: Any, watcher: Watcher) -> Table:
    first, last = watcher.published[0][0], warehouse.status().cn
    past = sorted(random.Random(last).sample(range(first, last), min(4, last - first)))
    table = Table(title="verify: recomputed from the sources at past cns", title_justify="left")
    for heading in ("view", "cn", "verdict", "missing", "extra", "log rows used"):
        table.add_column(heading)
    for cn in (*past, last):
        for verdict in warehouse.verify(None, cn):
            word = "[green]equal" if verdict.equal else "[bold red]differs"
            numbers = (verdict.missing, verdict.extra, verdict.compensated)
            table.add_row(verdict.view, str(cn), word, *(f"{n:,}" for n in numbers))
    return table
