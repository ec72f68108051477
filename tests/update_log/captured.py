"""Chunks as a monitor would deliver them, for the tests of the log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from steadyview.changes import (
    Chunk,
    Column,
    RelationName,
    RelationSchema,
    StreamPosition,
    Transaction,
)

ORDERS = RelationSchema(
    RelationName("sales", ("public", "orders")),
    (Column("id", "BIGINT"), Column("price", "DECIMAL(12,2)"), Column("at", "TIMESTAMP_NTZ")),
)
LINES = RelationSchema(
    RelationName("sales", ("public", "Order Lines")),
    (Column("id", "BIGINT"), Column("t", "STRING")),
)
SHOP = (ORDERS, LINES)


@dataclass(frozen=True)
class At(StreamPosition):
    """A position for tests: a number."""

    number: int

    def __le__(self, other: StreamPosition) -> bool:
        return isinstance(other, At) and self.number <= other.number

    def __str__(self) -> str:
        return f"at-{self.number}"


def rows(relation: RelationSchema, seqs: Sequence[int]) -> pa.Table:
    """One inserted row per seq; its first column is 10 * seq, its transaction id 1000 + seq."""
    return pa.table(
        {
            "c0": pa.array([10 * s for s in seqs], pa.int64()),
            "_seq": pa.array(seqs, pa.int64()),
            "_count": pa.array([1] * len(seqs), pa.int32()),
            "_tx": pa.array([1000 + s for s in seqs], pa.int64()),
        }
    )


def chunk(seqs: Sequence[int], relations: Sequence[RelationSchema] = SHOP) -> Chunk:
    """Transactions with one row in every relation."""
    return Chunk(
        rows={r.name: rows(r, seqs) for r in relations},
        transactions=tuple(Transaction(s, 1000 + s, s, len(relations)) for s in seqs),
        position=At(max(seqs, default=0)),
    )
