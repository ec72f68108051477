"""An independent oracle: DuckDB computes every view of a project from its text, over given tables.

Shares nothing with the product but the texts, which sqlglot writes in DuckDB's dialect.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from math import isclose
from pathlib import Path
from typing import Any

import duckdb
import sqlglot

from tests.processes.large_project.store import TABLES, Tables

ALMOST = 1e-6
"""An average has as many digits as its engine likes."""


@dataclass(frozen=True)
class Rows:
    """A view's rows; `averages`: the places of columns that are compared with tolerance."""

    rows: list[tuple]
    averages: frozenset[int]

    def equal(self, found: Iterable[Sequence[Any]]) -> bool:
        """Whether these are the same rows, each as often."""
        mine, other = self._sorted(self.rows), self._sorted(found)
        return len(mine) == len(other) and all(map(self._same, mine, other))

    def _sorted(self, rows: Iterable[Sequence[Any]]) -> list[tuple]:
        return sorted((tuple(map(_plain, row)) for row in rows), key=self._exact)

    def _exact(self, row: tuple) -> str:
        return repr([v for place, v in enumerate(row) if place not in self.averages])

    def _same(self, one: tuple, other: tuple) -> bool:
        return self._exact(one) == self._exact(other) and all(
            _close(one[place], other[place]) for place in self.averages
        )


def recomputed(texts: Mapping[str, str], sources: Mapping[str, Tables]) -> dict[str, Rows]:
    """Every view over these tables."""
    with closing(duckdb.connect()) as db:
        for source, tables in sources.items():
            _load(db, source, tables)
        waiting = {name: _translated(text) for name, text in texts.items()}
        while waiting:
            made = [name for name, text in waiting.items() if _create(db, name, text)]
            assert made, f"none of {sorted(waiting)} can be computed"
            for name in made:
                del waiting[name]
        return {name: _rows(db, name) for name in texts}


def texts_of(folder: Path) -> dict[str, str]:
    """The text of each view."""
    return {path.stem: path.read_text() for path in folder.iterdir()}


def _load(db: duckdb.DuckDBPyConnection, source: str, tables: Tables) -> None:
    db.execute(f"CREATE SCHEMA {source}")
    for table, rows in tables.items():
        db.execute(f"CREATE TABLE {source}.{table} ({TABLES[source][table]})")
        if rows:
            places = ", ".join("?" * len(rows[0]))
            db.executemany(f"INSERT INTO {source}.{table} VALUES ({places})", rows)


def _translated(text: str) -> str:
    (found,) = sqlglot.transpile(text, read="spark", write="duckdb")
    return found


def _create(db: duckdb.DuckDBPyConnection, name: str, text: str) -> bool:
    """Whether all that the view reads is there, and with it now the view."""
    with suppress(duckdb.CatalogException):
        db.execute(f"CREATE TABLE {name} AS {text}")
        return True
    return False


def _rows(db: duckdb.DuckDBPyConnection, name: str) -> Rows:
    rows = db.execute(f"SELECT * FROM {name}").fetchall()
    types = [str(column[1]) for column in db.description or ()]
    return Rows(rows, frozenset(i for i, type_ in enumerate(types) if type_ == "DOUBLE"))


def _plain(value: Any) -> Any:
    """A value as it comes out of JSON, numbers by their value."""
    if isinstance(value, Decimal):
        return float(value) if value % 1 else int(value)
    return str(value) if isinstance(value, date) else value


def _close(one: float | None, other: float | None) -> bool:
    return one == other if one is None or other is None else isclose(one, other, abs_tol=ALMOST)
