"""T-Strobe: strong consistency for source-local transactions; a transaction is handled as a unit.

Zhuge, Garcia-Molina, Wiener, PDIS 1996, section 5.3.
Assumes: as Strobe. Invariant: as Strobe, of whole transactions.
Where we read the paper: insertions that the same transaction deletes again, and the reverse, are
removed by taking the net effect per row; deletions come before insertions, so that a changed row
loses its old form before it gets the new one.
With global transactions each part is handled on arrival as a transaction of its source: weak. (The
printed Example 5 holds parts back; holding them is only convergent, and not even that when a later
transaction of the source overtakes the held part.)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from steadyview.maintenance.events import Action, Change, Update
from steadyview.maintenance.net_effect import net_changes
from steadyview.maintenance.strobe import Strobe

H = TypeVar("H")


class TStrobe(Strobe[H]):
    """One view under T-Strobe."""

    def received(self, update: Update[H]) -> Sequence[Action[H]]:
        """The message is one transaction."""
        self._received = update.number
        return [*self.processed(update.changes), *self.applied()]

    def processed(self, changes: Iterable[Change[H]]) -> Sequence[Action[H]]:
        """UL(T): deletions to every pending set and to AL, then one query for all insertions."""
        deletions, insertions = net_changes(changes, self.positions, self.algebra)
        for deletion in deletions:
            self.deleted(deletion)
        return self.inserted(insertions)
