"""The warehouse process: an algorithm, the view, and what survives when the process dies.

Durable: the view's rows, and every update that arrived, in order. Lost: the algorithm's memory,
open queries, answers under way. After a restart a new object is made for the view as it was last
installed, and the updates which that state does not reflect are delivered again in the old order.
`Install.upto` says which it reflects.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from steadyview.algebra import Bag, Row
from steadyview.maintenance.admission import Admission
from steadyview.maintenance.algorithms import Kind
from steadyview.maintenance.events import Algorithm, Install, Update
from steadyview.simulation.batches import Batches, Swept
from steadyview.simulation.blueprints import Site


class Warehouse:
    """One view under one kind of algorithm."""

    def __init__(self, kind: Kind, site: Site, view: Bag[Row]) -> None:
        self.view = view
        self.swept: list[Swept] = []
        """The batches of a batched sweep that are over."""
        self._kind, self._site = kind, site
        self._log: list[Update[Any]] = []
        self._admission: Admission[Any] = Admission()
        self._admitted: dict[int, int] = {}
        self._transactions = 0
        self._installed = 0
        self._made_at = 0
        self._algorithm = self._made()

    @property
    def is_periodic(self) -> bool:
        """Whether ticks mean anything to the algorithm."""
        return type(self._algorithm).ticked is not Algorithm.ticked

    def received(self, update: Update[Any]) -> Sequence[Any]:
        """An update arrived for the first time."""
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
        return self._algorithm.answered(query, answer)

    def ticked(self) -> Sequence[Any]:
        """A period is over."""
        return self._algorithm.ticked()

    def install(self, install: Install[Any]) -> None:
        """The view's next state."""
        self.view += install.change
        # an object that counts admitted transactions counts from where it was made
        self._installed = install.upto + (self._made_at if self._kind.whole else 0)

    def restart(self) -> list[Update[Any]]:
        """The process dies and starts again; the updates that have to be delivered again."""
        self._collect()
        self._made_at = self._installed
        self._algorithm = self._made()
        return [update for update in self._log if self._place(update) > self._installed]

    def close(self) -> None:
        """Nothing will happen any more."""
        self._collect()

    def _place(self, update: Update[Any]) -> int:
        if not self._kind.whole:
            return update.number
        return self._admitted.get(update.number, self._transactions + 1)

    def _made(self) -> Algorithm[Any]:
        site, make = self._site, self._kind.make
        if make is None:
            return Batches(site.positions, site.algebra)
        return make(site.positions, site.algebra, self.view, site.blueprint.keyed)

    def _collect(self) -> None:
        if isinstance(self._algorithm, Batches):
            self.swept += self._algorithm.swept
