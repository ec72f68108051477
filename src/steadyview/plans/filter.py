"""WHERE, and HAVING over a fold's rows.

    V(filter(R))  =  the versions of R whose row meets the condition

Linear: needs nothing but the change.
"""

from __future__ import annotations

from dataclasses import dataclass

from steadyview.plans.operator import Operator, Rendering


@dataclass(frozen=True)
class Filter:
    """The rows for which the condition is true."""

    operand: Operator
    condition: str

    @property
    def columns(self) -> tuple[str, ...]:
        """Those of the operand."""
        return self.operand.columns

    @property
    def operands(self) -> tuple[Operator, ...]:
        """What is filtered."""
        return (self.operand,)

    def versions(self, rendering: Rendering) -> str:
        """Version by version."""
        rows = rendering.part(self.operand.versions(rendering))
        return f"SELECT * FROM {rows} WHERE {self.condition}"
