"""Writing the captured chunks of one source as flushes.

A flush writes one Parquet file per touched relation and commits it to the relation's table under
the name (source, flush number); the caller then admits it to the catalog. Rows stream to the files,
so that memory is bounded whatever a transaction's size. A writer that raised is spent: `abandon`
it, `recover` the log, and capture again from the catalog's position.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from steadyview.changes import Chunk, Flush, Loss, RelationName, RelationSchema
from steadyview.crash_points import crash_point
from steadyview.delta import AddedFile, ParquetSink, Table
from steadyview.update_log.layout import RANGED, app_of, log_schema, prepare

BUFFER_BYTES = 64 * 1024 * 1024


class FlushWriter:
    """Appends chunks of one source; `number` is the flush being filled. One thread at a time.

    `next_seq` is the seq of the first transaction to come.
    """

    def __init__(
        self,
        root: Path,
        source: str,
        relations: Sequence[RelationSchema],
        number: int,
        next_seq: int,
    ) -> None:
        self.source = source
        self.number = number
        self._logs = {r.name: _RelationLog(root, r) for r in relations}
        self._next_seq = next_seq
        self._last_seq = next_seq - 1
        self._position: str | None = None
        self._lost: list[Loss] = []
        self._open = False

    @property
    def open(self) -> bool:
        """Whether the last transaction has not ended yet: it cannot be flushed now."""
        return self._open

    @property
    def transactions(self) -> int:
        """How many transactions ended since the last flush."""
        return self._last_seq - self._next_seq + 1

    @property
    def bytes(self) -> int:
        """About how much was appended since the last flush."""
        return sum(log.appended for log in self._logs.values())

    def append(self, chunk: Chunk) -> None:
        """Take a chunk. Rows go to disk as soon as more than 64 MB wait in memory."""
        for relation, rows in chunk.rows.items():
            self._logs[relation].append(rows)
        for transaction in chunk.transactions:
            if transaction.seq != self._last_seq + 1:
                raise ValueError(
                    f'source "{self.source}" delivered transaction {transaction.seq},'
                    f" expected {self._last_seq + 1}"
                )
            self._last_seq = transaction.seq
        self._position = str(chunk.position)
        self._lost.extend(chunk.lost)
        self._open = chunk.open
        if sum(log.buffered for log in self._logs.values()) > BUFFER_BYTES:
            for log in self._logs.values():
                log.spill(self.number)

    def flush(self, proof: str = "") -> Flush:
        """Make everything appended durable; the next chunk begins the next flush.

        `proof`: what must be found at the source again where it ends.

        ValueError while a transaction is open. Without rows nothing is written; the number passes.
        """
        if self._open:
            raise ValueError(f'source "{self.source}" is in the middle of a transaction')
        touched = {name: log for name, log in self._logs.items() if log.appended}
        files = {name: log.finish(self.number) for name, log in touched.items()}
        crash_point("log-file-written")
        for name, file in files.items():
            self._commit(touched[name].table, file)
        return self._taken({name: file.rows for name, file in files.items()}, proof)

    def abandon(self) -> None:
        """Drop what was not flushed; raises nothing."""
        for log in self._logs.values():
            log.abandon()

    def _commit(self, table: Table, file: AddedFile) -> None:
        table.commit(app_of(self.source), self.number, [file], metadata={"flush": str(self.number)})
        crash_point("log-committed")

    def _taken(self, rows: Mapping[RelationName, int], proof: str) -> Flush:
        """What this flush holds; the next one begins empty, under the next number."""
        flushed = Flush(
            source=self.source,
            number=self.number,
            seq_from=self._next_seq,
            seq_to=self._last_seq,
            rows=rows,
            position=self._position,
            lost=tuple(self._lost),
            proof=proof,
        )
        self.number += 1
        self._next_seq = self._last_seq + 1
        self._lost.clear()
        return flushed


class _RelationLog:
    """One relation's part of the flush being filled."""

    def __init__(self, root: Path, relation: RelationSchema) -> None:
        self.table = prepare(root, relation)
        self.appended = 0
        self.buffered = 0
        self._source = relation.name.source
        self._schema = log_schema(relation.columns)
        self._waiting: list[pa.Table] = []
        self._sink: ParquetSink | None = None

    def append(self, rows: pa.Table) -> None:
        if rows.num_rows:
            self._waiting.append(rows)
            self.buffered += rows.nbytes
            self.appended += rows.nbytes

    def spill(self, number: int) -> None:
        """Write what waits to the flush's file."""
        if not self._waiting:
            return
        rows = pa.concat_tables(self._waiting, promote_options="default")
        self._waiting.clear()
        self.buffered = 0
        self._opened(number).write(rows)

    def finish(self, number: int) -> AddedFile:
        """The flush's file, complete and durable."""
        self.spill(number)
        file = self._opened(number).close()
        self._sink = None
        self.appended = 0
        return file

    def abandon(self) -> None:
        self._waiting.clear()
        if self._sink is not None:
            self._sink.abandon()
            self._sink = None

    def _opened(self, number: int) -> ParquetSink:
        if self._sink is None:
            folder = self.table.folder_for(app_of(self._source), number)
            if folder.exists():
                self.table.clear_folder(app_of(self._source), number)
            path = folder / "part-0.parquet"
            self._sink = ParquetSink(self.table.path, path, self._schema, RANGED)
        return self._sink
