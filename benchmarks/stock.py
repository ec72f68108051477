"""part, supplier and partsupp of TPC-H in a SQLite file, and changes to them.

The file is generated once for each scale factor and copied for each run. A transaction inserts,
updates or deletes a part with what suppliers offer of it (1 : 4 rows, as in the tables); now and
then one moves a supplier to another nation. Every row is touched at most once in a run.
"""

from __future__ import annotations

import csv
import io
import shutil
import sqlite3
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks import tpch

TABLES = {
    "part": {
        "p_partkey": "INTEGER",
        "p_name": "TEXT",
        "p_mfgr": "TEXT",
        "p_brand": "TEXT",
        "p_type": "TEXT",
        "p_size": "INTEGER",
        "p_container": "TEXT",
        "p_retailprice": "DECIMAL(15,2)",
        "p_comment": "TEXT",
    },
    "supplier": {
        "s_suppkey": "INTEGER",
        "s_name": "TEXT",
        "s_address": "TEXT",
        "s_nationkey": "INTEGER",
        "s_phone": "TEXT",
        "s_acctbal": "DECIMAL(15,2)",
        "s_comment": "TEXT",
    },
    "partsupp": {
        "ps_partkey": "INTEGER",
        "ps_suppkey": "INTEGER",
        "ps_availqty": "INTEGER",
        "ps_supplycost": "DECIMAL(15,2)",
        "ps_comment": "TEXT",
    },
}
_KEYS = {"part": "p_partkey", "supplier": "s_suppkey", "partsupp": "ps_partkey, ps_suppkey"}
_NEW = 1_000_000_000
"""Where the keys of inserted parts begin."""
SHARE = 1_010 / 8_660
"""Of all rows of TPC-H that lie here."""
_SUPPLIER_EVERY = 20
"""So many transactions for one that moves a supplier: 1 row in 100, as in the tables."""
_INSERTS = """
INSERT INTO part SELECT {new}, p_name, p_mfgr, p_brand, p_type, p_size, p_container, p_retailprice,
    p_comment FROM part WHERE p_partkey = {key};
INSERT INTO partsupp SELECT {new}, ps_suppkey, ps_availqty, ps_supplycost, ps_comment
    FROM partsupp WHERE ps_partkey = {key}
"""
_UPDATES = """
UPDATE part SET p_size = p_size % 50 + 1 WHERE p_partkey = {key};
UPDATE partsupp SET ps_availqty = ps_availqty + 1, ps_supplycost = ROUND(ps_supplycost + 1, 2)
    WHERE ps_partkey = {key}
"""
_DELETES = """
DELETE FROM partsupp WHERE ps_partkey = {key};
DELETE FROM part WHERE p_partkey = {key}
"""
_MOVES = "UPDATE supplier SET s_nationkey = (s_nationkey + 1) % 25 WHERE s_suppkey = {key}"


def copied(cache: Path, scale: float, target: Path) -> Path:
    """A copy of the file of this scale, which is generated if it is not there."""
    kept = cache / f"stock-{scale:g}.db"
    if not kept.exists():
        part = kept.with_suffix(".part")
        part.unlink(missing_ok=True)
        with closing(sqlite3.connect(part)) as connection, connection:
            for table in TABLES:
                _fill(connection, table, scale)
        part.rename(kept)
    shutil.copyfile(kept, target)
    return target


def _fill(connection: sqlite3.Connection, table: str, scale: float) -> None:
    columns = ", ".join(f"{name} {type_}" for name, type_ in TABLES[table].items())
    connection.execute(f"CREATE TABLE {table} ({columns}, PRIMARY KEY ({_KEYS[table]}))")
    marks = ", ".join("?" for _ in TABLES[table])
    with tpch.generated(table, scale) as rows:
        lines = csv.reader(io.TextIOWrapper(rows, "utf-8"))
        next(lines)
        connection.executemany(f"INSERT INTO {table} VALUES ({marks})", lines)


@dataclass
class StockWork:
    """Commits batches of changes to one file."""

    path: Path
    _parts: list[int] = field(init=False)
    _suppliers: int = field(init=False)
    _next: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        with closing(sqlite3.connect(self.path)) as connection:
            shuffled = "SELECT p_partkey FROM part ORDER BY p_partkey * 7919 % 100003, p_partkey"
            self._parts = [key for (key,) in connection.execute(shuffled)]
            (self._suppliers,) = connection.execute("SELECT COUNT(*) FROM supplier").fetchone()

    def mixed(self, wanted: int) -> int:
        """About so many row changes; how many there were."""
        changes = 0
        with closing(sqlite3.connect(self.path, timeout=60)) as connection:
            while changes < wanted:
                changes += self._transaction(connection, self._next)
                self._next += 1
        return changes

    def _transaction(self, connection: sqlite3.Connection, number: int) -> int:
        if number % _SUPPLIER_EVERY == 0:
            key = 1 + number // _SUPPLIER_EVERY % self._suppliers
            text = _MOVES
        else:
            key, text = self._parts[number], (_INSERTS, _UPDATES, _DELETES)[number % 3]
        with connection:
            done = [
                connection.execute(statement.format(key=key, new=_NEW + number))
                for statement in text.split(";")
            ]
        return sum(cursor.rowcount for cursor in done)
