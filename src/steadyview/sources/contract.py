"""What every source family provides. `tests/sources/test_contract.py` holds each family to it.

A family is a `Source`. It gives out a `Monitor` (the change stream) and `Snapshot`s (answers).

    monitor:   chunks of whole transactions in commit order, resumable at any acknowledged position
    snapshot:  one frozen state S of the source, which knows the set P of transactions it reflects;
               every read of it, from any process, is an answer over that same S   (law 3)

Invariant joining the two: once the monitor's position has reached `snapshot.horizon`, every
transaction that the snapshot reflects has been delivered, and for every relation R

    S.R  ==  initial R  +  sum of row images of { t delivered : snapshot.reflects(t) }
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from steadyview.changes import Chunk, RelationName, RelationSchema, StreamPosition, Transaction
from steadyview.errors import SteadyviewError


@dataclass(frozen=True)
class Read:
    """A question to a source: some columns of one relation, whole or by values of one column.

    `columns` (at least one) and `key` are column numbers. With `key`, `values` (an Arrow array of
    the key column's own Arrow type, distinct, without NULLs) are looked up; the answer may hold
    more rows, never less.
    """

    relation: RelationSchema
    columns: tuple[int, ...]
    key: int | None = None
    values: pa.Array | None = None


class ReadTask(Protocol):
    """A part of a `Read`, carried out under the snapshot it was made from."""

    @property
    def local(self) -> bool:
        """True: only this process can carry it out. False: it is picklable and any process can."""

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows in batches of bounded size, columns `c{number}` in ascending number order.

        Raises ColumnLost for a value that cannot be kept exactly.
        """


class Snapshot(Protocol):
    """One frozen state of the source. Close it, also on failure."""

    @property
    def horizon(self) -> StreamPosition:
        """Once the monitor's position is not before this, all that is reflected was delivered."""

    def reflects(self, transaction: Transaction) -> bool:
        """Whether this state shows the transaction. Exact for every delivered transaction."""

    def tasks(self, read: Read, parallelism: int = 1) -> Sequence[ReadTask]:
        """The read as at most `parallelism` disjoint tasks (fewer where cutting is not exact)."""

    def close(self) -> None:
        """Give the snapshot back; safe to call twice."""


class Monitor(Protocol):
    """The change stream. One reader at a time."""

    def poll(self, timeout: float) -> Chunk | None:
        """The next chunk as soon as there is one, None after `timeout` seconds without progress.

        A chunk is bounded (about 32 MB); while a transaction is open the next poll continues it.
        Raises SourceUnavailable when the connection is lost: open a new monitor then.
        """

    def acknowledge(self, position: StreamPosition) -> None:
        """Everything before `position` is durable here: the source may forget it."""

    def close(self) -> None:
        """Stop reading; what was not acknowledged comes again. Safe to call twice."""


class Source(Protocol):
    """One configured database."""

    name: str
    family: str

    def schemas(self) -> Sequence[RelationSchema]:
        """The watched relations as they are now; SourceRefused if one cannot be watched."""

    def unsupported(self) -> Mapping[RelationName, Mapping[str, str]]:
        """Columns of the watched relations that cannot be watched, by name, with the reason.

        They are not among the columns of `schemas`; relations without any are absent.
        """

    def obstacles(self, relations: Sequence[RelationSchema]) -> list[SteadyviewError]:
        """All that keeps these relations from being captured and read, each with what to do.

        Nothing is changed. What `prepare` would refuse is among them.
        """

    def prepare(self, relations: Sequence[RelationSchema]) -> list[str]:
        """Set up what capture still lacks (slot, publication, triggers); what was done, for people.

        Idempotent. Raises SourceRefused with the exact command where we must not or cannot.
        """

    def remove(self) -> list[str]:
        """Undo `prepare` completely; what was removed, for people. Idempotent."""

    def position(self, text: str) -> StreamPosition:
        """Read back what `str(position)` wrote."""

    def start(self) -> StreamPosition:
        """Where capture starts when nothing was captured yet."""

    def monitor(
        self, relations: Sequence[RelationSchema], position: StreamPosition, next_seq: int
    ) -> Monitor:
        """The stream from `position` on, its first transaction numbered `next_seq`.

        Raises ChangesLost when the source no longer has what follows `position`.
        """

    def snapshot(self) -> Snapshot:
        """Freeze the source's present state."""

    def close(self) -> None:
        """Let go of idle connections; the source can still be used afterwards."""
