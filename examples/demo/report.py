"""What the demo shows at its end: numbers, verdicts, and what would have gone wrong."""

from __future__ import annotations

import random
from bisect import bisect_left
from typing import Any

from rich.console import Console
from rich.table import Table

from steadyview.catalog import BatchRecord, Catalog
from steadyview.runtime.clock import SystemClock
from steadyview.update_log import UpdateLog

_SOURCE = "sales"
_ALL = 1_000_000
_COLD = 3


def print_report(warehouse: Any, shadow: Any, done: dict[str, Any]) -> int:
    """Numbers of the run, the culprit's, the verdicts of `verify`; a cn from the run's middle."""
    console = Console()
    folder = warehouse.project.warehouse
    with Catalog.open(folder, SystemClock()) as catalog:
        batches = _batches(catalog)
        published = publications(catalog, UpdateLog(folder / "log"), batches)
        captured = catalog.commits.last_cn()
    console.print(_numbers(captured, batches, done, published))
    console.print(_culprit(warehouse.compare(shadow)))
    console.print("· recomputing past states from the sources, to compare ...")
    console.print(_verdicts(warehouse, batches))
    return (batches[0].from_cn + captured) // 2


def _batches(catalog: Catalog) -> list[BatchRecord]:
    """Every batch that took in transactions, oldest first."""
    return [b for b in reversed(catalog.batches.recent(_ALL)) if b.transactions]


def _numbers(
    captured: int, batches: list[BatchRecord], done: dict[str, Any], published: dict[int, float]
) -> Table:
    counts = done["counts"]
    transactions = sum(batch.transactions for batch in batches)
    lookups = sum(batch.lookups for batch in batches)
    # in the first batches Java compiles what the others only run
    warm = batches[min(_COLD, len(batches)) - 1].finished / 1_000_000
    fresh = freshness(published, done["committed"], warm)
    table = Table(title="What happened", title_justify="left", show_header=False)
    for what, number in (
        ("transactions captured at both databases", f"{captured:,}"),
        ("rolled back there, and seen nowhere", f"{counts['rolled back']:,}"),
        ("new states of each view, one a transaction", f"{transactions:,}"),
        ("batches in which they were computed", f"{len(batches):,}"),
        ("lookups at the sources, for all views", f"{lookups:,}"),
        ("lookups per transaction", f"{lookups / max(1, transactions):.3f}"),
        (f"commit to visible, after {_COLD} batches: median", f"{quantile(fresh, 0.5):.2f} s"),
        ("commit to visible: 99 of 100 within", f"{quantile(fresh, 0.99):.2f} s"),
    ):
        table.add_row(what, number)
    return table


def publications(catalog: Catalog, log: UpdateLog, batches: list[BatchRecord]) -> dict[int, float]:
    """When each transaction of PostgreSQL, named by its xid, became visible in the views."""
    ends = [batch.to_cn for batch in batches]
    xids = dict(zip(*(c.to_pylist() for c in log.transactions(_SOURCE).columns), strict=True))
    rows = catalog.commits.commit_rows(_SOURCE, 1, catalog.sources.state(_SOURCE).last_seq)
    moments = {}
    for seq, cn in zip(*(column.to_pylist() for column in rows.columns), strict=True):
        place = bisect_left(ends, cn)
        if cn > batches[0].from_cn and place < len(ends):
            moments[xids[seq]] = batches[place].finished / 1_000_000
    return moments


def freshness(
    published: dict[int, float], committed: dict[str, float], since: float
) -> list[float]:
    """Seconds from commit to publication of what was committed after `since`, sorted."""
    moments = {int(xid): moment for xid, moment in committed.items() if moment >= since}
    return sorted(published[xid] - moments[xid] for xid in moments if xid in published)


def quantile(values: list[float], share: float) -> float:
    """The value that `share` of the sorted values do not exceed.

    >>> quantile([1.0, 2.0, 3.0, 4.0], 0.5)
    2.0
    """
    return values[max(0, int(len(values) * share + 0.5) - 1)] if values else float("nan")


def _culprit(deviations: list[Any]) -> Table:
    title = "The same stream without compensation (conventional maintenance)"
    table = _table(title, "view", "rows wrong at the end", "transactions with a wrong change")
    for found in deviations:
        wrong = f"{found.commits_wrong:,} of {found.commits:,}"
        table.add_row(found.view, f"{found.rows_wrong:,}", wrong)
    return table


def _verdicts(warehouse: Any, batches: list[BatchRecord]) -> Table:
    first, last = batches[0].from_cn, warehouse.status().cn
    past = sorted(random.Random(last).sample(range(first, last), min(4, last - first)))
    title = "verify: recomputed from the sources as of several commits"
    table = _table(title, "view", "cn", "verdict", "missing", "extra", "log rows used")
    for cn in (*past, last):
        for verdict in warehouse.verify(None, cn):
            word = "[green]equal" if verdict.equal else "[bold red]differs"
            numbers = (verdict.missing, verdict.extra, verdict.compensated)
            table.add_row(verdict.view, f"{cn:,}", word, *(f"{n:,}" for n in numbers))
    return table


def _table(title: str, *headings: str) -> Table:
    table = Table(title=title, title_justify="left")
    for i, heading in enumerate(headings):
        table.add_column(heading, justify="right" if i else "left")
    return table
