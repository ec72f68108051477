"""The update log of a warehouse: every source, every relation.

    rows of relation R with seq in [a, b]  ==  rows with that seq in files(R, a, b)

for all transactions the catalog has admitted. A file may hold rows of other transactions as well:
readers filter by `_seq`. Columns that a file lacks (added later at the source) are NULL.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from datetime import timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from steadyview.changes import RelationName, RelationSchema
from steadyview.changes.types import SEQ, TX
from steadyview.delta import FileEntry, Table, compaction
from steadyview.delta.failures import told
from steadyview.delta.files import check_whole
from steadyview.delta.parquet import CHECKED, reading
from steadyview.errors import StorageDamaged
from steadyview.update_log import recovery
from steadyview.update_log.layout import prepare, source_folder, table_of, tables_of
from steadyview.update_log.writing import FlushWriter

_TRANSACTIONS = pa.schema([("seq", pa.int64()), ("tx", pa.int64())])
_STORED = pa.schema([(SEQ, pa.int64()), (TX, pa.int64())])
"""The same as every log table stores it."""
_FOREVER = 2**63 - 1


class UpdateLog:
    """All log tables below `root`. Reading is free; writing needs the warehouse's lease."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()

    def prepare(self, relations: Sequence[RelationSchema]) -> None:
        """Create missing tables and append missing columns. Idempotent."""
        for relation in relations:
            prepare(self.root, relation)

    def check_there(self, relations: Iterable[RelationName]) -> None:
        """StorageDamaged if one of these relations, captured before, has no table any more."""
        for relation in relations:
            table = self.table(relation)
            if not table.exists():
                raise StorageDamaged(
                    f'the update log of "{relation}" is missing',
                    detail=f'changes were captured into table "{table.path}", which is not there',
                    hint="restore the warehouse folder from a backup, or run: steadyview source "
                    f"remove {relation.source}, then run again: its views are built anew",
                )

    def recover(self, source: str, known_flush: int) -> int:
        """Remove flushes the catalog does not know; the next flush number to use."""
        return recovery.recover(self.root, source, known_flush)

    def writer(
        self, source: str, relations: Sequence[RelationSchema], number: int, next_seq: int
    ) -> FlushWriter:
        """A writer whose first flush is `number` (see `recover`), first transaction `next_seq`."""
        return FlushWriter(self.root, source, relations, number, next_seq)

    def table(self, relation: RelationName) -> Table:
        """The relation's Delta table."""
        return table_of(self.root, relation)

    def entries(
        self, relation: RelationName, seq_from: int = 1, seq_to: int = _FOREVER
    ) -> list[FileEntry]:
        """The files that may hold rows of these transactions, in seq order."""
        files = self.table(relation).files()
        found = [f for f in files if f.may_hold(SEQ, seq_from, seq_to)]
        check_whole(found)
        return sorted(found, key=lambda f: (f.ranges[SEQ], f.relative))

    def files(self, relation: RelationName, seq_from: int = 1, seq_to: int = _FOREVER) -> list[str]:
        """The absolute paths of those files; readers still filter by `_seq`."""
        return [f.path for f in self.entries(relation, seq_from, seq_to)]

    def row_count(self, relation: RelationName, first: int, wanted: np.ndarray) -> int:
        """How many row images the transactions `first + i` have for which `wanted[i]` holds.

        Files of such transactions alone tell it by themselves; only the others are looked into.
        """
        if not wanted.any():
            return 0
        last = first + len(wanted) - 1
        mixed, rows = [], 0
        for file in self.entries(relation, first, last):
            low, high = file.ranges[SEQ]
            if first <= low and high <= last and wanted[low - first : high - first + 1].all():
                rows += file.rows
            else:
                mixed.append(file.path)
        return rows + _count(self.table(relation), mixed, first, wanted)

    def transactions(self, source: str, seq_from: int = 1, seq_to: int = _FOREVER) -> pa.Table:
        """(seq, tx) of the source's transactions in the range, distinct, by seq.

        Also of those flushed but not admitted: cut at the catalog's last seq where that matters.
        """
        parts = [_transactions(t, seq_from, seq_to) for t in tables_of(self.root, source)]
        whole = pa.concat_tables([_TRANSACTIONS.empty_table(), *parts])
        return whole.group_by(["seq", "tx"]).aggregate([]).sort_by("seq")

    def rows(self, relation: RelationName, seq_from: int = 1, seq_to: int = _FOREVER) -> pa.Table:
        """The row images of these transactions, in seq order; for small ranges only."""
        table = self.table(relation)
        files = self.files(relation, seq_from, seq_to)
        return _read(table, files, table.schema(), seq_from, seq_to)

    def compact(self, relation: RelationName, upto_seq: int, many: int) -> int:
        """If more than `many` files hold only admitted transactions up to `upto_seq`, merge them.

        How many files went.
        """
        return compaction.compact(self.table(relation), SEQ, upto_seq, many)

    def prune(self, relation: RelationName, before_seq: int) -> int:
        """Unlist files that hold only transactions before `before_seq`; how many."""
        return compaction.prune(self.table(relation), SEQ, before_seq)

    def vacuum(self, relation: RelationName, retention: timedelta) -> int:
        """Delete unlisted files older than the retention; how many."""
        return self.table(relation).vacuum(retention)

    def forget_relation(self, relation: RelationName) -> None:
        """Delete the log of one relation. Idempotent."""
        folder = self.table(relation).path
        with told(folder):
            if folder.exists():
                shutil.rmtree(folder)

    def forget(self, source: str) -> None:
        """Delete the whole log of a source. Idempotent."""
        folder = source_folder(self.root, source)
        with told(folder):
            if folder.exists():
                shutil.rmtree(folder)


def _transactions(table: Table, seq_from: int, seq_to: int) -> pa.Table:
    files = [f.path for f in table.files() if f.may_hold(SEQ, seq_from, seq_to)]
    rows = _read(table, files, _STORED, seq_from, seq_to)
    return rows.group_by([SEQ, TX]).aggregate([]).rename_columns(["seq", "tx"])


def _count(table: Table, files: list[str], first: int, wanted: np.ndarray) -> int:
    """The rows of wanted transactions, batch by batch: a file may be as large as it likes."""
    within = (pc.field(SEQ) >= first) & (pc.field(SEQ) < first + len(wanted))
    with reading(table.path, files):
        dataset = ds.dataset(files, schema=_STORED, format=CHECKED)
        batches = dataset.to_batches(columns=[SEQ], filter=within)
        return sum(int(wanted[b.column(0).to_numpy() - first].sum()) for b in batches)


def _read(
    table: Table, files: list[str], schema: pa.Schema, seq_from: int, seq_to: int
) -> pa.Table:
    wanted = (pc.field(SEQ) >= seq_from) & (pc.field(SEQ) <= seq_to)
    with reading(table.path, files):
        return ds.dataset(files, schema=schema, format=CHECKED).to_table(filter=wanted)
