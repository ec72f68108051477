"""TPC-H tables in an embedded PostgreSQL, loaded once and kept as template databases.

lineitem and orders lie in one database, customer, nation and region in another. The generator's
output goes straight into COPY. A template is complete when its comment says so; a run works on
copies of the templates and drops them at its end.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import psycopg
from psycopg import sql

from examples.embedded_postgres import EmbeddedPostgres

SERVER = {
    "shared_buffers": "1GB",
    "max_wal_size": "16GB",
    "checkpoint_timeout": "1h",
    "autovacuum": "off",
    "maintenance_work_mem": "512MB",
    "synchronous_commit": "off",
    "file_copy_method": "clone" if sys.platform == "darwin" else "copy",
}
"""No autovacuum, no checkpoints: what is measured is steadyview, not the server's upkeep."""
_COMPLETE = "steadyview benchmark, layout 2"
_BLOCK = 1 << 20
_TABLES = {
    "sales": {
        "orders": """CREATE TABLE orders (o_orderkey bigint, o_custkey bigint,
            o_orderstatus char(1), o_totalprice numeric(15,2), o_orderdate date,
            o_orderpriority text, o_clerk text, o_shippriority int, o_comment text)""",
        "lineitem": """CREATE TABLE lineitem (l_orderkey bigint, l_partkey bigint, l_suppkey bigint,
            l_linenumber int, l_quantity numeric(15,2), l_extendedprice numeric(15,2),
            l_discount numeric(15,2), l_tax numeric(15,2), l_returnflag char(1),
            l_linestatus char(1), l_shipdate date, l_commitdate date, l_receiptdate date,
            l_shipinstruct text, l_shipmode text, l_comment text)""",
    },
    "crm": {
        "customer": """CREATE TABLE customer (c_custkey bigint, c_name text, c_address text,
            c_nationkey bigint, c_phone text, c_acctbal numeric(15,2), c_mktsegment text,
            c_comment text)""",
        "nation": """CREATE TABLE nation (n_nationkey bigint, n_name text, n_regionkey bigint,
            n_comment text)""",
        "region": """CREATE TABLE region (r_regionkey bigint, r_name text, r_comment text)""",
    },
}
_KEYS = {
    "orders": "o_orderkey",
    "lineitem": "l_orderkey, l_linenumber",
    "customer": "c_custkey",
    "nation": "n_nationkey",
    "region": "r_regionkey",
}
Told = Callable[[str], None]


@dataclass(frozen=True)
class Databases:
    """The two databases of one scale factor; `prefix` tells templates and copies apart."""

    server: EmbeddedPostgres
    prefix: str
    scale: float

    def name(self, role: str) -> str:
        """The database for "sales" or "crm"."""
        return f"{self.prefix}_{str(self.scale).replace('.', '_')}_{role}"

    def url(self, role: str) -> str:
        """Its connection string."""
        return self.server.url(self.name(role))

    def connect(self, role: str) -> psycopg.Connection:
        """An autocommit connection."""
        return self.server.connect(self.name(role))


def complete(databases: Databases) -> bool:
    """Whether these templates were loaded to the end."""
    sql_text = (
        "SELECT count(*) FROM pg_database WHERE datname = ANY(%s)"
        " AND shobj_description(oid, 'pg_database') = %s"
    )
    names = [databases.name(role) for role in _TABLES]
    with databases.server.connect() as connection:
        row = connection.execute(sql_text, [names, _COMPLETE]).fetchone()
    return row is not None and row[0] == len(names)


def load(databases: Databases, told: Told) -> None:
    """Generate and load; `seal` the templates when their indexes are there as well."""
    for role, tables in _TABLES.items():
        drop(databases.server, [databases.name(role)])
        databases.server.create_database(databases.name(role))
        with databases.connect(role) as connection:
            for table, ddl in tables.items():
                told(f"SF {databases.scale:g}: {table}")
                connection.execute(ddl)
                _fill(connection, table, databases.scale)
                key = f"ALTER TABLE {table} ADD PRIMARY KEY ({_KEYS[table]}), REPLICA IDENTITY FULL"
                connection.execute(key)


def _fill(connection: psycopg.Connection, table: str, scale: float) -> None:
    with (
        generated(table, scale) as rows,
        connection.cursor() as cursor,
        cursor.copy(f"COPY {table} FROM STDIN (FORMAT csv, HEADER true)") as copy,
    ):
        while block := rows.read(_BLOCK):
            copy.write(block)


@contextmanager
def generated(table: str, scale: float) -> Iterator[IO[bytes]]:
    """A table's rows as CSV with a header."""
    command = [_generator(), "csv", "-s", f"{scale:g}", "-T", table, "--stdout", "--quiet"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as generator:
        assert generator.stdout is not None
        yield generator.stdout
    if generator.returncode:
        raise RuntimeError(f"tpchgen-cli ended with {generator.returncode}")


def _generator() -> str:
    beside = Path(sys.executable).with_name("tpchgen-cli")
    found = str(beside) if beside.exists() else shutil.which("tpchgen-cli")
    if found is None:
        raise RuntimeError("tpchgen-cli is missing; run: make bench")
    return found


def index(databases: Databases, role: str, table: str, column: str) -> None:
    """Create an index."""
    named = sql.Identifier(*table.split(".")), sql.Identifier(column)
    with databases.connect(role) as connection:
        connection.execute(sql.SQL("CREATE INDEX ON {} ({})").format(*named))


def seal(databases: Databases, indexes: Iterable[tuple[str, str, str]]) -> None:
    """Create the indexes (source, table, column), and mark the templates as complete."""
    for role, table, column in indexes:
        index(databases, role, table, column)
    for role in _TABLES:
        with databases.connect(role) as connection:
            connection.execute("VACUUM (ANALYZE)")
        with databases.server.connect() as connection:
            connection.execute(
                sql.SQL("COMMENT ON DATABASE {} IS {}").format(
                    sql.Identifier(databases.name(role)), sql.Literal(_COMPLETE)
                )
            )


def copy_of(template: Databases, prefix: str) -> Databases:
    """Fresh copies of the templates, to be changed at will."""
    made = Databases(template.server, prefix, template.scale)
    for role in _TABLES:
        drop(made.server, [made.name(role)])
        with made.server.connect() as connection:
            connection.execute(
                sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy").format(
                    sql.Identifier(made.name(role)), sql.Identifier(template.name(role))
                )
            )
    return made


def drop_copies(server: EmbeddedPostgres, prefix: str) -> None:
    """Drop every copy, also those that a killed run left behind."""
    with server.connect() as connection:
        found = connection.execute(
            "SELECT datname FROM pg_database WHERE starts_with(datname, %s)", [f"{prefix}_"]
        ).fetchall()
    drop(server, [name for (name,) in found])


def drop(server: EmbeddedPostgres, names: Iterable[str]) -> None:
    """Drop databases with their slots, whoever is still connected."""
    for name in names:
        with server.connect() as connection:
            slots = connection.execute(
                "SELECT slot_name, active_pid FROM pg_replication_slots WHERE database = %s", [name]
            ).fetchall()
            for slot, pid in slots:
                if pid:
                    connection.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
                connection.execute("SELECT pg_drop_replication_slot(%s)", [slot])
            connection.execute(
                sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name))
            )
