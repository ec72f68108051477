"""What becomes of a view after work on it: it went on, it stops, or it is tried again later.

Of what is built beside a view, nothing is told as the view's own: it is given up, and the view that
readers see goes on.
"""

from __future__ import annotations

from steadyview.errors import ColumnLost, StorageDamaged, ViewStopped
from steadyview.runtime.gaps import newest_state
from steadyview.runtime.kept import Kept, is_hidden
from steadyview.runtime.losses import Losses
from steadyview.runtime.parts import Parts
from steadyview.runtime.reconciling import Reconciling, files_damaged
from steadyview.runtime.tally import Tally
from steadyview.runtime.trouble import Faults, trouble


class Outcomes:
    """Tells the catalog how work on views ended.

    Used by the thread of batches and by the one of first states, each for rows of its own: a row
    has a first state or it has none. What they share (`Faults`, `Tally`, `Losses`) says itself how
    it is shared.
    """

    def __init__(
        self, parts: Parts, project: Reconciling, losses: Losses, faults: Faults, tally: Tally
    ) -> None:
        self._parts = parts
        self._views = parts.catalog.views
        self._project = project
        self._losses = losses
        self._faults = faults
        self._tally = tally

    def went_on(self, kept: Kept, changes: int) -> None:
        """So many rows were changed; what was wrong with a view that is not stopped is over."""
        self.changed(kept, changes)
        self._faults.over(kept.label)
        row = self._views.find(kept.name)
        if kept.row.replacement or row is None:
            return
        if row.error is not None and row.state != "stopped":
            self._views.tell(row.name, None)

    def changed(self, kept: Kept, changes: int) -> None:
        """So many rows were changed."""
        if not kept.row.replacement:
            self._tally.changed(kept.name, changes)

    def asked(self, lookups: int) -> None:
        """So many questions were sent to sources for one view alone."""
        self._tally.asked(lookups)

    def failed(self, kept: Kept, error: Exception) -> None:
        """It cannot go on from where it is: for good, or by a fault of ours for now.

        Raises what concerns more than this view.
        """
        row = self._views.row(kept.id)
        if row.state == "stopped":
            return
        found = trouble(error, self._parts.spark, self._parts.root)
        if found.error is not None:
            self.stop(kept, found.error, (row.cn or 0) + 1, mendable=found.mendable)
        if found.fault is not None:
            self.fault(kept, found.fault)

    def damaged(self, kept: Kept, damage: StorageDamaged) -> None:
        """Its files are gone or damaged."""
        self.failed(kept, files_damaged(kept.name, damage.message))

    def stopped(self, kept: Kept, stopped: ViewStopped) -> None:
        """It cannot go on, maybe for a loss in the stream, which then is the reason."""
        self._losses.stop_lost([kept])
        self.failed(kept, stopped)

    def lost(self, kept: Kept, lost: ColumnLost) -> None:
        """A column that it uses was just found lost; raises it if it uses none such."""
        self._losses.stop_users([kept], lost, self._project.fail)

    def stop(self, kept: Kept, error: str, cn: int | None, *, mendable: bool) -> None:
        """A view stops before cn; what is built beside is given up, and its view goes on."""
        if kept.row.replacement:
            self._project.fail(kept, error)
        else:
            self._views.stop(kept.name, error, cn, mendable=mendable)

    def fault(self, kept: Kept, fault: Exception) -> None:
        """A fault of ours keeps it from going on for now."""
        text = str(self._faults.met(kept.label, fault))
        if kept.row.replacement:
            self._project.tell(kept, text)
        else:
            self._views.tell(kept.name, text)

    def stop_readers(self) -> None:
        """Stop the views that have come as far as a stopped one that they read."""
        for kept in self._project.running():
            row = kept.row
            for i in kept.inputs.values():
                parent = self._views.row(i)
                if parent.state != "stopped" or row.cn is None or row.replacement:
                    continue
                if parent.cn is None or row.cn < self._reach(kept, parent.cn):
                    continue
                fact = f'it reads view "{parent.name}", which is stopped: {parent.error}'
                text = parent.error if is_hidden(parent) else fact
                self._views.stop(row.name, text or fact, row.cn + 1)
                break

    def _reach(self, kept: Kept, upto: int) -> int:
        """How far a row can come at most, where what it reads has no gap."""
        rows = [self._views.row(i) for i in kept.inputs.values()]
        stand = {row.id: max(row.cn or 0, upto) for row in rows}
        return newest_state(self._parts.catalog.gaps, stand, upto)
