"""A PostgreSQL table that is always some state of a view: rows and position in one transaction.

    python -m examples.recipes.postgres_copy PROJECT VIEW NAME URL

NAME is the subscription. The table is called as the view is, and must be there, with its columns.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.compute as pc
from psycopg import sql

import steadyview
from steadyview.runtime.subscribing import Delivery

POSITION = """CREATE TABLE IF NOT EXISTS steadyview_positions
    (name text PRIMARY KEY, epoch int NOT NULL, cn bigint NOT NULL)"""
KEEP = """INSERT INTO steadyview_positions VALUES (%s, %s, %s)
    ON CONFLICT (name) DO UPDATE SET epoch = excluded.epoch, cn = excluded.cn"""


def copy(project: str, view: str, name: str, url: str) -> None:
    """Bring the table to the view's newest changes."""
    with (
        steadyview.open(project) as warehouse,
        warehouse.subscribe(view, name) as reader,
        psycopg.connect(url, autocommit=True) as connection,
    ):
        connection.execute(POSITION)
        while (delivery := reader.next()) is not None:
            with connection.transaction():
                take(connection, view, name, delivery)
            reader.acknowledge()


def take(connection: psycopg.Connection, view: str, name: str, delivery: Delivery) -> None:
    """Apply what the table does not hold yet."""
    asked = "SELECT cn FROM steadyview_positions WHERE name = %s AND epoch = %s"
    known = connection.execute(asked, [name, delivery.epoch]).fetchone()
    last = -1 if known is None else known[0]
    if delivery.state and last < delivery.cn:
        connection.execute(sql.SQL("DELETE FROM {}").format(sql.Identifier(view)))
    for table in delivery.tables():
        rows = table.filter(pc.greater(table["_cn"], last))
        columns = rows.column_names[:-3]
        gone = rows.filter(pc.less(rows["_count"], 0))
        come = rows.filter(pc.greater(rows["_count"], 0))
        # by commit: a row may come, go and come again
        for cn in rows["_cn"].unique().to_pylist():
            delete(connection, view, columns, gone.filter(pc.equal(gone["_cn"], cn)))
            insert(connection, view, columns, come.filter(pc.equal(come["_cn"], cn)))
    connection.execute(KEEP, [name, delivery.epoch, max(last, delivery.cn)])


def delete(
    connection: psycopg.Connection, view: str, columns: list[str], rows: pa.Table
) -> None:
    """Each row as often as it went: equal rows are told apart by their places."""
    same = [sql.SQL("{} IS NOT DISTINCT FROM %s").format(sql.Identifier(c)) for c in columns]
    text = sql.SQL(
        "DELETE FROM {view} WHERE ctid IN (SELECT ctid FROM {view} WHERE {same} LIMIT %s)"
    ).format(view=sql.Identifier(view), same=sql.SQL(" AND ").join(same))
    with connection.cursor() as cursor:
        cursor.executemany(text, [(*row, -count) for row, count in counted(rows)])


def insert(
    connection: psycopg.Connection, view: str, columns: list[str], rows: pa.Table
) -> None:
    """Each row as often as it came."""
    listed = sql.SQL(", ").join(map(sql.Identifier, columns))
    text = sql.SQL("COPY {} ({}) FROM STDIN").format(sql.Identifier(view), listed)
    with connection.cursor() as cursor, cursor.copy(text) as into:
        for row, count in counted(rows):
            for _ in range(count):
                into.write_row(row)


def counted(rows: pa.Table) -> Iterator[tuple[tuple[Any, ...], int]]:
    """Rows of the view, and how many of each."""
    for *row, count, _, _ in zip(*(c.to_pylist() for c in rows.columns), strict=True):
        yield tuple(row), count


if __name__ == "__main__":
    copy(*sys.argv[1:5])
