"""MIN and MAX, with sums beside them: what a group's rows give together, at every cn.

The operand has a row per group and combination of values, with sums (a fold keeps it). For a group
let its cuts be all starts and ends of its versions; between two neighbouring cuts nothing of the
group changes, so there

    V(gather(R))  =  { (g, f(rows of g there), 1, cut, next cut) : pieces in which g has a row }

Needed: the operand's rows of every group that the window touches, all of them. They are found by a
number per group, `group`, which the operand carries.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from steadyview.plans.moves import FROM, TO, N
from steadyview.plans.operator import Operator, Rendering


@dataclass(frozen=True)
class Extreme:
    """The least or the greatest of a column's values, under a name."""

    name: str
    function: Literal["min", "max"]
    column: str


@dataclass(frozen=True)
class Total:
    """The sum of a column's values, under the same name, in its type."""

    name: str
    type: str


@dataclass(frozen=True)
class Gather:
    """Per key: extremes and totals of the operand's rows. `group`: a column that finds a group."""

    operand: Operator
    group: str
    keys: tuple[str, ...]
    totals: tuple[Total, ...]
    extremes: tuple[Extreme, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """Keys, totals, extremes."""
        names = (*(t.name for t in self.totals), *(e.name for e in self.extremes))
        return (*self.keys, *names)

    @property
    def operands(self) -> tuple[Operator, ...]:
        """What is gathered."""
        return (self.operand,)

    def versions(self, rendering: Rendering) -> str:
        """Cut at the group's cuts, then one aggregate per group and piece."""
        rows = rendering.part(self.operand.versions(rendering))
        used = [*self.keys, *(t.name for t in self.totals), *(e.column for e in self.extremes)]
        cut = rendering.part(rendering.dialect.cut(rows, self.keys, list(dict.fromkeys(used))))
        by = ", ".join([*self.keys, FROM, TO])
        listed = [*self.keys]
        listed += [f"CAST(SUM({t.name}) AS {t.type}) AS {t.name}" for t in self.totals]
        listed += [f"{e.function.upper()}({e.column}) AS {e.name}" for e in self.extremes]
        return (
            f"SELECT {', '.join(listed)}, CAST(1 AS BIGINT) AS {N}, {FROM}, {TO} FROM {cut} "
            f"GROUP BY {by}"
        )
