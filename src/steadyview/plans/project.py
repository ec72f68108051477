"""The SELECT list: expressions over a row.

    V(project(R))  =  the versions of R with the expressions' values for their rows

Linear: needs nothing but the change. Different rows may become equal ones; their versions overlap.
"""

from __future__ import annotations

from dataclasses import dataclass

from steadyview.plans.moves import carried
from steadyview.plans.operator import Operator, Rendering


@dataclass(frozen=True)
class Project:
    """New columns, each with its expression."""

    operand: Operator
    outputs: tuple[tuple[str, str], ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The new columns."""
        return tuple(name for name, _ in self.outputs)

    @property
    def operands(self) -> tuple[Operator, ...]:
        """What is projected."""
        return (self.operand,)

    def versions(self, rendering: Rendering) -> str:
        """Version by version."""
        listed = "".join(f"{sql} AS {name}, " for name, sql in self.outputs)
        rows = rendering.part(self.operand.versions(rendering))
        return f"SELECT {listed}{', '.join(carried(rendering))} FROM {rows}"
