"""Inner and cross joins, self-joins among them.

    V(L x R)  =  { (l r, n_l n_r, greatest(from), least(to)) : l and r overlap, conditions hold }

Linear in both operands. Needed: L at the keys of R's change, R at those of L's.
"""

from __future__ import annotations

from dataclasses import dataclass

from steadyview.plans.moves import joined, meeting
from steadyview.plans.operator import Operator, Rendering


@dataclass(frozen=True)
class Equality:
    """`left = right`, a column of each side; `null_safe`: `<=>`, NULL is a value like others."""

    left: str
    right: str
    null_safe: bool = False

    @property
    def sql(self) -> str:
        """As a condition over `l` and `r`."""
        sign = "IS NOT DISTINCT FROM" if self.null_safe else "="
        return f"l.{self.left} {sign} r.{self.right}"


@dataclass(frozen=True)
class InnerJoin:
    """The pairs that meet the equalities and the further condition."""

    left: Operator
    right: Operator
    equalities: tuple[Equality, ...] = ()
    condition: str | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """Left, then right."""
        return self.left.columns + self.right.columns

    @property
    def operands(self) -> tuple[Operator, ...]:
        """The two sides."""
        return (self.left, self.right)

    def versions(self, rendering: Rendering) -> str:
        """One join."""
        on = meeting("l", "r", [e.sql for e in self.equalities], self.condition)
        left, right = (rendering.part(side.versions(rendering)) for side in self.operands)
        return joined(left, right, self.columns, on)
