"""What the catalog's file says about the warehouse order, read without the product."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path


def last_cn(warehouse: Path) -> int:
    return _rows(warehouse, "SELECT last_cn FROM warehouse")[0][0]


def seen_at(warehouse: Path, cn: int) -> dict[str, int]:
    """How many transactions of each source lie at or before cn."""
    seen = {"shop": 0, "crm": 0}
    for _, source, seq_from, seq_to, first, _ in _runs(warehouse):
        if first <= cn:
            seen[source] = seq_from + min(cn - first, seq_to - seq_from)
    return seen


def starts(warehouse: Path) -> dict[str, int]:
    """The oldest cn at which each view can be read."""
    sql = "SELECT name, oldest_cn FROM views WHERE state <> 'dropped' AND cn IS NOT NULL"
    return dict(_rows(warehouse, sql))


def check_order(warehouse: Path) -> None:
    """cn is dense from 1, every source's transactions are dense, times strictly increase."""
    next_cn, last_time, next_seq = 1, 0, {}
    for name, _, seq_from, seq_to, first, time in _runs(warehouse):
        assert first == next_cn, f"cn {next_cn} is missing"
        assert time > last_time, f"the time of cn {first} goes back"
        assert seq_from == next_seq.get(name, 1), f"{name}: transaction {next_seq} lost or twice"
        length = seq_to - seq_from
        next_cn, last_time, next_seq[name] = first + length + 1, time + length, seq_to + 1
    assert last_cn(warehouse) == next_cn - 1


def _runs(warehouse: Path) -> list[tuple]:
    sql = "SELECT source, source, seq_from, seq_to, cn_from, time_from FROM runs ORDER BY cn_from"
    return _rows(warehouse, sql)


def _rows(warehouse: Path, sql: str) -> list[tuple]:
    with closing(sqlite3.connect(warehouse / "catalog.db", timeout=30)) as connection:
        return connection.execute(sql).fetchall()
