"""A SQLite file as a store: one writer at a time, any number of readers beside it.

Rows are as durable as WAL with synchronous = NORMAL makes them: a power cut may take the last ones
away, and the positions that were written after them with them; they are done again then.
Decimals, dates and times are texts, as in keys; a FLOAT that is no number is the text NaN.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steadyview.errors import StoreRefused, StoreUnavailable
from steadyview.serving.json_texts import EXACT, FRACTIONS, WHOLE, exact, plain_texts, value_of
from steadyview.serving.layout import CHANGES, CN, DEAD, KEY, WAS, Records
from steadyview.serving.sql_store import NoSuchTable, SqlStore
from steadyview.serving.sql_streams import Values

if TYPE_CHECKING:
    import pyarrow as pa

PATIENCE = 60.0
"""Seconds for which another writer is waited for."""
_PIECE = 20_000
_MAY_PASS = (
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_READONLY,
)


class SqliteStore(SqlStore):
    """One file. The file is made by `prepare`; a reader never makes it."""

    table_options = " STRICT"
    reached = (
        "NOT EXISTS (SELECT 1 FROM json_each(_entries) e WHERE e.value > COALESCE((SELECT p.{place}"
        " FROM steadyview_positions p WHERE p.records = ? AND p.stream = e.key), 0))"
    )

    def __init__(self, name: str, path: Path) -> None:
        self.name = name
        self._path = path
        self._open: sqlite3.Connection | None = None
        self._opened: tuple[int, int] | None = None
        self._doubtful = False
        """Whether the connection is to be made anew, once its transaction is over."""

    # --- speaking ----------------------------------------------------------------------------

    def prepare(self) -> None:
        """See the contract."""
        with self._told():
            sqlite3.connect(self._path).close()
            for setting in ("journal_mode = WAL",):
                self._connection().execute(f"PRAGMA {setting}").fetchall()
        super().prepare()

    def run(self, sql: str, values: Values = ()) -> list[tuple[Any, ...]]:
        """See `SqlStreams`."""
        with self._told():
            return self._connection().execute(sql, values).fetchall()

    def changed(self, sql: str, values: Values = ()) -> int:
        """See `SqlStreams`."""
        with self._told():
            return self._connection().execute(sql, values).rowcount

    def each(self, sql: str, rows: Iterable[Values]) -> None:
        """See `SqlStreams`."""
        with self._told():
            self._connection().executemany(sql, rows)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """See `SqlStreams`."""
        with self._transaction("BEGIN IMMEDIATE"):
            yield

    storing = writing

    @contextmanager
    def reading(self) -> Iterator[None]:
        """See `SqlStore`."""
        with self._transaction("BEGIN"):
            yield

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[None]:
        with self._told():
            connection = self._connection()
            connection.execute(begin)
            try:
                yield
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def streamed(self, sql: str, values: Values) -> Iterator[list[tuple[Any, ...]]]:
        """See `SqlStore`."""
        with self._told():
            cursor = self._connection().execute(sql, values)
            while rows := cursor.fetchmany(_PIECE):
                yield rows

    def floors(self, records: Records) -> dict[str, int]:
        """See `SqlStreams`: only one transaction writes."""
        sql = "SELECT stream, floor FROM steadyview_positions WHERE records = ? AND floor > 0"
        return dict(self.run(sql, (records.name,)))

    def kind_of(self, name: str) -> str | None:
        """See `SqlStore`."""
        if not self._path.exists():
            return None
        sql = "SELECT type FROM sqlite_master WHERE lower(name) = lower(?)"
        rows = self.run(sql, (name,))
        return str(rows[0][0]) if rows else None

    def new_identity(self) -> str:
        """See `SqlStore`."""
        facts = f"{os.uname().nodename} {self._path} {os.getpid()} {time.time_ns()}"
        return hashlib.sha256(facts.encode()).hexdigest()[:16]

    def replace_view(self, name: str, select: str) -> None:
        """See `SqlStore`."""
        self.run(f"DROP VIEW IF EXISTS {self.quoted(name)}")
        self.run(f"CREATE VIEW {self.quoted(name)} AS {select}")

    def close(self) -> None:
        """See the contract."""
        if self._open is not None:
            self._open.close()
            self._open = None

    # --- records -----------------------------------------------------------------------------

    def upsert(self, records: Records, images: pa.Table) -> None:
        """See the contract."""
        names = [name for name, _ in records.layout.columns]
        table, listed = self.quoted(records.name), [KEY, *names, CN, DEAD]
        columns = ", ".join(self.quoted(n) for n in listed)
        marks = ", ".join("?" * len(listed))
        with self.writing():
            position = self.position(records, CHANGES)
            shown = f"{table}.{CN} <= {position.entry}"
            sets = [f"{self.quoted(n)} = excluded.{self.quoted(n)}" for n in names]
            sets += [f"{CN} = excluded.{CN}", f"{DEAD} = excluded.{DEAD}"]
            kept = [("cn", CN), ("dead", DEAD), *((n, n) for n, _ in records.layout.values)]
            sets += [
                f"{self.quoted(WAS + w)} = CASE WHEN {shown} THEN {table}.{self.quoted(n)}"
                f" ELSE {table}.{self.quoted(WAS + w)} END"
                for w, n in kept
            ]
            sql = (
                f"INSERT INTO {table} ({columns}) SELECT {marks} WHERE ? > {position.floor}"
                f" ON CONFLICT ({KEY}) DO UPDATE SET {', '.join(sets)}"
                f" WHERE {table}.{CN} < excluded.{CN}"
            )
            self.each(sql, _parameters(records, images))

    def among(self, column: str, keys: Sequence[str]) -> tuple[str, Values]:
        """See `SqlStore`."""
        if len(keys) == 1:
            return f"{column} = ?", tuple(keys)
        return f"{column} IN (SELECT value FROM json_each(?))", (json.dumps([*keys]),)

    # --- values ------------------------------------------------------------------------------

    def column_type(self, type_: str) -> str:
        """See `SqlStreams`. A STRICT column of type ANY keeps a number as it is given."""
        if type_ in (*WHOLE, "BOOLEAN"):
            return "INTEGER"
        return "ANY" if type_ in FRACTIONS else "BLOB" if type_ == "BINARY" else "TEXT"

    def encoded(self, value: Any, type_: str) -> Any:
        """See `SqlStreams`."""
        value = exact(value, type_)
        if value is None or type_ in ("BINARY", "STRING", *WHOLE):
            return value
        if type_ == "BOOLEAN":
            return int(value)
        if type_ in FRACTIONS:
            return value if value == value else "NaN"
        return str(value) if isinstance(value, Decimal) else _iso(value)

    def decoded(self, value: Any, type_: str) -> Any:
        """See `SqlStreams`."""
        if value is None or type_ in ("STRING", "BINARY", *WHOLE):
            return value
        return bool(value) if type_ == "BOOLEAN" else value_of(value, type_)

    def entry(self, entries: str, stream: str) -> str:
        """See `SqlStreams`."""
        found = f"SELECT value FROM json_each({entries}) WHERE key = {_text(stream)}"
        return f"COALESCE(({found}), 0)"

    def with_entry(self, entries: str, stream: str, entry: str) -> str:
        """See `SqlStreams`."""
        return f"json_patch({entries}, json_object({_text(stream)}, {entry}))"

    def plus(self, left: str, right: str, type_: str) -> str:
        """See `SqlStreams`."""
        return f"{left} + {right}" if type_ in WHOLE else f"steadyview_sum({left}, {right})"

    # --- the connection ----------------------------------------------------------------------

    def _connection(self) -> sqlite3.Connection:
        """One to the file that is there now: it may have been put back from a backup."""
        there = self._identity_of_file()
        if self._doubtful and self._open is not None and not self._open.in_transaction:
            self.close()
        if self._open is not None and there != self._opened:
            broken = self._open.in_transaction
            self.close()
            if broken:
                raise StoreUnavailable(f'file of store "{self.name}" was replaced: "{self._path}"')
        if self._open is None:
            self._opened, self._doubtful = there, False
            uri = f"{self._path.absolute().as_uri()}?mode=rw"
            self._open = sqlite3.connect(
                uri, uri=True, timeout=PATIENCE, isolation_level=None, check_same_thread=False
            )
            self._open.execute("PRAGMA synchronous = NORMAL")
            self._open.create_function("steadyview_sum", 2, _sum, deterministic=True)
        return self._open

    def _identity_of_file(self) -> tuple[int, int] | None:
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            if str(error).startswith("no such table: ") and "__" in str(error):
                raise NoSuchTable(str(error)) from None
            raise self._translated(error) from None

    def _translated(self, error: sqlite3.Error) -> Exception:
        code = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
        if code in _MAY_PASS:
            self._doubtful = True
            return StoreUnavailable(
                f'store "{self.name}" does not answer',
                detail=f'{error}: "{self._path}"',
                hint=f"see that there is room, and the right to write; [stores.{self.name}]",
            )
        hint = f"correct path of [stores.{self.name}]" if code == sqlite3.SQLITE_NOTADB else None
        fact = f'store "{self.name}" refused a statement'
        return StoreRefused(fact, detail=f'{error}: "{self._path}"', hint=hint)


def _parameters(records: Records, images: pa.Table) -> Iterator[Values]:
    """Rows as parameters, column by column: key, the view's columns, cn, dead, and cn again."""
    columns = [images[KEY].to_pylist()]
    columns += [_column(images[name], type_) for name, type_ in records.layout.columns]
    cns = images[CN].to_pylist()
    dead = [int(d) for d in images[DEAD].to_pylist()]
    return zip(*columns, cns, dead, cns, strict=True)


def _column(column: pa.ChunkedArray, type_: str) -> list[Any]:
    import pyarrow as pa
    import pyarrow.compute as pc

    if type_ == "BOOLEAN":
        return list(column.cast(pa.int8()).to_pylist())
    if type_ in ("STRING", "BINARY", *WHOLE):
        return list(column.to_pylist())
    if type_ in FRACTIONS:
        found = column.to_pylist()
        odd = pc.any(pc.is_nan(column)).as_py()
        return ["NaN" if v is not None and v != v else v for v in found] if odd else found
    return [v for chunk in column.chunks for v in plain_texts(chunk, type_).to_pylist()]


def _iso(value: Any) -> str:
    text = value.isoformat(timespec="microseconds") if hasattr(value, "hour") else value.isoformat()
    return str(text).replace("+00:00", "Z")


def _sum(left: Any, right: Any) -> Any:
    if isinstance(left, str):
        return str(EXACT.add(Decimal(left), Decimal(right)))
    return left + right


def _text(stream: str) -> str:
    """A stream's name as a literal: no path into JSON can hold every name."""
    return "'" + stream.replace("'", "''") + "'"
