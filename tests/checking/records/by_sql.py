"""Views over one vector, by SQLite: nothing of the checker is used."""

from __future__ import annotations

import sqlite3
from fractions import Fraction
from functools import lru_cache

QUERIES = {
    "COUNT": "SELECT x, count(y) FROM r GROUP BY x",
    "SUM": "SELECT x, sum(y) FROM r GROUP BY x",
    "AVG": "SELECT x, sum(y), count(y) FROM r GROUP BY x",
    "MIN": "SELECT x, min(y) FROM r GROUP BY x",
    "MAX": "SELECT x, max(y) FROM r GROUP BY x",
    "projection": "SELECT DISTINCT x FROM r",
    "selection": "SELECT k, x, y FROM r WHERE y < 25",
    "key projection": "SELECT k, y FROM r",
    "UNION": "SELECT x FROM l UNION SELECT x FROM r",
    "INTERSECT": "SELECT x FROM l INTERSECT SELECT x FROM r",
    "EXCEPT": "SELECT x FROM l EXCEPT SELECT x FROM r",
    "join": "SELECT r.k, s.k, s.x FROM r JOIN s ON s.k = r.x",
}
DATABASE = sqlite3.connect(":memory:", check_same_thread=False)
DATABASE.executescript("CREATE TABLE l (k, x, y); CREATE TABLE r (k, x, y); CREATE TABLE s (k, x)")


@lru_cache(maxsize=100_000)
def view_over(name: str, rows: frozenset) -> dict:
    """By record key, what is shown."""
    for table in "lrs":
        DATABASE.execute(f"DELETE FROM {table}")
    for relation, row in rows:
        width = 2 if relation == "S" else 3
        marks = ", ".join("?" * width)
        DATABASE.execute(
            f"INSERT INTO {relation.lower()} VALUES ({marks})", (*row, None)[:width]
        )
    found = {key: tuple(shown) for key, *shown in DATABASE.execute(QUERIES[name])}
    if name == "AVG":
        return {key: (Fraction(s, n) if n else None,) for key, (s, n) in found.items()}
    return found
