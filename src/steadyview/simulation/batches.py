"""The batched sweep as the product runs it, on messages: freeze, admit, ask, install.

Asks, versions and the statement over them are the product's own (`window`). Around them, in place
of catalog, update log and runtime:

    idle, something came      freeze one state per source: a message through the channels
    every source is frozen    admit whatever is whole; what is received and not admitted has cn
                              FOREVER
    lookups                   read the frozen states, whatever happens meanwhile
    the change                one install for every cn that changes the view, in order

A frozen state need not show everything that came before it: with its answer a source says which of
its transactions it does not show yet. So an update is reflected if it came before its source's
freeze and is not among those. It stays in the log until a state shows it (it is *settled*).

A freeze reads no rows, and is not counted as a lookup.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from steadyview.algebra import Bag, Row
from steadyview.changes import RelationName
from steadyview.maintenance.admission import Admission
from steadyview.maintenance.events import Algorithm, Install, Update
from steadyview.plans.moves import FOREVER
from steadyview.simulation.sources import Freeze, Lookup
from steadyview.simulation.view_plan import State, ViewPlan
from steadyview.simulation.window import LogRow, RowsWanted, Window


class Swept(NamedTuple):
    """A batch that is over: how many transactions it had, and how many lookups it took."""

    transactions: int
    lookups: int


@dataclass(frozen=True)
class KeptView:
    """What is durable of a view: how far it is, its state, and what no frozen state has shown.

    `unsettled`: admitted updates, each with its cn, in the order of arrival.
    """

    upto: int
    state: State
    unsettled: tuple[tuple[int, Update[Any]], ...] = ()


class Batches(Algorithm[Any]):
    """One view under the batched sweep, from what is kept of it on."""

    def __init__(self, plan: ViewPlan, relations: Sequence[RelationName], kept: KeptView) -> None:
        self.swept: list[Swept] = []
        self.kept = kept
        self._plan, self._relations = plan, relations
        self._sources = sorted({relations[r].source for r in plan.used})
        self._admission: Admission[Any] = Admission()
        self._arrived: list[Update[Any]] = []
        """Received and not offered for admission yet."""
        self._log: list[Update[Any]] = [update for _, update in kept.unsettled]
        """Received, and not settled in a batch that is over."""
        self._cns: dict[int, int] = {update.number: cn for cn, update in kept.unsettled}
        self._upto = kept.upto
        self._freezing: dict[int, str] = {}
        self._frozen_at: dict[str, int] = {}
        """Per source, the number of the last update that had come when its freeze was answered."""
        self._hidden: dict[str, frozenset[str]] = {}
        """Per source, the transactions that its frozen state does not show yet."""
        self._received = 0
        self._window: Window | None = None
        self._wanted: dict[int, RowsWanted] = {}
        self._lookups = 0
        self._queries = 0

    def received(self, update: Update[Any]) -> Sequence[Any]:
        """Into the log; a batch begins if none is under way."""
        self._received = update.number
        self._arrived.append(update)
        self._log.append(update)
        return self._freeze() if self._window is None and not self._freezing else []

    def answered(self, query: int, answer: Sequence[Any]) -> Sequence[Any]:
        """A source is frozen, or rows were looked up."""
        if query in self._freezing:
            source = self._freezing.pop(query)
            self._frozen_at[source], self._hidden[source] = self._received, answer[0]
            return [] if self._freezing else self._begin()
        assert self._window is not None
        if not self._window.answered(self._wanted.pop(query), answer[0]):
            return []
        return self._asked_next(self._window)

    def _freeze(self) -> Sequence[Freeze]:
        freezes = [Freeze(self._next(), source) for source in self._sources]
        self._freezing = {freeze.query: freeze.source for freeze in freezes}
        return freezes

    def _begin(self) -> Sequence[Any]:
        """Admit, and ask for what the admitted meet."""
        for update in self._arrived:
            for parts in self._admission.arrived(update):
                self._upto += 1
                self._cns |= {part.number: self._upto for part in parts}
        self._arrived = []
        if self._upto == self.kept.upto:
            return []
        self._window = Window(self._plan, self._log_rows(), self.kept.upto, self._upto)
        self._lookups = 0
        return self._asked_next(self._window)

    def _log_rows(self) -> dict[int, list[LogRow]]:
        """The log by relation."""
        number = {name: relation for relation, name in enumerate(self._relations)}
        rows: dict[int, list[LogRow]] = {}
        for update in self._log:
            cn, reflected = self._cns.get(update.number, FOREVER), self._reflects(update)
            for change in update.changes:
                sign = 1 if change.inserted else -1
                rows.setdefault(number[change.relation], []).extend(
                    LogRow(row, count * sign, cn, reflected) for row, count in change.rows
                )
        return rows

    def _reflects(self, update: Update[Any]) -> bool:
        """Whether the frozen state of its source shows an update."""
        source = update.source
        came = update.number <= self._frozen_at[source]
        return came and update.transaction not in self._hidden[source]

    def _asked_next(self, window: Window) -> Sequence[Any]:
        """The next round of lookups; when there is none, the end of the batch."""
        lookups = [self._asked(wanted) for wanted in window.lookups()]
        self._lookups += len(lookups)
        return lookups or self._recorded(window)

    def _asked(self, wanted: RowsWanted) -> Lookup:
        query = self._next()
        self._wanted[query] = wanted
        return Lookup(query, self._relations[wanted.relation].source, *wanted)

    def _recorded(self, window: Window) -> Sequence[Any]:
        """Install every cn in order; then on with what came meanwhile."""
        moved = window.moved(self.kept.state)
        self.swept.append(Swept(self._upto - self.kept.upto, self._lookups))
        self._window = None
        self._log = [update for update in self._log if not self._settled(update)]
        unsettled = [(self._cns[u.number], u) for u in self._log if u.number in self._cns]
        self.kept = KeptView(self._upto, moved.state, tuple(unsettled))
        installs = [Install(change, cn) for cn, change in moved.changes.items() if len(change)]
        return [*installs, *(self._freeze() if self._arrived else ())]

    def _settled(self, update: Update[Any]) -> bool:
        return update.number in self._cns and self._reflects(update)

    def _next(self) -> int:
        self._queries += 1
        return self._queries


def first_kept(plan: ViewPlan, rows: Sequence[Bag[Row]]) -> tuple[KeptView, Bag[Row]]:
    """What is kept of a view before any update, and its rows."""
    changes, state = plan.first(rows)
    return KeptView(0, state), changes.get(0, Bag())
