"""The change stream of a SQLite source: the log, read in whole read transactions.

What was committed between two polls arrives as one transaction, cut where a snapshot was taken
(`cuts.py`). A file cannot call us: while idle, `PRAGMA data_version` (microseconds) is asked every
20 ms. A backlog too large for one chunk is read on in the same read transaction by the next poll.

SQLite does not say when it committed what. A look at the file dates what it finds; a time at which
transactions are to be divided is a moment to look, and what that look finds is dated so. A look
that comes late, because nobody captured then, cannot tell: what it finds counts as later.

Each read transaction first proves that the log is the one delivered so far (`proof.py`), and looks
at the relations (`evidence.py`) if the file's schema has changed.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from steadyview.changes import Chunk, RelationName, RelationSchema, StreamPosition
from steadyview.errors import SourceUnavailable
from steadyview.sources.sqlite import log
from steadyview.sources.sqlite.connection import DatabaseFile
from steadyview.sources.sqlite.cuts import Cuts
from steadyview.sources.sqlite.evidence import Evidence, Losses, moved, noted, present, unknown
from steadyview.sources.sqlite.intake import Intake
from steadyview.sources.sqlite.position import LogPosition
from steadyview.sources.sqlite.proof import Proof, diverged
from steadyview.sources.sqlite.pruning import prune
from steadyview.sources.sqlite.triggers import LOG

CHUNK_BYTES = 16 << 20
_LOOK_EVERY = 0.02
ON_TIME_MICROSECONDS = 50_000
"""A look is of a time if it comes so soon after it."""
_FETCH = 4096
_PRUNE_WAIT = 0.1


class SqliteMonitor:
    """See `contract.Monitor`."""

    def __init__(
        self,
        file: DatabaseFile,
        relations: Sequence[RelationSchema],
        position: LogPosition,
        next_seq: int,
        proof: Proof,
    ) -> None:
        self._file = file
        self._cuts = Cuts(file.path)
        self._relations = relations
        self._identity = file.identity()
        self._connection = file.connect()
        self._intake = Intake(relations, position, next_seq)
        self._proof = proof
        self._known: dict[RelationName, Evidence] = {}
        self._reading: Iterator[Chunk] | None = None
        self._schema_version = -1
        self._data_version = -1
        self._durable: LogPosition | None = None
        self._closed = threading.Event()
        self._times: Sequence[int] = ()
        self._heard = self._looked = self._dated = self._latest = 0
        self._mixed: tuple[int, ...] = ()

    @property
    def heard(self) -> int:
        """When the file was looked at, and all was delivered that the look found."""
        return self._heard

    def divide(self, times: Sequence[int]) -> None:
        """The file is looked at just after each of these times."""
        self._times = times

    @property
    def proof(self) -> str:
        """The last row delivered, with what was drawn for it."""
        return str(self._proof)

    def poll(self, timeout: float) -> Chunk | None:
        """The next chunk as soon as there is one; None after `timeout` seconds without progress."""
        deadline = time.monotonic() + timeout
        self._require_file()
        with self._file.errors():
            while True:
                chunk = self._next()
                left = deadline - time.monotonic()
                if chunk is not None or left <= 0 or self._closed.is_set():
                    return chunk
                self._wait_for_change(deadline)

    def acknowledge(self, position: StreamPosition) -> None:
        """Everything before `position` is durable here: the log rows up to it may go.

        A log that is busy is pruned by a later call.
        """
        if not isinstance(position, LogPosition):
            raise TypeError(f"not a SQLite position: {position}")
        self._durable = position
        if self._reading is None:
            self._prune()

    def close(self) -> None:
        """Stop reading."""
        self._closed.set()
        self._reading = None
        self._connection.close()

    def _require_file(self) -> None:
        """A file that was moved is still open here, while its users write to another one."""
        if self._file.identity() != self._identity:
            raise SourceUnavailable(
                f'file of source "{self._file.source}" was replaced by another one',
                source=self._file.source,
            )

    def _next(self) -> Chunk | None:
        if self._reading is None:
            self._reading = self._begin()
        if self._reading is None:
            return None
        chunk = next(self._reading, None)
        if chunk is None or not chunk.open:
            self._end()
        return chunk

    def _begin(self) -> Iterator[Chunk] | None:
        """Start a read transaction if there is something to read in it."""
        connection = self._connection
        if connection.in_transaction:
            # A poll failed half way; what it had read comes again.
            connection.execute("ROLLBACK")
        self._looked = time.time_ns() // 1000
        self._data_version = self._ask("data_version")
        after = self._intake.position
        with self._cuts.locked() as notes:
            connection.execute("BEGIN")
            self._proof.require(connection, self._file.source)
            last = log.last_row(connection)
            found = self._cuts.between(notes, after.log, after.row, last)
            cuts = [row for row, nonce in found if log.nonce(connection, row) == (nonce,)]
        drifted = self._ask("schema_version") != self._schema_version
        if last == after.row and not drifted:
            connection.execute("COMMIT")
            self._heard = self._looked
            return None
        self._date()
        if drifted:
            self._note_drift(after.row, last)
        return self._read(after.row, [*cuts, last])

    def _date(self) -> None:
        """What this look finds was committed since the one before, which found nothing more."""
        passed = [t for t in self._times if self._heard < t <= self._looked]
        on_time = [t for t in passed if self._looked - t <= ON_TIME_MICROSECONDS]
        self._dated = min(on_time, default=self._looked)
        self._mixed = tuple(t for t in passed if t < self._dated)

    def _note_drift(self, after: int, last: int) -> None:
        """Look at the relations; what was mended meanwhile is marked in the rows to be read."""
        connection = self._connection
        self._schema_version = self._ask("schema_version")
        logged, marks = log.relations(connection), log.marks(connection, after, last)
        for relation in self._relations:
            now = present(connection, relation.name)
            notes = logged.get(relation.name.path[0])
            lost: Losses = {}
            if now is not None and notes is not None:
                places = {column: place for column, (place, _) in now.columns.items()}
                self._intake.bind(relation, notes.number, places)
                before = self._known.get(relation.name, noted(connection, notes))
                lost = {**self._moved(relation, before, now), **marks.get(notes.number, {})}
                self._known[relation.name] = now
            self._intake.lose(relation, unknown(relation, now), lost)

    @staticmethod
    def _moved(relation: RelationSchema, before: Evidence, now: Evidence) -> Losses:
        """Columns that another one has the place of since the last look, or since set up."""
        if before.made != now.made:
            return {}  # mended meanwhile, and marked
        known = {c.name for c in relation.columns}
        lost = moved(relation.name, before, now)
        return {column: lost[column] for column in lost if column in known}

    def _read(self, after: int, ends: Sequence[int]) -> Iterator[Chunk]:
        intake = self._intake
        width = intake.width
        values = "".join(f", v{i}" for i in range(width))
        rows = self._connection.execute(
            f"SELECT seq, relation, count{values} FROM {LOG}"
            " WHERE seq > ? AND seq <= ? ORDER BY seq",
            [after, ends[-1]],
        )
        intake.begin(ends)
        while batch := rows.fetchmany(_FETCH):
            self._require_dense(after, batch)
            after = batch[-1][0]
            intake.take(batch)
            if intake.bytes >= CHUNK_BYTES:
                yield self._chunk()
        intake.end()
        if intake.news:
            yield self._chunk()

    def _require_dense(self, after: int, batch: Sequence[tuple[Any, ...]]) -> None:
        """Only what was acknowledged is ever deleted, and never by others."""
        if batch[-1][0] != after + len(batch):
            raise diverged(self._file.source, f"rows of its log after row {after} were deleted")

    def _chunk(self) -> Chunk:
        self._proof = Proof.of(self._connection, self._intake.position)
        chunk = self._intake.chunk(self._dated)
        if not (chunk.transactions or chunk.open):
            return replace(chunk, dated=self._latest)
        self._latest = max(self._latest, self._dated)
        return replace(chunk, dated=self._latest, mixed=self._mixed)

    def _end(self) -> None:
        self._reading = None
        self._heard = self._looked
        if self._connection.in_transaction:
            self._connection.execute("COMMIT")
        if self._durable:
            self._prune()

    def _prune(self) -> None:
        durable, self._durable = self._durable, None
        if durable is None:
            return
        connection = self._connection
        connection.execute(f"PRAGMA busy_timeout = {int(_PRUNE_WAIT * 1000)}")
        try:
            with self._file.errors():
                prune(connection, durable.row, self._proof)
        except SourceUnavailable:
            return
        finally:
            connection.execute("PRAGMA busy_timeout = 10000")
        self._cuts.forget(durable.log, durable.row)

    def _wait_for_change(self, deadline: float) -> None:
        while True:
            looked = time.time_ns() // 1000
            if self._ask("data_version") != self._data_version:
                return
            self._heard = max(self._heard, looked)
            left = deadline - time.monotonic()
            if left <= 0 or self._closed.wait(min(left, _LOOK_EVERY, self._until_time(looked))):
                return

    def _until_time(self, now: int) -> float:
        """Seconds until the next time at which the file is to be looked at."""
        return min((t - now for t in self._times if t > now), default=10**12) / 1_000_000

    def _ask(self, pragma: str) -> int:
        try:
            return int(self._connection.execute(f"PRAGMA {pragma}").fetchone()[0])
        except sqlite3.ProgrammingError:
            raise SourceUnavailable(f'monitor of source "{self._file.source}" was closed') from None
