"""A node: a block over inputs, perhaps a fold; one statement of a batch.

Without a fold the block's rows are what is shown, and its change is the steps of its versions, net
per row and cn. With one, `Fold.statement` says what comes out.
"""

from __future__ import annotations

from dataclasses import dataclass

from steadyview.plans.fold import Fold
from steadyview.plans.moves import CHANGE, CN, ends
from steadyview.plans.operator import Operator, Rendering


@dataclass(frozen=True)
class Node:
    """`block` over the inputs of its scans; with `fold`, its state and what is shown of it."""

    block: Operator
    fold: Fold | None = None

    @property
    def shown(self) -> tuple[str, ...]:
        """The names of the columns that are shown."""
        if self.fold is None:
            return self.block.columns
        return tuple(name for name, _ in self.fold.outputs)

    def statement(
        self, rendering: Rendering, state: str | None = None, *, beginning: bool = False
    ) -> str:
        """The node's change over the window or, `beginning`, its first state.

        Without a fold: `shown`, `_count`, `_cn`.
        """
        if self.fold is not None:
            select = self.fold.statement(self.block, rendering, state, beginning=beginning)
            return rendering.statement(select)
        names = self.block.columns
        versions = rendering.part(self.block.versions(rendering))
        rows = ends(rendering, versions, names, beginning=beginning)
        by = ", ".join([*names, CN])
        return rendering.statement(
            f"SELECT {by}, CAST(SUM({CHANGE}) AS BIGINT) AS _count FROM ({rows}) GROUP BY {by} "
            f"HAVING SUM({CHANGE}) <> 0"
        )
