"""What every source family provides. `tests/sources/test_contract.py` holds each family to it.

A family is a `Source`. It gives out a `Monitor` (the change stream) and `Snapshot`s (answers).

    monitor:   chunks of whole transactions in commit order, resumable at any acknowledged position
    snapshot:  one frozen state S of the source, which knows the set P of transactions it reflects;
               every read of it, from any process, is an answer over that same S   (law 3)

Invariant joining the two: once the monitor's position has reached `snapshot.horizon`, every
transaction that the snapshot reflects has been delivered, and for every relation R

    S.R  ==  initial R  +  sum of row images of { t delivered : snapshot.reflects(t) }

Capture proves that it has everything, twice:

    the stream      a monitor has a `proof` of what it delivered, remembered with the position. It
                    is handed to the next monitor, which delivers nothing new until it has found
                    all of it at the source again: the same database, the same history.
    the relations   `examine` compares what the source's own catalog says of each relation with what
                    it said before (`RelationSchema.evidence`): every kind of change of the same
                    table has been in the stream, and no value changed outside it.

What cannot be proved is a loss, told with its reason; it may be told too early, never too late.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from steadyview.changes import (
    Chunk,
    Loss,
    RelationName,
    RelationSchema,
    StreamPosition,
    Transaction,
)
from steadyview.errors import SteadyviewError


@dataclass(frozen=True)
class Owner:
    """The warehouse on whose behalf a source is opened.

    `warehouse` tells warehouses apart (eight lower-case hexadecimal digits): what is set up at the
    source under a name of ours carries it. `proof` is what the last monitor left, empty if nothing
    was captured yet; `{"format": 1}` if it was captured before there were proofs and such names.
    """

    warehouse: str
    proof: str = ""


@dataclass(frozen=True)
class Span:
    """The rows whose value in a column (of whole numbers) is in low <= value < high.

    None: no such bound; NULL, should the column get any, is lower than all. A row belongs to a span
    by its content, so that the rows of a span can be compensated by the log rows of the same span.
    """

    column: int
    low: int | None
    high: int | None


@dataclass(frozen=True)
class Read:
    """A question to a source: some columns of one relation, whole or of some rows of it.

    `columns` (at least one) and `key` are column numbers. With `key`, `values` (an Arrow array of
    the key column's own Arrow type, distinct, without NULLs) are looked up; the answer may hold
    more rows, never less. With `span`, the answer holds exactly the rows of the span.
    """

    relation: RelationSchema
    columns: tuple[int, ...]
    key: int | None = None
    values: pa.Array | None = None
    span: Span | None = None


@dataclass(frozen=True)
class Examined:
    """What a look into the source's own catalog showed.

    `losses`: what can no longer be proved, with the reason for people (`seq` 0: found outside the
    stream). `evidence`: what the catalog says now of every relation that exists; remembered, it is
    what the next look compares with.
    """

    losses: tuple[Loss, ...]
    evidence: Mapping[RelationName, str]


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

    def spans(self, relation: RelationSchema, rows: int) -> Sequence[Span]:
        """Disjoint spans of about `rows` rows that together hold every row the relation can have.

        By a column of its key that is indexed and of whole numbers; empty where there is none, or
        where the relation has no more rows than that.
        """

    def close(self) -> None:
        """Give the snapshot back; safe to call twice."""


class Monitor(Protocol):
    """The change stream. One reader at a time."""

    @property
    def proof(self) -> str:
        """What must be found at the source again when capture goes on after the last chunk.

        Text, without any credential. Of the position of the last chunk delivered, or of the start;
        it may change without a chunk (the source was restarted and is proved to be the same).
        """

    def poll(self, timeout: float) -> Chunk | None:
        """The next chunk as soon as there is one, None after `timeout` seconds without progress.

        A chunk is bounded (about 32 MB); while a transaction is open the next poll continues it.
        Raises SourceUnavailable when the connection is lost: open a new monitor then; and
        SourceDiverged when the source turns out to be another one, or one with another past.
        """

    def divide(self, times: Sequence[int]) -> None:
        """From now on no chunk holds transactions dated on both sides of one of these times.

        Commit times of the source's own clock. Where that cannot be, the chunk says so (`mixed`).
        Soon after such a time has come, `heard` passes it, also if nothing is committed.
        """

    @property
    def heard(self) -> int:
        """All that was committed up to this time, by the source's own clock, was delivered."""

    def acknowledge(self, position: StreamPosition) -> None:
        """Everything before `position` is durable here: the source may forget it."""

    def close(self) -> None:
        """Stop reading; what was not acknowledged comes again. Safe to call twice."""


class Source(Protocol):
    """One configured database."""

    name: str
    family: str
    unseen: str
    """What can be done to rows here that no evidence shows, for people: the audit's part. No right
    that could be granted to us would show it."""

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
        """Undo `prepare` completely; what was removed, for people. Idempotent.

        Needs no more than how to reach the source, and the `proof` of the owner.
        """

    def holdings(self) -> list[str]:
        """What of ours still stands at the source and what it costs there, for people."""

    def position(self, text: str) -> StreamPosition:
        """Read back what `str(position)` wrote."""

    def start(self) -> StreamPosition:
        """Where capture starts when nothing was captured yet."""

    def time(self) -> int | None:
        """What the source's clock shows, in microseconds; None if it has none of its own."""

    def monitor(
        self,
        relations: Sequence[RelationSchema],
        position: StreamPosition,
        next_seq: int,
        proof: str = "",
    ) -> Monitor:
        """The stream from `position` on, its first transaction numbered `next_seq`.

        `proof` is what the monitor before had at `position`; empty: nothing is to be proved.
        Raises ChangesLost when the source no longer has what follows `position`, SourceDiverged
        when it is another one than the proof is of.
        """

    def examine(self, relations: Sequence[RelationSchema], proof: str) -> Examined:
        """Whether everything that was committed by now was in the stream, as far as can be seen.

        Looks at the present moment, in a session of its own. Raises SourceDiverged for another
        database than `proof` is of, SourceUnavailable while that is not known (the server was
        restarted, and the monitor has not proved it yet).
        """

    def snapshot(self) -> Snapshot:
        """Freeze the source's present state."""

    def close(self) -> None:
        """Let go of idle connections; the source can still be used afterwards."""
