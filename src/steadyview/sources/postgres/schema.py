"""Watched relations as PostgreSQL's catalog describes them, and what stands in the way of watching.

A column's `source_type` is `format_type` under search_path pg_catalog, so that user types are
always qualified; enums and domains say what they are ("enum public.mood").
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import psycopg
from psycopg import sql

from steadyview.changes import Column, RelationName, RelationSchema
from steadyview.errors import SourceRefused, SteadyviewError
from steadyview.nearest import did_you_mean
from steadyview.sources.postgres.types import PgType, pg_type
from steadyview.sources.spelling import parts

_GENERATED_PUBLISHED_FROM = 180000

SOURCE_TYPE = """CASE t.typtype WHEN 'e' THEN 'enum ' || tn.nspname || '.' || t.typname
    WHEN 'd' THEN 'domain ' || tn.nspname || '.' || t.typname
    ELSE format_type(t.oid, {typmod}) END"""

_TABLES = """
SELECT n.nspname, c.relname, c.oid, c.relkind::text, c.relpersistence::text, c.relreplident::text,
       EXISTS (SELECT FROM pg_inherits i WHERE i.inhparent = c.oid)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN unnest(%s::text[], %s::text[]) AS w(s, t) ON n.nspname = w.s AND c.relname = w.t"""

_SPELLINGS = """
SELECT quote_ident(n.nspname) || '.' || quote_ident(c.relname)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'r' AND n.nspname NOT IN ('pg_catalog', 'information_schema') LIMIT 1000"""

_RIGHTS = """
SELECT n.nspname, c.relname, has_schema_privilege(n.oid, 'USAGE'),
       has_table_privilege(c.oid, 'SELECT'), row_security_active(c.oid)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN unnest(%s::text[], %s::text[]) AS w(s, t) ON n.nspname = w.s AND c.relname = w.t
ORDER BY n.nspname, c.relname"""

_COLUMNS = f"""
SELECT a.attrelid, a.attname, {SOURCE_TYPE.format(typmod="a.atttypmod")}, a.attgenerated::text,
       coalesce(l.collisdeterministic, true)
FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
JOIN pg_namespace tn ON tn.oid = t.typnamespace
LEFT JOIN pg_collation l ON l.oid = a.attcollation
WHERE a.attrelid = ANY(%s::oid[]) AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attrelid, a.attnum"""

_INDEXES = """
SELECT i.indrelid, i.indisprimary,
       array(SELECT a.attname::text FROM unnest(i.indkey::int2[]) WITH ORDINALITY AS k(n, o)
             JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.n
             WHERE k.o <= i.indnkeyatts ORDER BY k.o), (i.indkey::int2[])[0] <> 0,
       i.indimmediate
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am m ON m.oid = c.relam
WHERE i.indrelid = ANY(%s::oid[]) AND i.indisvalid AND i.indpred IS NULL
  AND m.amname IN ('btree', 'hash')
ORDER BY i.indexrelid"""

_KINDS = {
    "p": "a partitioned table",
    "v": "a view",
    "m": "a materialized view",
    "f": "a foreign table",
}


@dataclass(frozen=True)
class FoundTable:
    """A table as found: its oid, its columns as the stream may carry them, the rest by reason."""

    schema: RelationSchema
    oid: int
    full_identity: bool
    unsupported: Mapping[str, str]


@dataclass(frozen=True)
class _Found:
    path: tuple[str, str]
    oid: int
    kind: str
    persistence: str
    identity: str
    has_children: bool


def path_of(spelling: str) -> tuple[str, str]:
    """Schema and table of a configured name, folded as PostgreSQL folds what is not quoted.

    >>> path_of('Orders'), path_of('"Sales"."Order Lines"')
    (('public', 'orders'), ('Sales', 'Order Lines'))
    """
    names = [p.text if p.quoted else p.text.lower() for p in parts(spelling)]
    if len(names) == 1:
        names.insert(0, "public")
    if len(names) != 2:
        raise SourceRefused(f'table "{spelling}" is not written as schema.table')
    return names[0], names[1]


def read_tables(
    connection: psycopg.Connection, source: str, paths: Sequence[tuple[str, str]]
) -> list[FoundTable]:
    """The tables at `paths`, in that order; SourceRefused if one cannot be watched at all."""
    found = {t.path: t for t in existing(connection, paths)}
    for path in paths:
        if path not in found:
            raise _no_table(connection, source, path)
        _refuse_unwatchable(source, path, found[path])
    oids = [found[p].oid for p in paths]
    columns = _by_oid(connection.execute(_COLUMNS, [oids]).fetchall())
    indexes = _by_oid(connection.execute(_INDEXES, [oids]).fetchall())
    version = connection.info.server_version
    return [
        _table(
            source, found[p], columns.get(found[p].oid, []), indexes.get(found[p].oid, []), version
        )
        for p in paths
    ]


def reading_obstacles(
    connection: psycopg.Connection, source: str, paths: Sequence[tuple[str, str]]
) -> list[SteadyviewError]:
    """Tables that our role may not read, or of which it would not see every row."""
    question = [[p[0] for p in paths], [p[1] for p in paths]]
    role = sql.Identifier(connection.info.user)
    found: list[SteadyviewError] = []
    for name, table, usage, select, hidden in connection.execute(_RIGHTS, question).fetchall():
        grants = [
            sql.SQL("GRANT USAGE ON SCHEMA {} TO {};").format(sql.Identifier(name), role),
            sql.SQL("GRANT SELECT ON {} TO {};").format(sql.Identifier(name, table), role),
        ]
        lacking = [
            g.as_string(None) for g, has in zip(grants, (usage, select), strict=True) if not has
        ]
        if lacking:
            fact = f'source "{source}" lacks the right to read "{name}.{table}"'
            hint = "run as its owner: " + " ".join(lacking)
            found.append(SourceRefused(fact, hint=hint))
        if hidden:
            fact = f'row-level security hides rows of "{name}.{table}" from source "{source}"'
            bypass = sql.SQL("ALTER ROLE {} BYPASSRLS;").format(role).as_string(None)
            found.append(SourceRefused(fact, hint=f"run as a superuser: {bypass}"))
    return found


def existing(connection: psycopg.Connection, paths: Sequence[tuple[str, str]]) -> list[_Found]:
    """Those of `paths` that exist, as relations of any kind."""
    rows = connection.execute(_TABLES, [[p[0] for p in paths], [p[1] for p in paths]]).fetchall()
    return [_Found((r[0], r[1]), *r[2:]) for r in rows]


def _by_oid(rows: Iterable[Sequence[object]]) -> dict[int, list[tuple[object, ...]]]:
    grouped: dict[int, list[tuple[object, ...]]] = {}
    for oid, *rest in rows:
        grouped.setdefault(int(str(oid)), []).append(tuple(rest))
    return grouped


def _no_table(
    connection: psycopg.Connection, source: str, path: tuple[str, str]
) -> SourceRefused:
    name = ".".join(path)
    near = did_you_mean(name, [str(row[0]) for row in connection.execute(_SPELLINGS).fetchall()])
    return SourceRefused(
        f'table "{name}" does not exist at source "{source}"',
        hint=near or 'check the spelling; a name with upper case needs quotes: public."Orders"',
    )


def _refuse_unwatchable(source: str, path: tuple[str, str], found: _Found) -> None:
    name = ".".join(path)
    reason = _KINDS.get(found.kind) or (None if found.kind == "r" else "not a table")
    if not reason and found.persistence != "p":
        reason = "not a permanent table: its changes are not in the write-ahead log"
    if not reason and found.has_children:
        reason = "a parent of inherited tables"
    if reason:
        raise SourceRefused(f'"{name}" at source "{source}" is {reason} and cannot be watched')


def _table(
    source: str,
    found: _Found,
    columns: Sequence[tuple[object, ...]],
    indexes: Sequence[tuple[object, ...]],
    version: int,
) -> FoundTable:
    kept: list[Column] = []
    unsupported: dict[str, str] = {}
    for name, source_type, generated, deterministic in columns:
        mapped = _mapped(str(source_type), str(generated), version, found)
        if isinstance(mapped, str):
            unsupported[str(name)] = mapped
        else:
            keyable = mapped.element is not None and bool(deterministic)
            kept.append(Column(str(name), mapped.spark, str(source_type), keyable))
    names = {c.name for c in kept}
    primary, is_immediate = _primary_key(indexes, names)
    schema = RelationSchema(
        RelationName(source, found.path),
        tuple(kept),
        primary if is_immediate else (),
        _leading(indexes, names),
        primary=primary,
    )
    return FoundTable(schema, found.oid, found.identity == "f", unsupported)


def _mapped(source_type: str, generated: str, version: int, found: _Found) -> PgType | str:
    if generated == "v":
        # Publishing such a table would make PostgreSQL reject its updates and deletes.
        raise SourceRefused(
            f'table "{".".join(found.path)}" has a virtual generated column and cannot be published'
        )
    if generated and version < _GENERATED_PUBLISHED_FROM:
        return "a generated column is not part of the change stream before PostgreSQL 18"
    return pg_type(source_type)


def _primary_key(
    indexes: Sequence[tuple[object, ...]], names: set[str]
) -> tuple[tuple[str, ...], bool]:
    """The primary key, and whether it holds at every moment: a deferrable one does at commit."""
    for primary, columns, _, immediate in indexes:
        if primary and isinstance(columns, list) and names.issuperset(columns):
            return tuple(columns), bool(immediate)
    return (), False


def _leading(indexes: Sequence[tuple[object, ...]], names: set[str]) -> tuple[str, ...]:
    """Columns that lead an index; an index that begins with an expression has none."""
    leading = [c[0] for _, c, plain, _ in indexes if plain and isinstance(c, list) and c]
    return tuple(dict.fromkeys(c for c in leading if c in names))
