"""Inner and cross joins, self-joins among them.

    V(L x R)  =  { (l r, n_l n_r, greatest(from), least(to)) : l and r overlap, conditions hold }

Linear in both operands. Needed: L at the keys of R's change, R at those of L's.
"""

from __future__ import annotations

from dataclasses import dataclass

from steadyview.plans.flags import SAME_FLAG, left_flagged, right_flagged
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
        keys = [e.sql for e in self.equalities]
        left, right = (rendering.part(side.versions(rendering)) for side in self.operands)
        if self in rendering.flags.hot:
            bits = rendering.flags.hot[self]
            left = left_flagged(rendering, left, bits)
            right = right_flagged(rendering, right, self.right.columns, bits)
            keys.append(SAME_FLAG)
        on = meeting("l", "r", keys, self.condition)
        return joined(rendering, (left, right), self.columns, on)
