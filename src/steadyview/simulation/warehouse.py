"""The warehouse process: an algorithm, the view, and what survives when the process dies.

Durable, by the rule of a live run: every update that arrived, in order; and the view's rows as of
the last install that was `whole`, or as of the last moment when nothing was open (live, and no
message waited: there a restart may have to begin earlier, never later). Lost: the
algorithm's memory, open queries, answers under way, and the installs since, which live nobody could
read yet. After a restart a new object is made for the durable rows, and the updates which they do
not reflect are delivered again in the old order. `Install.upto` says which they reflect.

Of a plan over versions, what the end of a batch leaves (`KeptView`) is durable as a whole: the
states of all its cns, the groups' sums, and the updates that no frozen state has shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from steadyview.algebra import Bag, Row
from steadyview.maintenance.admission import Admission
from steadyview.maintenance.algorithms import Kind
from steadyview.maintenance.events import Algorithm, Install, Update
from steadyview.simulation.batches import Batches, KeptView, Swept, first_kept
from steadyview.simulation.worlds import World


class Warehouse:
    """One view under one kind of algorithm."""

    def __init__(self, kind: Kind, world: World) -> None:
        self._kind, self._site = kind, world.site
        self._kept: KeptView | None = None
        """What is durable beside the view's rows, where it is kept by a plan."""
        if kind.plans:
            self._kept, view = first_kept(world.site.plan, world.rows)
        else:
            view = world.initial_view
        self.states = [view]
        """What the view showed, less what a crash undid."""
        self.swept: list[Swept] = []
        """The batches of a batched sweep that are over."""
        self._log: list[Update[Any]] = []
        self._admission: Admission[Any] = Admission()
        self._admitted: dict[int, int] = {}
        self._transactions = 0
        self._durable_states = 1
        self._durable_upto = 0
        self._open = 0
        """Queries that are not answered."""
        self._made_at = 0
        self._algorithm = self._made()

    @property
    def view(self) -> Bag[Row]:
        """The view's rows."""
        return self.states[-1]

    @property
    def is_periodic(self) -> bool:
        """Whether ticks mean anything to the algorithm."""
        return type(self._algorithm).ticked is not Algorithm.ticked

    def received(self, update: Update[Any]) -> Sequence[Any]:
        """An update arrived for the first time."""
        self._rest()
        self._log.append(update)
        if self._kind.whole:
            for parts in self._admission.arrived(update):
                self._transactions += 1
                self._admitted |= {part.number: self._transactions for part in parts}
        return self.again(update)

    def again(self, update: Update[Any]) -> Sequence[Any]:
        """An update, perhaps not for the first time."""
        return self._algorithm.received(update)

    def answered(self, query: int, answer: Sequence[Any]) -> Sequence[Any]:
        """An answer arrived."""
        self._open -= 1
        return self._algorithm.answered(query, answer)

    def ticked(self) -> Sequence[Any]:
        """A period is over."""
        return self._algorithm.ticked()

    def install(self, install: Install[Any]) -> None:
        """The view's next state."""
        self.states.append(self.view + install.change)
        if install.whole:
            # an object that counts admitted transactions and keeps nothing counts from its making
            base = self._made_at if self._kind.whole and self._kept is None else 0
            self._durable_states, self._durable_upto = len(self.states), install.upto + base

    def asked(self) -> None:
        """A query was sent."""
        self._open += 1

    def restart(self) -> list[Update[Any]]:
        """The process dies and starts again; the updates that have to be delivered again."""
        self._rest()
        self._collect()
        if self._kept is not None:
            self._durable_upto = self._kept.upto
        del self.states[self._durable_states :]
        self._open, self._made_at = 0, self._durable_upto
        self._algorithm = self._made()
        return [update for update in self._log if self._place(update) > self._durable_upto]

    def close(self) -> None:
        """Nothing will happen any more."""
        self._collect()

    def _rest(self) -> None:
        """With nothing open, a state between two whole ones is of everything that arrived."""
        if not self._open and self._durable_states < len(self.states):
            self._durable_states, self._durable_upto = len(self.states), self._log[-1].number

    def _place(self, update: Update[Any]) -> int:
        if not self._kind.whole:
            return update.number
        return self._admitted.get(update.number, self._transactions + 1)

    def _made(self) -> Algorithm[Any]:
        site, make = self._site, self._kind.make
        if self._kept is not None:
            return (make or Batches)(site.plan, site.relations, self._kept)
        assert make is not None
        return make(site.positions, site.algebra, self.view, site.blueprint.keyed)

    def _collect(self) -> None:
        if isinstance(self._algorithm, Batches):
            self.swept += self._algorithm.swept
            self._kept = self._algorithm.kept
