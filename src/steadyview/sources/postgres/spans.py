"""Spans of a key: where to cut a relation so that its parts can be read one after the other.

The cuts are quantiles of a sample of the table's pages, taken in the snapshot itself: no statistics
have to be there, and gaps between the values do not matter. Any cuts would be right; the first span
has no lower bound and the last no upper one.
"""

from __future__ import annotations

from collections.abc import Sequence

import psycopg
from psycopg import sql

from steadyview.changes import RelationSchema
from steadyview.sources.contract import Span

_WHOLE_NUMBERS = {"SMALLINT", "INT", "BIGINT"}
_SAMPLE = 30_000
_KEYS = """
SELECT a.attname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
JOIN pg_am m ON m.oid = c.relam
JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
WHERE i.indrelid = %s::regclass AND i.indisvalid AND i.indisunique AND i.indnkeyatts = 1
  AND i.indpred IS NULL AND m.amname = 'btree' AND a.attnotnull
ORDER BY i.indisprimary DESC, i.indexrelid"""


def spans_of(
    connection: psycopg.Connection, relation: RelationSchema, rows: int
) -> Sequence[Span]:
    """Spans of about `rows` rows; none where there is no such key, or no more rows than that."""
    table = sql.Identifier(*relation.name.path)
    name = _key(connection, relation, table)
    size = _estimate(connection, table) if name else 0
    if name is None or size <= rows:
        return []
    sample = sql.SQL("SELECT {} FROM ONLY {} TABLESAMPLE SYSTEM ({}) ORDER BY 1").format(
        sql.Identifier(name), table, sql.Literal(min(100.0, 100.0 * _SAMPLE / size))
    )
    values = [r[0] for r in connection.execute(sample).fetchall()]
    parts = -(-size // rows)
    cuts = {values[len(values) * i // parts] for i in range(1, parts)} if values else set()
    edges: list[int | None] = [None, *sorted(cuts), None]
    number = relation.number(name)
    return [Span(number, a, b) for a, b in zip(edges, edges[1:], strict=False)]


def span_condition(relation: RelationSchema, span: Span) -> sql.Composable:
    """The rows of a span."""
    column = sql.Identifier(relation.columns[span.column].name)
    bounds = [("{} >= {}", span.low), ("{} < {}", span.high)]
    given = [
        sql.SQL(text).format(column, sql.Literal(bound))
        for text, bound in bounds
        if bound is not None
    ]
    if span.low is None and given:
        # the column may have become nullable since the spans were cut
        given = [sql.SQL("({} OR {} IS NULL)").format(given[0], column)]
    return sql.SQL(" AND ").join(given) if given else sql.SQL("true")


def _key(
    connection: psycopg.Connection, relation: RelationSchema, table: sql.Identifier
) -> str | None:
    """A unique column of whole numbers, never NULL, with an index; the primary key if it is one."""
    known = {c.name for c in relation.columns if c.type in _WHOLE_NUMBERS}
    found = connection.execute(_KEYS, [table.as_string(None)]).fetchall()
    return next((str(name) for (name,) in found if name in known), None)


def _estimate(connection: psycopg.Connection, table: sql.Identifier) -> int:
    """How many rows the planner expects, by the table's present size."""
    explain = sql.SQL("EXPLAIN (FORMAT JSON) SELECT FROM ONLY {}").format(table)
    row = connection.execute(explain).fetchone()
    return int(row[0][0]["Plan"]["Plan Rows"]) if row else 0
