"""Relations as their sources describe them.

A relation's columns are *numbered*: column i is stored as `c{i}` in the update log, in answers and
in every plan, so that no identifier of a source (upper case, spaces, quotes, reserved words) ever
meets Parquet or Spark's name resolution. Numbers are never reused: columns added at the source are
appended, dropped ones keep their number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, order=True)
class RelationName:
    """A relation's address: the source's name in the project, and the path inside the source.

    >>> str(RelationName("sales", ("public", "orders")))
    'sales.public.orders'
    """

    source: str
    path: tuple[str, ...]

    def __str__(self) -> str:
        return ".".join((self.source, *self.path))


@dataclass(frozen=True)
class Column:
    """One column.

    `type` is Spark's name of the type that holds every value exactly (see docs/types.md).
    `keyable`: the source finds, for a set of values, at least every row that Spark's `=` would find
    (its equality is Spark's or coarser), so that a lookup by this column may be sent.
    """

    name: str
    type: str
    source_type: str = ""
    keyable: bool = False


@dataclass(frozen=True)
class RelationSchema:
    """A relation's columns in number order, its keys and what is indexed at the source.

    `key` are columns of which none is ever NULL and that no two rows share, not even in the middle
    of a transaction; empty where the source enforces no such thing. `primary` is the primary key as
    it was declared, by which a person knows a row: it may be less than that.
    `indexes` lists the columns that *lead* an index, by name; a lookup by such a column is cheap.
    `evidence` is what the source's own catalog said about the relation when it was last looked at,
    in the family's own notation: `Source.examine` compares it with what the catalog says now.
    """

    name: RelationName
    columns: tuple[Column, ...]
    key: tuple[str, ...] = ()
    indexes: tuple[str, ...] = ()
    primary: tuple[str, ...] = ()
    evidence: str = ""

    def number(self, column: str) -> int:
        """The number of the column with exactly this name; KeyError if there is none."""
        for i, c in enumerate(self.columns):
            if c.name == column:
                return i
        raise KeyError(column)

    def to_json(self) -> dict[str, Any]:
        """A JSON-able description that `from_json` reads back to an equal value."""
        return {
            "source": self.name.source,
            "path": list(self.name.path),
            "columns": [[c.name, c.type, c.source_type, c.keyable] for c in self.columns],
            "key": list(self.key),
            "indexes": list(self.indexes),
            "primary": list(self.primary),
            "evidence": self.evidence,
        }

    @staticmethod
    def from_json(data: dict[str, Any]) -> RelationSchema:
        """The inverse of `to_json`."""
        return RelationSchema(
            RelationName(data["source"], tuple(data["path"])),
            tuple(Column(*c[:4]) for c in data["columns"]),
            tuple(data["key"]),
            tuple(data["indexes"]),
            tuple(data.get("primary", data["key"])),
            data.get("evidence", ""),
        )
