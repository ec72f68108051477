"""Many seeds of one way: how many histories break each property."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from steadyview.checking.deferred import convictions
from steadyview.simulation.deferred.running import deferred
from steadyview.simulation.deferred.ways import Way


@dataclass(frozen=True)
class Convicted:
    """`broken`: histories by the property that they break; `first`: the first seed of each.

    `steps` were taken in all, `filled` of them with rows.
    """

    way: str
    histories: int
    broken: Mapping[str, int] = field(default_factory=dict)
    first: Mapping[str, int] = field(default_factory=dict)
    example: Mapping[str, str] = field(default_factory=dict)
    """What the first of them showed, as a sentence."""
    steps: int = 0
    filled: int = 0

    def __add__(self, other: Convicted) -> Convicted:
        """Of other seeds, all of them behind ours."""
        return Convicted(
            self.way,
            self.histories + other.histories,
            Counter(self.broken) + Counter(other.broken),
            {**other.first, **self.first},
            {**other.example, **self.example},
            self.steps + other.steps,
            self.filled + other.filled,
        )


def convicted(way: Way, seeds: Iterable[int]) -> Convicted:
    """Run and judge every seed."""
    broken: Counter[str] = Counter()
    first: dict[str, int] = {}
    example: dict[str, str] = {}
    histories = steps = filled = 0
    for seed in seeds:
        history = deferred(way, seed).history
        histories += 1
        steps += len(history.steps)
        filled += sum(bool(step.rows) for step in history.steps)
        for conviction in convictions(history):
            broken[conviction.breaks] += 1
            if first.setdefault(conviction.breaks, seed) == seed:
                example[conviction.breaks] = conviction.sentence
    return Convicted(way.name, histories, broken, first, example, steps, filled)
