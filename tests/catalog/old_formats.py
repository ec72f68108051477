"""Catalogs as older versions had them."""

from __future__ import annotations

import sqlite3


def as_format_8(old: sqlite3.Connection) -> None:
    """As before there were gates, fences and ranges that are compressed."""
    for table in ("gates", "streams", "holds", "stream_leases"):
        old.execute(f"DROP TABLE {table}")
    for table, column in (
        ("warehouse", "fence"),
        ("sources", "dated"),
        ("gaps", "commits"),
        ("gaps", "pending"),
    ):
        old.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
    old.execute("UPDATE warehouse SET format = 8")
