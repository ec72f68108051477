"""Where the log of a relation lies and what its table looks like."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from steadyview.changes import Column, RelationName, RelationSchema, arrow_schema
from steadyview.changes.types import COUNT, SEQ, TX
from steadyview.delta import FileEntry, Table, slug

RANGED = (SEQ,)
_FLUSH = re.compile(r"data/(?P<app>[^/]+)-(?P<version>\d+)/.*")


def app_of(source: str) -> str:
    """The name under which a source's flushes are committed."""
    return f"log:{source}"


def log_schema(columns: Sequence[Column]) -> pa.Schema:
    """Columns `c0..` of the relation, then the log's own."""
    own = [pa.field(SEQ, pa.int64()), pa.field(COUNT, pa.int32()), pa.field(TX, pa.int64())]
    return pa.schema([*arrow_schema(columns), *own])


def source_folder(root: Path, source: str) -> Path:
    """Where the tables of a source lie."""
    return root / slug(source)


def table_of(root: Path, relation: RelationName) -> Table:
    """The relation's table; its folder is safe and unique for any identifier, also without case."""
    return Table(source_folder(root, relation.source) / slug(".".join(map(_quoted, relation.path))))


def tables_of(root: Path, source: str) -> list[Table]:
    """Every table of the source that exists, by folder."""
    folder = source_folder(root, source)
    found = (Table(path) for path in sorted(folder.glob("*")) if path.is_dir())
    return [table for table in found if table.exists()]


def prepare(root: Path, relation: RelationSchema) -> Table:
    """The relation's table with all its columns, created or widened where needed. Idempotent."""
    schema = log_schema(relation.columns)
    table = Table.create(table_of(root, relation.name).path, schema, ranged=RANGED)
    table.add_columns(list(schema))
    return table


def flush_of(file: FileEntry, source: str) -> int | None:
    """The flush that wrote the file, None for a compacted one."""
    found = _FLUSH.fullmatch(file.relative)
    if not found or found["app"] != slug(app_of(source)):
        return None
    return int(found["version"])


def _quoted(part: str) -> str:
    """Keep ("a.b",) and ("a", "b") apart."""
    return f'"{part}"' if "." in part or '"' in part else part
