"""What a source told us: relations and their types, transactions, chunks of row images, positions.

Belongs here: immutable descriptions of source facts, as plain values and Arrow tables.
Does not belong here: how a fact was obtained (`sources`), where it is kept (`update_log`).
Law: a recorded fact is frozen; later facts supersede it, nothing edits it.
"""

from steadyview.changes.flush import Flush
from steadyview.changes.relations import Column, RelationName, RelationSchema
from steadyview.changes.stream import Chunk, Loss, StreamPosition, Transaction
from steadyview.changes.types import arrow_schema, arrow_type

__all__ = [
    "Chunk",
    "Column",
    "Flush",
    "Loss",
    "RelationName",
    "RelationSchema",
    "StreamPosition",
    "Transaction",
    "arrow_schema",
    "arrow_type",
]
