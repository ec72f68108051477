"""The statements of plans, run inside the process by SQLite.

SQLite lacks a few words; everything else of the text is what Spark gets.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from steadyview.plans.dialect import Piece


class SqliteDialect:
    # its parser takes no more than a dozen levels
    nested = False
    row_number = "ROW_NUMBER() OVER ()"

    def exploded(self, rows: str, kept: Sequence[str], pieces: Sequence[Piece]) -> str:
        numbers = " UNION ALL ".join(f"SELECT {i} AS _piece_number" for i in range(len(pieces)))
        columns = [
            "CASE _piece_number "
            + " ".join(f"WHEN {i} THEN {piece[name]}" for i, piece in enumerate(pieces))
            + f" END AS {name}"
            for name in pieces[0]
        ]
        return f"SELECT {', '.join([*kept, *columns])} FROM {rows} CROSS JOIN ({numbers})"

    def times(self, value: str, type_: str) -> str:
        return f"{value} * _d"

    def cut(self, rows: str, keys: Sequence[str], kept: Sequence[str]) -> str:
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


def _known(values: Sequence[Any]) -> list[Any]:
    return [v for v in values if v is not None]


class Engine:
    """An empty database; tables come and go with each statement."""

    def __init__(self) -> None:
        self._connection = sqlite3.connect(":memory:", isolation_level=None)
        for name, function in (("GREATEST", max), ("LEAST", min)):
            self._connection.create_function(
                name,
                -1,
                lambda *values, f=function: f(_known(values)) if _known(values) else None,
                deterministic=True,
            )

    def put(self, name: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        self._connection.execute(f"DROP TABLE IF EXISTS {name}")
        self._connection.execute(f"CREATE TABLE {name} ({', '.join(columns)})")
        holes = ", ".join("?" for _ in columns)
        self._connection.executemany(f"INSERT INTO {name} VALUES ({holes})", rows)

    def put_table(self, name: str, table: pa.Table) -> None:
        self.put(
            name,
            table.column_names,
            list(zip(*(c.to_pylist() for c in table.columns), strict=True)),
        )

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        return self._connection.execute(sql).fetchall()

    def columns(self, sql: str) -> list[str]:
        return [c[0] for c in self._connection.execute(sql).description]
