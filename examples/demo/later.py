"""The last minute of the demo: one view under four policies, a reader of its changes, a bound."""

from __future__ import annotations

import random
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
from rich.console import Console
from rich.table import Table

from examples.demo import shop
from steadyview.runtime.staleness import Staleness

_VIEW = "revenue_by_region"
_POLICIES = ("ipda", "dpda", "snapshot")
_ORDERS = 40


def show_later(warehouse: Any, folder: Path, url: str, console: Console) -> None:
    """Views that wait for refreshes beside the one that does not; what can be had of them."""
    names = {policy: f"revenue_{policy}" for policy in _POLICIES}
    for policy, name in names.items():
        (folder / "views" / f"{name}.sql").write_text(shop.under_policy(name, policy))
    console.print("· the same view under three more policies, first states ...")
    warehouse.run_once()
    with warehouse.subscribe(_VIEW, "demo") as reader:
        copy: Counter[tuple[Any, ...]] = Counter()
        _read(reader, copy)
        console.print(f"· {_ORDERS} more orders, each a transaction ...")
        _more_orders(url)
        warehouse.run_once()
        shown = {v.name: v.cn for v in warehouse.status().views}
        commits = _read(reader, copy)
    rows = {name: shown[name] for name in (_VIEW, *names.values())}
    sql = (
        f"SELECT SUM(a.revenue - b.revenue) AS apart FROM {_VIEW} a"
        f" JOIN {names['dpda']} b USING (region)"
    )
    answer = warehouse.query_at(sql, staleness=Staleness(timedelta(0)))
    (apart,) = answer.rows().table["apart"].to_pylist()
    answer.close()
    done = warehouse.refresh(list(names.values()))
    table = Table(title="Four policies of one view", title_justify="left")
    for heading in ("view", "showed cn", "refreshed together to cn", "rows as in the first"):
        table.add_column(heading)
    first = _rows(warehouse, _VIEW)
    for name, cn in rows.items():
        same = "[green]equal" if _rows(warehouse, name) == first else "[bold red]differ"
        table.add_row(name, f"{cn:,}", "-" if name == _VIEW else f"{done.cn:,}", same)
    console.print(table)
    console.print(
        f"A query over {_VIEW} and {names['dpda']} before that refresh, at most 0 s old: both at cn"
        f" {answer.cn:,}, apart by {apart} ({answer.chosen.way}: "
        f"{', '.join(answer.chosen.carried)})."
    )
    word = "equal" if {r: n for r, n in copy.items() if n} == dict(first) else "differs"
    console.print(f'Subscription "demo": {commits} commits read; its copy of {_VIEW}: {word}.\n')


def _read(reader: Any, copy: Counter[tuple[Any, ...]]) -> int:
    """Take in all there is; how many commits that was."""
    commits = 0
    while (delivery := reader.next()) is not None:
        for rows in delivery.tables():
            for *row, count, _, _ in zip(*(c.to_pylist() for c in rows.columns), strict=True):
                copy[tuple(row)] += count
        reader.acknowledge()
        commits += delivery.commits
    return commits


def _more_orders(url: str) -> None:
    dice = random.Random(len(url))
    with psycopg.connect(url, autocommit=True) as connection:
        found = connection.execute("SELECT max(id) FROM orders").fetchone()
        assert found is not None
        for order in range(found[0] + 1, found[0] + 1 + _ORDERS):
            with connection.transaction():
                shop.insert_order(connection, dice, order)


def _rows(warehouse: Any, name: str) -> Counter[tuple[Any, ...]]:
    return Counter(map(tuple, warehouse.view(name).read().collect()))
