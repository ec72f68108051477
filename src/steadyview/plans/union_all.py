"""UNION ALL: the bag sum.

    V(R + S)  =  the versions of R and those of S

Linear: needs nothing but the changes.
"""

from __future__ import annotations

from dataclasses import dataclass

from steadyview.plans.moves import carried
from steadyview.plans.operator import Operator, Rendering


@dataclass(frozen=True)
class UnionAll:
    """The rows of all operands; column i of each is column i of the union."""

    parts: tuple[Operator, ...]
    columns: tuple[str, ...]

    @property
    def operands(self) -> tuple[Operator, ...]:
        """What is added."""
        return self.parts

    def versions(self, rendering: Rendering) -> str:
        """Side by side."""
        return " UNION ALL ".join(self._part(part, rendering) for part in self.parts)

    def _part(self, part: Operator, rendering: Rendering) -> str:
        names = zip(part.columns, self.columns, strict=True)
        listed = "".join(f"{old} AS {new}, " for old, new in names)
        rows = rendering.part(part.versions(rendering))
        return f"SELECT {listed}{', '.join(carried(rendering))} FROM {rows}"
