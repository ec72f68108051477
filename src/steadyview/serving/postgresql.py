"""A schema of a PostgreSQL database as a store (14 or newer).

Many records go in one statement, column by column as arrays of texts, in the order of their keys.
Two statements that meet wait for each other; the server ends one of two that wait in a circle, and
it is made again. Sessions commit without waiting for the disk: positions are written after records
and become durable after them, so what a crash takes away is done again.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, quote_plus

import psycopg
from psycopg import conninfo

from steadyview.errors import ConfigError, StoreRefused, StoreUnavailable
from steadyview.serving.json_texts import exact, plain_texts
from steadyview.serving.layout import CHANGES, CN, DEAD, KEY, WAS, Records
from steadyview.serving.sql_store import NoSuchTable, SqlStore
from steadyview.serving.sql_streams import Values

if TYPE_CHECKING:
    import pyarrow as pa

_PIECE = 5_000
_TRIES = 20
_REGISTRY_LOCK = 7_367_401
"""The number of the advisory lock under which a store's registry is changed."""
_TYPES = {
    "BOOLEAN": "boolean",
    "TINYINT": "smallint",
    "SMALLINT": "smallint",
    "INT": "integer",
    "BIGINT": "bigint",
    "FLOAT": "real",
    "DOUBLE": "double precision",
    "STRING": "text",
    "BINARY": "bytea",
    "DATE": "date",
    "TIMESTAMP": "timestamp with time zone",
    "TIMESTAMP_NTZ": "timestamp without time zone",
}
_SESSION = (
    "SET client_encoding = 'UTF8'; SET TimeZone = 'UTC'; SET DateStyle = 'ISO, YMD';"
    " SET bytea_output = 'hex'; SET extra_float_digits = 3; SET synchronous_commit = off;"
    " SET statement_timeout = 0; SET lock_timeout = '30s';"
    " SET idle_in_transaction_session_timeout = 0; SET search_path TO {schema}, pg_catalog"
)
_LIVELINESS = {
    "connect_timeout": "10",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "60000",
}
_UNAVAILABLE = ("08", "53", "57", "58", "25006", "40", "55")
"""Classes of SQLSTATE, or one whole: trying again may help."""
_AGAIN = ("40P01", "40001")
_TOLD_BY_LIBPQ = re.compile(r"password authentication failed|no pg_hba\.conf entry|does not exist")


class PostgresStore(SqlStore):
    """One schema, made by `prepare`."""

    mark = "%s"
    entries_type = "jsonb"
    reached = (
        "NOT EXISTS (SELECT 1 FROM jsonb_each_text(_entries) e WHERE e.value::bigint >"
        " COALESCE((SELECT p.{place} FROM steadyview_positions p"
        " WHERE p.records = %s AND p.stream = e.key), 0))"
    )

    def __init__(self, name: str, url: str, schema: str) -> None:
        self.name = name
        self._url = url
        self._schema = schema
        self._open: psycopg.Connection | None = None
        try:
            conninfo.conninfo_to_dict(url)
        except psycopg.Error:
            raise ConfigError(
                f'url of store "{name}" is not a PostgreSQL connection string',
                hint="write postgresql://user@host:5432/database",
            ) from None

    # --- speaking ----------------------------------------------------------------------------

    def prepare(self) -> None:
        """See the contract."""
        sql = "SELECT 1 FROM pg_namespace WHERE nspname = %s"
        if not self.run(sql, (self._schema,)):
            with self.writing():
                self.run(f"CREATE SCHEMA IF NOT EXISTS {self.quoted(self._schema)}")
        super().prepare()

    def run(self, sql: str, values: Values = ()) -> list[tuple[Any, ...]]:
        """See `SqlStreams`."""
        with self._told():
            cursor = self._connection().execute(sql, tuple(values))
            return cursor.fetchall() if cursor.description else []

    def changed(self, sql: str, values: Values = ()) -> int:
        """See `SqlStreams`."""
        with self._told():
            return self._connection().execute(sql, tuple(values)).rowcount

    def each(self, sql: str, rows: Iterable[Values]) -> None:
        """See `SqlStreams`."""
        with self._told(), self._connection().cursor() as cursor:
            cursor.executemany(sql, [tuple(row) for row in rows])

    @contextmanager
    def writing(self) -> Iterator[None]:
        """See `SqlStreams`."""
        with self._told(), self._connection().transaction():
            self.run("SELECT pg_advisory_xact_lock(%s, hashtext(%s))", (
                _REGISTRY_LOCK % 2**31, self._schema))
            yield

    @contextmanager
    def storing(self) -> Iterator[None]:
        """See `SqlStreams`."""
        with self._told(), self._connection().transaction():
            yield

    @contextmanager
    def reading(self) -> Iterator[None]:
        """See `SqlStore`."""
        with self._told(), self._connection().transaction():
            self.run("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            yield

    def streamed(self, sql: str, values: Values) -> Iterator[list[tuple[Any, ...]]]:
        """See `SqlStore`."""
        with self._told(), self._connection().cursor("steadyview_rows") as cursor:
            cursor.execute(sql, tuple(values))
            while rows := cursor.fetchmany(_PIECE):
                yield rows

    def floors(self, records: Records) -> dict[str, int]:
        """See `SqlStreams`: the rows are locked, and whoever raises a floor waits."""
        sql = "SELECT stream, floor FROM steadyview_positions WHERE records = %s FOR SHARE"
        return {stream: floor for stream, floor in self.run(sql, (records.name,)) if floor > 0}

    def kind_of(self, name: str) -> str | None:
        """See `SqlStore`."""
        sql = (
            "SELECT c.relkind::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
            " WHERE n.nspname = %s AND c.relname = %s"
        )
        rows = self.run(sql, (self._schema, name))
        return {"r": "table", "v": "view"}.get(rows[0][0], "relation") if rows else None

    def new_identity(self) -> str:
        """See `SqlStore`."""
        sql = "SELECT md5(gen_random_uuid()::text || current_database())"
        return str(self.run(sql)[0][0])[:16]

    def replace_view(self, name: str, select: str) -> None:
        """See `SqlStore`. Where its columns stay, it stays with its rights and readers."""
        view = self.quoted(name)
        if self.kind_of(name) is not None:
            try:
                with self._connection().transaction():
                    self.run(f"CREATE OR REPLACE VIEW {view} AS {select}")
                return
            except StoreRefused:
                self.run(f"DROP VIEW {view}")
        self.run(f"CREATE VIEW {view} AS {select}")

    def close(self) -> None:
        """See the contract."""
        if self._open is not None:
            self._open.close()
            self._open = None

    # --- records -----------------------------------------------------------------------------

    def upsert(self, records: Records, images: pa.Table) -> None:
        """See the contract."""
        layout = records.layout
        typed = [(KEY, "STRING"), *layout.columns, (CN, "BIGINT"), (DEAD, "BOOLEAN")]
        columns = ", ".join(self.quoted(n) for n, _ in typed)
        table = self.quoted(records.name)
        given = ", ".join(f"c{i}" for i in range(len(typed)))
        cast = ", ".join(f"n.c{i}::{self.column_type(t)}" for i, (_, t) in enumerate(typed))
        arrays = ", ".join(["%s::text[]"] * len(typed))
        shown = f"r.{CN} <= (SELECT position FROM at)"
        sets = [f"{self.quoted(n)} = excluded.{self.quoted(n)}" for n, _ in typed]
        kept = [("cn", CN), ("dead", DEAD), *((n, n) for n, _ in layout.values)]
        sets += [
            f"{self.quoted(WAS + w)} = CASE WHEN {shown} THEN r.{self.quoted(n)}"
            f" ELSE r.{self.quoted(WAS + w)} END"
            for w, n in kept
        ]
        cn = f"n.c{len(typed) - 2}::bigint"
        sql = (
            "WITH at AS (SELECT position, floor FROM steadyview_positions"
            " WHERE records = %s AND stream = %s FOR SHARE)"
            f" INSERT INTO {table} AS r ({columns}) SELECT {cast}"
            f" FROM unnest({arrays}) AS n({given}), at WHERE {cn} > at.floor"
            f' ORDER BY n.c0 COLLATE "C" ON CONFLICT ({KEY}) DO UPDATE SET {", ".join(sets)}'
            f" WHERE r.{CN} < excluded.{CN}"
        )
        values = [records.name, CHANGES, *(_texts(images[n], t) for n, t in typed)]
        self._again(lambda: self.run(sql, values))

    def among(self, column: str, keys: Sequence[str]) -> tuple[str, Values]:
        """See `SqlStore`."""
        return f"{column} = ANY(%s)", ([*keys],)

    def _again(self, statement: Callable[[], object]) -> None:
        """Make a statement again that the server has ended for others to go on."""
        for tried in range(_TRIES):
            try:
                statement()
                return
            except StoreUnavailable as error:
                if getattr(error, "state", None) not in _AGAIN or tried + 1 == _TRIES:
                    raise
                time.sleep(0.01 * (tried + 1))

    # --- values ------------------------------------------------------------------------------

    def quoted(self, name: str) -> str:
        """See `SqlStreams`; the driver reads a percent sign as the beginning of a parameter."""
        return super().quoted(name).replace("%", "%%")

    def column_type(self, type_: str) -> str:
        """See `SqlStreams`."""
        return _TYPES.get(type_) or type_.replace("DECIMAL", "numeric")

    def encoded(self, value: Any, type_: str) -> Any:
        """See `SqlStreams`."""
        return exact(value, type_)

    def decoded(self, value: Any, type_: str) -> Any:
        """See `SqlStreams`."""
        if value is None or type_ not in ("BINARY", "TIMESTAMP"):
            return value
        return bytes(value) if type_ == "BINARY" else value.astimezone(UTC)

    def entry(self, entries: str, stream: str) -> str:
        """See `SqlStreams`."""
        return f"COALESCE(({entries}->>{_literal(stream)})::bigint, 0)"

    def with_entry(self, entries: str, stream: str, entry: str) -> str:
        """See `SqlStreams`."""
        return f"({entries} || jsonb_build_object({_literal(stream)}::text, {entry}))"

    def plus(self, left: str, right: str, type_: str) -> str:
        """See `SqlStreams`."""
        return f"{left} + {right}"

    # --- the connection ----------------------------------------------------------------------

    def _connection(self) -> psycopg.Connection:
        if self._open is None or self._open.closed:
            given = conninfo.conninfo_to_dict(self._url)
            limits = {k: v for k, v in _LIVELINESS.items() if k not in given}
            told = conninfo.make_conninfo(self._url, **limits, application_name="steadyview store")
            self._open = psycopg.connect(told, autocommit=True)
            schema = '"' + self._schema.replace('"', '""') + '"'
            self._open.execute(_SESSION.format(schema=schema))
        return self._open

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except psycopg.errors.UndefinedTable as error:
            raise NoSuchTable(str(error)) from None
        except psycopg.Error as error:
            raise self._translated(error) from None

    def _translated(self, error: psycopg.Error) -> Exception:
        detail, state = self._scrubbed(str(error)), error.sqlstate
        let_in = state is not None or not _TOLD_BY_LIBPQ.search(str(error))
        down = isinstance(error, psycopg.OperationalError) or (state or "").startswith(_UNAVAILABLE)
        if down and let_in:
            if self._open is not None and (self._open.closed or state is None):
                self.close()
            unavailable = StoreUnavailable(
                f'store "{self.name}" does not answer',
                detail=detail,
                hint=f"see that the server runs, and that url of [stores.{self.name}] is right",
            )
            unavailable.state = state  # type: ignore[attr-defined]
            return unavailable
        hint = f"correct url of [stores.{self.name}], or the rights at the server"
        fact = f'store "{self.name}" refused a statement'
        return StoreRefused(fact, detail=detail, hint=hint)

    def _scrubbed(self, text: str) -> str:
        given = conninfo.conninfo_to_dict(self._url)
        found = [self._url]
        for password in (str(given.get(key) or "") for key in ("password", "sslpassword")):
            found += [password, quote(password, safe=""), quote_plus(password)]
        for secret in sorted(filter(None, found), key=len, reverse=True):
            text = text.replace(secret, "***")
        return text.strip()


def _texts(column: pa.ChunkedArray, type_: str) -> list[str | None]:
    """A column as texts that the server reads as the type's."""
    found: list[str | None] = []
    for chunk in column.chunks:
        found += plain_texts(chunk, type_).to_pylist()
    return ["\\x" + v if v is not None else None for v in found] if type_ == "BINARY" else found


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''").replace("%", "%%") + "'"


