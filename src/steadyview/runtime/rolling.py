"""Apply: bases that their view deltas have outgrown are rolled forward."""

from __future__ import annotations

from steadyview.catalog import Published, ViewRow
from steadyview.engine.failures import spark_told
from steadyview.errors import StorageDamaged
from steadyview.runtime.kept import Kept
from steadyview.runtime.outcomes import Outcomes
from steadyview.runtime.parts import Parts
from steadyview.warehouse.apply import Applier, due, rolls, state_due
from steadyview.warehouse.view_store import ViewStore


class Rolling:
    """Rolls bases and states; used by the thread of batches, between two of them."""

    def __init__(self, parts: Parts, outcomes: Outcomes) -> None:
        self._parts = parts
        self._outcomes = outcomes

    def roll(self, kept: Kept, *, everything: bool) -> int:
        """Roll one base, if it is due; a view whose rows can no longer be shown stops."""
        row = kept.row
        assert row.cn is not None
        store = ViewStore(self._parts.root, row, kept.plan.shape)
        try:
            with spark_told(self._parts.root):
                if state_due(store, row):
                    Applier(self._parts.spark, store).roll_state(row.cn)
                return self._rolled(store, row) if everything or due(store, row) else 0
        except StorageDamaged as damage:
            self._outcomes.damaged(kept, damage)
            return 0
        except Exception as error:  # noqa: BLE001 - sorted by `trouble`
            self._outcomes.failed(kept, error)
            return 0

    def _rolled(self, store: ViewStore, row: ViewRow) -> int:
        assert row.cn is not None
        base, version = store.newest_base(), row.delta_version or 0
        if rolls(store, base, row.cn, version):
            base = Applier(self._parts.spark, store).roll(base, row.cn, version)
        if base.cn == row.base_cn:
            return 0
        self._parts.catalog.views.publish(
            [Published(row.id, row.cn, version, base.cn, base.version)]
        )
        return 1
