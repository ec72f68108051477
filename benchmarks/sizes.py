"""How much data and how many changes a run uses, and what it is held to."""

from __future__ import annotations

from dataclasses import dataclass

TOTAL_ROWS = 7_650_000
"""Rows of lineitem, orders and customer together at scale factor 1."""


@dataclass(frozen=True)
class Sizes:
    """Scale factors of the two sites and row changes of each batch."""

    scale: float
    smaller_scale: float
    tiny: int
    small: int
    large: int
    hot: int
    """Transactions of a hot-row batch; each makes two row changes."""
    runs: int
    warm_ups: int
    batches: int
    """Batches of 0.1 % in a row, to see what apply takes as it happens."""
    applies: int
    budget: float
    """Seconds after which no further round is begun, from the start of the program."""
    brief: bool = False
    """Whether the cases without which the table still says something are left out."""

    @property
    def share(self) -> int:
        """0.1 % of the rows."""
        return max(int(TOTAL_ROWS * self.scale * 0.001), 10)


FULL = Sizes(
    scale=1,
    smaller_scale=0.1,
    tiny=50,
    small=5_000,
    large=108_000,
    hot=5_000,
    runs=6,
    warm_ups=1,
    batches=8,
    applies=2,
    budget=420,
)
SMOKE = Sizes(
    scale=0.02,
    smaller_scale=0.01,
    tiny=50,
    small=500,
    large=5_000,
    hot=300,
    runs=1,
    warm_ups=0,
    batches=1,
    applies=1,
    budget=50,
    brief=True,
)
