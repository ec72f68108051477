"""How much work a search may do before it says `unknown`."""

from __future__ import annotations

from math import inf
from typing import Final

LOOK: Final = 50
"""What looking at a vector costs, in joined rows; it bounds memory too."""


class OutOfBudget(Exception):
    """A search has done as much as it was allowed to."""


class Budget:
    """Counts down joined rows, and vectors looked at; without limit until one is set."""

    def __init__(self) -> None:
        self.left = inf

    def spend(self, amount: int = LOOK) -> None:
        """Note some work; OutOfBudget if that is too much."""
        self.left -= amount
        if self.left < 0:
            raise OutOfBudget
