"""The simulator's engine, fed with Arrow tables."""

from __future__ import annotations

import pyarrow as pa

from steadyview.simulation import sqlite_engine
from steadyview.simulation.sqlite_engine import SqliteDialect

__all__ = ["Engine", "SqliteDialect"]


class Engine(sqlite_engine.Engine):
    """Takes whole tables, and says what the columns of a statement are called."""

    def put_table(self, name: str, table: pa.Table) -> None:
        columns = [column.to_pylist() for column in table.columns]
        self.put(name, table.column_names, list(zip(*columns, strict=True)))

    def columns(self, sql: str) -> list[str]:
        return [c[0] for c in self._connection.execute(sql).description]
