"""Admitted transactions as the messages that the papers' algorithms receive.

Delivered in the order of cn, numbered from 1, none missing and none twice; a transaction that
changed no row of the view is left out. Of one relation, changes keep the order of execution, runs
of one sign in one change. Between relations of one transaction the log keeps no order, and the
order of the view's relations stands in for it: what a transaction amounts to is the same.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from steadyview.catalog import AdmittedRun
from steadyview.changes import RelationName
from steadyview.changes.types import COUNT, SEQ
from steadyview.engine.tagged_log import without_idle_updates
from steadyview.errors import ViewStopped
from steadyview.maintenance.events import Change, Update
from steadyview.papers.live import ForcedPlan, LiveWarehouse
from steadyview.papers.spark_view_algebra import SparkViewAlgebra
from steadyview.papers.view_handles import Handle

PIECE = 1_000
"""Transactions that are read at a time: a view may be far behind."""


class _Waiting(NamedTuple):
    """A transaction that is read and not delivered."""

    cn: int
    source: str
    rows: Mapping[RelationName, pa.Table]


class Deliveries:
    """The messages for one view, from the transaction after `after` on."""

    def __init__(
        self, parts: LiveWarehouse, plan: ForcedPlan, algebra: SparkViewAlgebra, after: int
    ) -> None:
        self._parts, self._plan, self._algebra = parts, plan, algebra
        self._read = after
        self._waiting: deque[_Waiting] = deque()
        self._cns = array("q")

    def cn_of(self, number: int) -> int:
        """The cn of a message."""
        return self._cns[number - 1]

    def fetch(self) -> int:
        """Read a piece of what was admitted meanwhile; the cn up to which everything is read."""
        last = min(self._parts.catalog.commits.last_cn(), self._read + PIECE)
        if last > self._read:
            self._check_lost()
            for run in self._parts.catalog.commits.runs(self._read + 1, last):
                self._waiting.extend(self._transactions(run))
            self._read = last
        return last

    def all_upto(self, cn: int) -> Iterator[Update[Handle]]:
        """Every message up to an admitted cn that was not delivered yet."""
        while True:
            while self._waiting and self._waiting[0].cn <= cn:
                yield self._delivered()
            if self._read >= cn:
                return
            self.fetch()

    def next(self) -> Update[Handle] | None:
        """The next message, if there is one that is read."""
        return self._delivered() if self._waiting else None

    def _delivered(self) -> Update[Handle]:
        found = self._waiting.popleft()
        self._cns.append(found.cn)
        changes = [
            change for name, rows in found.rows.items() for change in self._changes(name, rows)
        ]
        return Update(len(self._cns), found.source, str(found.cn), tuple(changes))

    def _transactions(self, run: AdmittedRun) -> Iterator[_Waiting]:
        by_seq: dict[int, dict[RelationName, pa.Table]] = {}
        for relation in self._plan.relations:
            if relation.name.source == run.source:
                rows = log_rows(self._parts, self._algebra, relation.name, run.seq_from, run.seq_to)
                for seq, part in _by_seq(without_idle_updates(rows)):
                    by_seq.setdefault(seq, {})[relation.name] = part
        for seq in sorted(by_seq):
            yield _Waiting(run.cn_from + seq - run.seq_from, run.source, by_seq[seq])

    def _changes(self, relation: RelationName, rows: pa.Table) -> Iterator[Change[Handle]]:
        signs = np.sign(rows[COUNT].to_numpy())
        edges = [0, *(np.flatnonzero(np.diff(signs)) + 1).tolist(), rows.num_rows]
        counted = with_counts(rows, pc.abs(rows[COUNT]))
        for start, stop in zip(edges, edges[1:], strict=False):
            part = counted.slice(start, stop - start)
            yield Change(relation, self._algebra.rows(relation, part, 1), bool(signs[start] > 0))

    def _check_lost(self) -> None:
        """ViewStopped if a column that the view uses was lost in what is to be read, or later.

        Only the last loss of a column is kept: there may be another one before it.
        """
        for lost in self._parts.catalog.sources.losses():
            cn = self._parts.catalog.commits.cn_of(lost.relation.source, lost.seq)
            used = self._plan.loses(lost.relation, lost.column)
            if used and cn is not None and self._read < cn:
                raise ViewStopped(lost.reason)


def log_rows(
    parts: LiveWarehouse, algebra: SparkViewAlgebra, relation: RelationName, first: int, last: int
) -> pa.Table:
    """The columns that the view uses of the log's rows, `_count` and `_seq`, in order."""
    names = [f"c{i}" for i in algebra.columns[relation]]
    return parts.log.rows(relation, first, last).select([*names, COUNT, SEQ])


def with_counts(rows: pa.Table, counts: pa.ChunkedArray) -> pa.Table:
    """Log rows as rows of the algebra: without seq, these counts."""
    plain = rows.drop_columns([COUNT, SEQ])
    return plain.append_column(COUNT, counts.cast(pa.int64()))


def _by_seq(rows: pa.Table) -> Iterator[tuple[int, pa.Table]]:
    """The rows of each transaction; they stand together, in order."""
    seqs: Sequence[int] = rows[SEQ].to_numpy()
    if not len(seqs):
        return
    edges = [0, *(np.flatnonzero(np.diff(seqs)) + 1).tolist(), len(seqs)]
    for start, stop in zip(edges, edges[1:], strict=False):
        yield int(seqs[start]), rows.slice(start, stop - start)
