"""Asks of the papers' algorithms, answered by live databases as if channels were FIFO.

An algorithm assumes that an answer reflects exactly the updates of its source that were delivered
before it. A live source answers in a state that reflects some set P of its transactions, which need
not be a prefix. So, for one ask:

    freeze the source; wait until capture has passed the horizon: P is admitted; let u be the newest
    cn, and D the source's transactions up to u: P is part of D
    rows of a position  =  what the frozen source shows  +  { log rows of s : s in D, s not in P }
    deliver everything up to u, then the answer

The log rows are added position by position, before anything is joined, so several relations of one
source are seen in one state, that after D. Nothing else is ever added or taken away.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from steadyview.changes.types import COUNT, SEQ
from steadyview.engine.answers import store
from steadyview.engine.window_input import ARROW_LIMIT, as_key
from steadyview.maintenance.events import Ask, Part
from steadyview.maintenance.events import Read as ReadAll
from steadyview.papers.deliveries import log_rows, with_counts
from steadyview.papers.live import ForcedPlan, LiveWarehouse
from steadyview.papers.spark_view_algebra import SparkViewAlgebra
from steadyview.papers.view_handles import Handle, Storage, Stored
from steadyview.query.moment import Moment, WaitFor, admitted_since, open_moment, settled_upto
from steadyview.sources.contract import Read
from steadyview.views.join_tree import LookupKey


@dataclass(frozen=True)
class Answered:
    """An answer, which shows everything of its source up to cn `upto`."""

    handles: tuple[Handle, ...]
    upto: int


class Answering:
    """Performs the asks of one view."""

    def __init__(
        self,
        parts: LiveWarehouse,
        plan: ForcedPlan,
        algebra: SparkViewAlgebra,
        storage: Storage,
        wait_for: WaitFor,
    ) -> None:
        self._parts, self._plan = parts, plan
        self._algebra, self._storage = algebra, storage
        self._wait_for = wait_for

    def answer(self, ask: Ask[Handle] | ReadAll) -> Answered:
        """Ask the source in one state of its own; lookups are stored before this returns."""
        with self._frozen(ask.source) as state:
            if isinstance(ask, ReadAll):
                handles = tuple(self._base(state, p) for p in ask.positions)
            else:
                handles = tuple(self._joined(state, part) for part in ask.parts)
            return Answered(handles, state.moment.upto)

    @contextmanager
    def _frozen(self, source: str) -> Iterator[_State]:
        catalog, log = self._parts.catalog, self._parts.log
        with open_moment([self._parts.sources[source]], self._wait_for, catalog) as moment:
            admitted = admitted_since(source, moment, moment.upto, catalog, log)
            hidden = admitted.first + np.flatnonzero(~admitted.reflected)
            yield _State(source, moment, hidden)
        catalog.sources.settle(source, settled_upto(admitted))

    def _joined(self, state: _State, part: Part[Handle]) -> Handle:
        joined = part.known
        for position, rows in part.steps:
            if rows is None:
                rows = self._base(state, position, joined)
            joined = self._algebra.join(joined, position, rows)
        return joined

    def _base(self, state: _State, position: int, joined: Handle | None = None) -> Handle:
        """The rows of a position in the state after D; by key where the known rows have one."""
        relation = self._plan.definition.occurrences[position].relation
        columns = self._algebra.columns[relation.name]
        read = Read(relation, columns)
        if joined is not None:
            if joined.known_empty:
                return self._algebra.answer(relation.name, Stored((), 0))
            read = self._by_key(position, joined) or read
        whole = (str(relation.name), columns)
        if read.key is None and whole in state.whole:
            return state.whole[whole]
        found = self._algebra.add([self._shown(state, read), self._hidden(state, position)])
        if read.key is None:
            state.whole[whole] = found
        return found

    def _by_key(self, position: int, joined: Handle) -> Read | None:
        """A read by the values of a joined neighbour; None if the relation is read whole."""
        relation = self._plan.definition.occurrences[position].relation
        for edge in self._plan.tree.edges:
            if edge.v == position and edge.u in joined.form.bound and edge.key is not None:
                key: LookupKey = edge.key
                values = self._algebra.key_values(joined, edge.u, key.from_column)
                if len(values) <= ARROW_LIMIT:
                    asked = as_key(values, relation.columns[key.to_column].type)
                    columns = self._algebra.columns[relation.name]
                    return Read(relation, columns, key.to_column, asked)
        return None

    def _shown(self, state: _State, read: Read) -> Handle:
        """What the frozen source shows, stored."""
        name = read.relation.name
        if read.values is not None and not len(read.values):
            return self._algebra.answer(name, Stored((), 0))
        spark = self._parts.spark
        parallelism = 1 if read.key is not None else spark.sparkContext.defaultParallelism
        tasks = state.moment.snapshots[state.source].tasks(read, parallelism)
        path = self._storage.path("answer")
        files, rows = store(spark, tasks, read.relation, read.columns, path)
        return self._algebra.answer(name, Stored(tuple(files), rows, counted=False))

    def _hidden(self, state: _State, position: int) -> Handle:
        """The log rows of transactions that the answer must show and the source did not."""
        name = self._plan.definition.occurrences[position].relation.name
        if not len(state.hidden):
            return self._algebra.answer(name, Stored((), 0))
        first, last = int(state.hidden[0]), int(state.hidden[-1])
        rows = log_rows(self._parts, self._algebra, name, first, last)
        rows = rows.filter(pa.array(np.isin(rows[SEQ].to_numpy(), state.hidden)))
        return self._algebra.rows(name, with_counts(rows, rows[COUNT]))


@dataclass
class _State:
    """A frozen source, and the seqs of D that it does not show."""

    source: str
    moment: Moment
    hidden: np.ndarray
    whole: dict[object, Handle] = field(default_factory=dict)
