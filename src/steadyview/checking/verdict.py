"""What a judgement says: a level, a witness for it, and why no higher one.

    none < convergent < weak < strong < complete

Each level includes those below it. `unknown` is said of a level whose search was cut off; then the
level of the verdict is the highest that is known to hold.

The witness is data that can be checked without trusting the search: for the level that holds, a
vector for every state (how many commits of each source it shows); where it is `complete`, also an
order of all transactions; and for the next level the first state that breaks it (`breaks`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from itertools import pairwise
from typing import Any, Final

from steadyview.checking.breaks import Break, broken
from steadyview.checking.case import Case
from steadyview.checking.finding import FAILS, HOLDS, UNKNOWN, Finding
from steadyview.checking.sentences import sentence

LEVELS: Final = ("none", "convergent", "weak", "strong", "complete")


def level_above(level: str) -> str | None:
    """The next one; None above the highest.

    >>> level_above("weak"), level_above("complete")
    ('strong', None)
    """
    return LEVELS[LEVELS.index(level) + 1] if level != LEVELS[-1] else None


class Verdict:
    """The judgement of one history. The witness is put together when it is asked for."""

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

    @cached_property
    def breaks(self) -> Break | None:
        """Why the next level does not hold; None if there is no higher one."""
        above = level_above(self.level)
        if above is None:
            return None
        if self.holds(above) == UNKNOWN:
            return Break(above, UNKNOWN)
        return broken(self._case, above, self._findings)

    @cached_property
    def witness(self) -> Mapping[str, Any]:
        """`chain`: state by state its vector; `order`, if complete; `breaks`, if not."""
        witness: dict[str, Any] = {"chain": self._chain()}
        if self.level == "complete":
            order, path = self._case.order, self._findings["complete"].path
            numbers = [n for before, after in pairwise(path) for n in order.between(before, after)]
            witness["order"] = self._case.ids(numbers)
        witness["breaks"] = self.breaks.to_dict() if self.breaks else None
        return witness

    @property
    def sentence(self) -> str:
        """What holds and why no more does."""
        return sentence(self.level, self.breaks)

    def to_dict(self) -> dict[str, Any]:
        """The whole verdict as plain data."""
        return {
            "level": self.level,
            "levels": {level: self.holds(level) for level in LEVELS[1:]},
            "witness": self.witness,
            "sentence": self.sentence,
        }

    def _chain(self) -> list[dict[str, Any]]:
        case = self._case
        if self.level == "none":
            return []
        vectors = self._findings[self.level].vectors
        if self.level == "convergent":
            last = len(case.history.states) - 1
            return [{"state": last, "vector": case.named(vectors[0])}]
        bounds = zip(case.numbers, [*case.numbers[1:], len(case.history.states)], strict=True)
        return [
            {"state": number, "vector": case.named(vector)}
            for vector, (first, end) in zip(vectors, bounds, strict=True)
            for number in range(first, end)
        ]
