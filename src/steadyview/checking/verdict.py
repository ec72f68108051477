"""What a judgement says: a level, and for every level whether it holds.

    none < convergent < weak < strong < complete

Each level includes those below it. `unknown` is said of a level whose search was cut off; then the
level of the verdict is the highest that is known to hold.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from steadyview.checking.case import Case
from steadyview.checking.finding import FAILS, HOLDS, UNKNOWN, Finding

LEVELS: Final = ("none", "convergent", "weak", "strong", "complete")


class Verdict:
    """The judgement of one history. The witness is put into words when it is asked for."""

    def __init__(self, case: Case, findings: Mapping[str, Finding]) -> None:
        self._case = case
        self._findings = findings

    @property
    def level(self) -> str:
        """The highest level that holds."""
        for level in reversed(LEVELS):
            if level in self._findings and self._findings[level].answer == HOLDS:
                return level
        return "none"

    def holds(self, level: str) -> str:
        """'holds', 'fails' or 'unknown'."""
        wanted = LEVELS.index(level)
        if wanted <= LEVELS.index(self.level):
            return HOLDS
        lower = [self._findings.get(name) for name in LEVELS[: wanted + 1]]
        return FAILS if any(f is not None and f.answer == FAILS for f in lower) else UNKNOWN
