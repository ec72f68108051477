"""The batched sweep as the product runs it, on messages: freeze, admit, sweep, install.

The state machine is `maintenance.BatchedSweep` itself. Around it, in place of catalog, update log
and runtime:

    idle, something came      freeze one state per source: a message through the channels
    every source is frozen    admit whatever is whole; what is received and not admitted has cn
                              FOREVER; an update is reflected if it came before its source's freeze
    lookups                   read the frozen states, whatever happens meanwhile
    record                    one install for every cn that changes the view, in order

A freeze reads no rows, and is not counted as a lookup.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from steadyview.algebra import FOREVER
from steadyview.maintenance import BatchedSweep, EdgeLookup, Record
from steadyview.maintenance.admission import Admission
from steadyview.maintenance.bag_algebra import Answer, BagAlgebra, Batch, Handle, Keys, LogRow
from steadyview.maintenance.bag_view import projected
from steadyview.maintenance.bag_view_algebra import BagViewAlgebra
from steadyview.maintenance.events import Algorithm, Install, Update
from steadyview.maintenance.positions import Positions
from steadyview.simulation.sources import Freeze, Lookup
from steadyview.views.join_tree import Edge


class Swept(NamedTuple):
    """A batch that is over: how many transactions it had, and how many lookups it took."""

    transactions: int
    lookups: int


class Batches(Algorithm[Any]):
    """One view under the batched sweep."""

    def __init__(self, positions: Positions, algebra: BagViewAlgebra) -> None:
        self.swept: list[Swept] = []
        self._positions = positions
        self._definition, self._tree = algebra.view.definition, algebra.view.tree
        self._sources = sorted(positions.sources)
        occurrences = zip(positions.relations, self._definition.occurrences, strict=True)
        self._names = {relation: o.relation.name for relation, o in occurrences}
        self._admission: Admission[Any] = Admission()
        self._arrived: list[Update[Any]] = []
        """Received and not offered for admission yet."""
        self._log: list[Update[Any]] = []
        """Received, and not part of a batch that is over."""
        self._cns: dict[int, int] = {}
        self._upto = 0
        self._freezing: dict[int, str] = {}
        self._frozen_at: dict[str, int] = {}
        """Per source, the number of the last update that had come when its freeze was answered."""
        self._received = 0
        self._sweep: BatchedSweep[Handle] | None = None
        self._edges: dict[int, Edge] = {}
        self._transactions, self._lookups = 0, 0
        self._queries = 0

    def received(self, update: Update[Any]) -> Sequence[Any]:
        """Into the log; a batch begins if none is under way."""
        self._received = update.number
        self._arrived.append(update)
        self._log.append(update)
        return self._freeze() if self._sweep is None and not self._freezing else []

    def answered(self, query: int, answer: Sequence[Any]) -> Sequence[Any]:
        """A source is frozen, or rows were looked up."""
        if query in self._freezing:
            self._frozen_at[self._freezing.pop(query)] = self._received
            return [] if self._freezing else self._begin()
        assert self._sweep is not None
        return self._performed(self._sweep.answered(self._edges.pop(query), Answer(answer[0])))

    def _freeze(self) -> Sequence[Freeze]:
        freezes = [Freeze(self._next(), source) for source in self._sources]
        self._freezing = {freeze.query: freeze.source for freeze in freezes}
        return freezes

    def _begin(self) -> Sequence[Any]:
        """Admit, and sweep over what was admitted."""
        after = self._upto
        for update in self._arrived:
            for parts in self._admission.arrived(update):
                self._upto += 1
                self._cns |= {part.number: self._upto for part in parts}
        self._arrived = []
        if self._upto == after:
            return []
        log = self._log_rows()
        algebra = BagAlgebra(Batch(after, self._upto), log)
        changed = frozenset(
            o.number
            for o in self._definition.occurrences
            if any(entry.cn != FOREVER for entry in log.get(o.relation.name, ()))
        )
        self._sweep = BatchedSweep(self._definition, self._tree, algebra, changed)
        self._lookups, self._transactions = 0, self._upto - after
        return self._performed(self._sweep.begin())

    def _log_rows(self) -> dict[Any, list[LogRow]]:
        """The log by relation, under the names of the definition."""
        rows: dict[Any, list[LogRow]] = {}
        for update in self._log:
            cn = self._cns.get(update.number, FOREVER)
            reflected = update.number <= self._frozen_at[update.source]
            for change in update.changes:
                sign = 1 if change.inserted else -1
                rows.setdefault(self._names[change.relation], []).extend(
                    LogRow(row, count * sign, cn, reflected) for row, count in change.rows
                )
        return rows

    def _performed(self, actions: Iterable[EdgeLookup[Handle] | Record[Handle]]) -> Sequence[Any]:
        done: list[Any] = []
        for action in actions:
            done += self._recorded(action) if isinstance(action, Record) else [self._asked(action)]
        return done

    def _asked(self, ask: EdgeLookup[Handle]) -> Lookup:
        query, v, key = self._next(), ask.edge.v, ask.edge.key
        self._edges[query] = ask.edge
        self._lookups += 1
        source = self._positions.relations[v].source
        keys = ask.keys.values if isinstance(ask.keys, Keys) else frozenset()
        return Lookup(query, source, v, key.to_column if key else None, keys)

    def _recorded(self, record: Record[Handle]) -> Sequence[Any]:
        """Install every cn in order; then on with what came meanwhile."""
        changes = projected(self._definition, record.change)
        self.swept.append(Swept(self._transactions, self._lookups))
        self._sweep = None
        self._log = [u for u in self._log if u.number not in self._cns]
        installs = [Install(change, cn) for cn, change in changes.items() if len(change)]
        return [*installs, *(self._freeze() if self._arrived else ())]

    def _next(self) -> int:
        self._queries += 1
        return self._queries

