"""Many seeds of one algorithm in one scenario: the levels reached, and what was asked.

A history is a *violation* where the level promised for the scenario fails; where the checker cannot
tell, the history is counted as unknown instead.
Messages are lookups: query messages to sources (their answers are not counted), per update message
delivered to the warehouse.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from steadyview.checking import FAILS, HOLDS, LEVELS, judge
from steadyview.maintenance.algorithms import Kind
from steadyview.simulation.seeds import Simulated, simulated
from steadyview.simulation.worlds import Sizes

Progress = Callable[[int], None]
"""Told how many histories are done, now and then."""
_STRIDE = 250
"""Seeds that one worker takes at a time."""


@dataclass(frozen=True)
class Measured:
    """What was seen over some seeds. `violations` are (seed, level), in order of seeds."""

    algorithm: str
    scenario: str
    promised: str
    histories: int
    levels: Mapping[str, int]
    violations: tuple[tuple[int, str], ...]
    unknown: int
    updates: int
    lookups: int
    most_lookups: float
    """The largest number of lookups per update in any one history."""

    @property
    def worst(self) -> str:
        """The lowest level of any history."""
        return next((level for level in LEVELS if self.levels.get(level)), "complete")

    @property
    def mean_lookups(self) -> float:
        """Lookups per update, over all histories."""
        return self.lookups / self.updates if self.updates else 0.0

    def __add__(self, other: Measured) -> Measured:
        return Measured(
            self.algorithm,
            self.scenario,
            self.promised,
            self.histories + other.histories,
            Counter(self.levels) + Counter(other.levels),
            self.violations + other.violations,
            self.unknown + other.unknown,
            self.updates + other.updates,
            self.lookups + other.lookups,
            max(self.most_lookups, other.most_lookups),
        )


def measured(
    kind: Kind,
    scenario: str,
    seeds: range,
    sizes: Sizes | None = None,
    *,
    progress: Progress | None = None,
) -> Measured:
    """Run and judge every seed."""
    sizes = sizes or Sizes()
    found = Measured(kind.name, scenario, kind.promises[scenario], 0, {}, (), 0, 0, 0, 0.0)
    for start in range(0, len(seeds), _STRIDE):
        found += _some(kind, scenario, seeds[start : start + _STRIDE], sizes)
        if progress:
            progress(found.histories)
    return found


def _some(kind: Kind, scenario: str, seeds: range, sizes: Sizes) -> Measured:
    promised = kind.promises[scenario]
    levels: Counter[str] = Counter()
    violations, unknown, updates, lookups, most = [], 0, 0, 0, 0.0
    for seed in seeds:
        run = simulated(kind, scenario, seed, sizes)
        level, kept = _judged(run, promised)
        levels[level] += 1
        if kept == FAILS:
            violations.append((seed, level))
        unknown += kept not in (FAILS, HOLDS)
        trace = run.trace
        updates += trace.updates
        lookups += trace.lookups
        most = max(most, trace.lookups / max(1, trace.updates))
    return Measured(
        kind.name,
        scenario,
        promised,
        len(seeds),
        levels,
        tuple(violations),
        unknown,
        updates,
        lookups,
        most,
    )


def _judged(run: Simulated, promised: str) -> tuple[str, str]:
    """The level, and whether the promised one holds, fails or is unknown."""
    verdict = judge(run.history)
    return verdict.level, verdict.holds(promised)
