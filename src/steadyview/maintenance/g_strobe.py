"""G-Strobe: strong consistency also for global transactions.

Zhuge, Garcia-Molina, Wiener, PDIS 1996, section 5.4: T-Strobe that changes the view only when UQS
is empty and every received transaction is whole and processed.
Assumes: as Strobe; every part of a global transaction says of which one, and of how many parts.
Invariant, when UQS is empty and nothing waits: MV with AL applied is the view over all received.
Where we depart from the print: its three conditions restrict when the view changes, not the order
of processing. Transactions are processed in the order of `admission`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from steadyview.maintenance.admission import Admission
from steadyview.maintenance.events import Action, Update
from steadyview.maintenance.positions import Positions
from steadyview.maintenance.t_strobe import TStrobe
from steadyview.maintenance.view_algebra import ViewAlgebra

H = TypeVar("H")


class GStrobe(TStrobe[H]):
    """One view under G-Strobe."""

    def __init__(self, positions: Positions, algebra: ViewAlgebra[H], mv: H) -> None:
        super().__init__(positions, algebra, mv)
        self._admission: Admission[H] = Admission()

    def received(self, update: Update[H]) -> Sequence[Action[H]]:
        """Process what became whole."""
        self._received = update.number
        actions: list[Action[H]] = []
        for parts in self._admission.arrived(update):
            actions += self.processed(change for part in parts for change in part.changes)
        return [*actions, *self.applied()]

    def applied(self) -> Sequence[Action[H]]:
        """Only while no part waits for another."""
        return [] if self._admission.waiting else super().applied()
