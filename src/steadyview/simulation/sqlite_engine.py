"""The statements of plans, run inside the process by SQLite.

SQLite lacks a few words; everything else of the text is what Spark gets. For the simulator, and for
tests that run tens of thousands of statements. Numbers here are whole ones: SQLite has no decimals.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from typing import Any

from steadyview.plans.dialect import Piece

_STATEMENTS = 2_000
"""So many are remembered as they were read."""


class SqliteDialect:
    """SQLite's words, for whole numbers and NULLs. Its parser takes no more than a dozen levels."""

    nested = False
    row_number = "ROW_NUMBER() OVER ()"

    def exploded(self, rows: str, kept: Sequence[str], pieces: Sequence[Piece]) -> str:
        """By a cross join with the pieces' numbers."""
        numbers = " UNION ALL ".join(f"SELECT {i} AS _piece_number" for i in range(len(pieces)))
        columns = [
            "CASE _piece_number "
            + " ".join(f"WHEN {i} THEN {piece[name]}" for i, piece in enumerate(pieces))
            + f" END AS {name}"
            for name in pieces[0]
        ]
        return f"SELECT {', '.join([*kept, *columns])} FROM {rows} CROSS JOIN ({numbers})"

    def times(self, value: str, type_: str) -> str:
        """Whole numbers are multiplied."""
        return f"{value} * _d"

    def cut(self, rows: str, keys: Sequence[str], kept: Sequence[str]) -> str:
        """By a join with the cuts; it names the rows three times."""
        listed = "".join(f"{k}, " for k in keys)
        ends = f"SELECT {listed}_from AS _t FROM {rows} UNION SELECT {listed}_to FROM {rows}"
        window = f"PARTITION BY {', '.join(keys)} " if keys else ""
        cuts = f"SELECT *, LEAD(_t) OVER ({window}ORDER BY _t) AS _next FROM ({ends})"
        same = " AND ".join(f"v.{k} IS c.{k}" for k in keys) or "TRUE"
        own = "".join(f"v.{c}, " for c in kept)
        return (
            f"SELECT {own}c._t AS _from, c._next AS _to FROM {rows} v JOIN ({cuts}) c "
            f"ON {same} AND v._from <= c._t AND c._t < v._to"
        )

    def number(self, columns: Sequence[str]) -> str:
        """Groups often have the same number, as they seldom do in Spark."""
        summed = " + ".join([f"COALESCE({c}, 5)" for c in columns] or ["0"])
        return f"({summed}) % 2"


class Engine:
    """A database in memory. A table that comes again with the same columns stays as it was made.

    So a statement that comes again is not read again: its tables' columns are those it knows.
    """

    def __init__(self) -> None:
        self._connection = sqlite3.connect(
            ":memory:", isolation_level=None, cached_statements=_STATEMENTS
        )
        self._tables: dict[str, tuple[str, ...]] = {}
        for name, function in (("GREATEST", max), ("LEAST", min)):
            self._connection.create_function(name, -1, _of_known(function), deterministic=True)

    def put(self, name: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """The table has these rows, and no others."""
        if self._tables.get(name) == tuple(columns):
            self._connection.execute(f"DELETE FROM {name}")
        else:
            self._connection.execute(f"DROP TABLE IF EXISTS {name}")
            self._connection.execute(f"CREATE TABLE {name} ({', '.join(columns)})")
            self._tables[name] = tuple(columns)
        holes = ", ".join("?" for _ in columns)
        self._connection.executemany(f"INSERT INTO {name} VALUES ({holes})", rows)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """What the statement gives."""
        return self._connection.execute(sql).fetchall()


def _of_known(function: Callable[[list[Any]], Any]) -> Callable[..., Any]:
    """Of the values that are not NULL, as Spark has it; SQLite's own min and max give NULL."""

    def found(*values: Any) -> Any:
        known = [v for v in values if v is not None]
        return function(known) if known else None

    return found
