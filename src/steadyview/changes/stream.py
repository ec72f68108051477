"""A source's commits as they arrive: transactions, chunks of row images, positions.

The stream of a source is a sequence of chunks. Concatenated, their rows are exactly the row images
of transactions 1, 2, 3, ... in the source's commit order, none missing, none twice;
`Transaction.seq` counts them densely. A transaction too large for one chunk spans several; only the
last of them is not `open`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from steadyview.changes.relations import RelationName


class StreamPosition(ABC):
    """A place in one source's stream. Positions of different families cannot be compared."""

    @abstractmethod
    def __le__(self, other: StreamPosition) -> bool:
        """Whether everything committed up to here was committed up to `other`; same family only."""

    @abstractmethod
    def __str__(self) -> str:
        """The source's own notation; the family's `position` reads it back."""


@dataclass(frozen=True)
class Transaction:
    """One committed source transaction that changed at least one watched relation.

    `id` is the source's name for it (32-bit xid, log sequence), `committed` the source's own commit
    time in microseconds since 1970 UTC. `cn` is the only order; gates go by commit times.
    """

    seq: int
    id: int
    committed: int
    rows: int


@dataclass(frozen=True)
class Loss:
    """What is not known exactly from transaction `seq` on, and why.

    One column's values (stored as NULL) or, `column` None, changes of the whole relation, which
    concerns every view that reads it. `mendable`: single values at the source are the cause; a view
    that is built anew once they are mended can go on.
    """

    relation: RelationName
    column: str | None
    seq: int
    reason: str
    mendable: bool = False


@dataclass(frozen=True)
class Chunk:
    """What arrived since the chunk before.

    `rows[r]` has the columns of r as `c0..`, then `_seq` int64, `_count` int32, `_tx` int64.
    `transactions` lists those that *ended* in this chunk, seq dense and ascending.
    `open`: the last rows belong to a transaction that has not ended yet.
    `position`: everything committed before it has been delivered (unless open: up to the last end).
    `dated`: the latest commit time of all that was delivered so far, that of an open transaction
    included. `mixed`: the times asked for (`Monitor.divide`) at which it could not be divided.
    """

    rows: Mapping[RelationName, pa.Table]
    transactions: tuple[Transaction, ...]
    position: StreamPosition
    open: bool = False
    lost: tuple[Loss, ...] = field(default=())
    dated: int = 0
    mixed: tuple[int, ...] = ()
