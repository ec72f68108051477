"""Many seeds of one way under one fault: how many histories reached which level."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from steadyview.checking.records import judge_records
from steadyview.checking.verdict import LEVELS
from steadyview.simulation.records.faults import RunFaults
from steadyview.simulation.records.running import recorded
from steadyview.simulation.records.ways import RecordWay


@dataclass(frozen=True)
class Levels:
    """`reached`: histories by level; `first`: the first seed of each, `example` what it showed.

    `pairwise`: histories that are not strong, but strong as printed.
    """

    histories: int = 0
    reached: Mapping[str, int] = field(default_factory=dict)
    first: Mapping[str, int] = field(default_factory=dict)
    example: Mapping[str, str] = field(default_factory=dict)
    pairwise: int = 0

    @property
    def lost(self) -> tuple[int, int, int]:
        """Histories that are not convergent, only convergent, only weak."""
        none, convergent, weak = (self.reached.get(level, 0) for level in LEVELS[:3])
        return none, convergent, weak

    @property
    def worst(self) -> str:
        """The lowest level that was seen."""
        return next((level for level in LEVELS if self.reached.get(level)), "strong")

    def __add__(self, other: Levels) -> Levels:
        """Of other seeds, all of them behind ours."""
        return Levels(
            self.histories + other.histories,
            dict(Counter(self.reached) + Counter(other.reached)),
            {**other.first, **self.first},
            {**other.example, **self.example},
            self.pairwise + other.pairwise,
        )


def measured_levels(way: RecordWay, faults: RunFaults, seeds: Iterable[int]) -> Levels:
    """Run and judge every seed."""
    reached: Counter[str] = Counter()
    first: dict[str, int] = {}
    example: dict[str, str] = {}
    histories = pairwise = 0
    for seed in seeds:
        verdict = judge_records(recorded(way, faults, seed).history)
        level = verdict.level
        histories += 1
        reached[level] += 1
        pairwise += level == "weak" and verdict.pairwise
        if first.setdefault(level, seed) == seed:
            example[level] = verdict.sentence
    return Levels(histories, dict(reached), first, example, pairwise)
