"""Many seeds of one algorithm in one scenario: the levels reached, and what was asked.

A history is a *violation* where the level required of it fails: the promised one, unless another is
asked for. Where the checker cannot tell, because its search was cut off, the history is *unknown*:
no violation, of no level, and nothing that may be passed over (`is_kept`).
Messages are lookups: query messages to sources (neither their answers nor freezes), per update
message delivered to the warehouse; over the histories without a crash, after which things are asked
twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeAlias

from steadyview.checking import FAILS, LEVELS, UNKNOWN, judge, level_above
from steadyview.maintenance.algorithms import Kind, kind_of
from steadyview.simulation.seeds import simulated
from steadyview.simulation.worlds import Sizes

_STRIDE = 250
"""Seeds that one worker takes at a time."""


@dataclass(frozen=True)
class Measured:
    """What was seen over some seeds. `violations` are (seed, level), in order of seeds.

    `levels`: how many histories reached each, and no more; with the `unknown` ones they are all.
    `first`: for every level seen, the first seed that surely reached no more.
    """

    algorithm: str
    scenario: str
    required: str
    histories: int = 0
    levels: Mapping[str, int] = field(default_factory=dict)
    first: Mapping[str, int] = field(default_factory=dict)
    violations: tuple[tuple[int, str], ...] = ()
    unknown: int = 0
    crashed: int = 0
    updates: int = 0
    lookups: int = 0
    most_lookups: float = 0.0
    """The largest number of lookups per update in any one history."""

    @property
    def worst(self) -> str | None:
        """The lowest level of any history that was judged; None if none was."""
        return next((level for level in LEVELS if self.levels.get(level)), None)

    @property
    def is_kept(self) -> bool:
        """Whether every history was seen to keep the level required."""
        return not self.violations and not self.unknown

    @property
    def mean_lookups(self) -> float:
        """Lookups per update, over all histories."""
        return self.lookups / self.updates if self.updates else 0.0

    def to_dict(self) -> dict[str, Any]:
        """The whole as plain data."""
        return {
            "algorithm": self.algorithm,
            "scenario": self.scenario,
            "histories": self.histories,
            "required": self.required,
            "worst": self.worst,
            "levels": {level: self.levels.get(level, 0) for level in LEVELS},
            "violations": [{"seed": seed, "level": level} for seed, level in self.violations],
            "unknown": self.unknown,
            "crashed": self.crashed,
            "updates": self.updates,
            "messages": self.lookups,
            "messages_per_update": {"mean": self.mean_lookups, "max": self.most_lookups},
        }

    def __add__(self, other: Measured) -> Measured:
        """Of other seeds, all of them behind ours."""
        return replace(
            self,
            histories=self.histories + other.histories,
            levels=Counter(self.levels) + Counter(other.levels),
            first={**other.first, **self.first},
            violations=self.violations + other.violations,
            unknown=self.unknown + other.unknown,
            crashed=self.crashed + other.crashed,
            updates=self.updates + other.updates,
            lookups=self.lookups + other.lookups,
            most_lookups=max(self.most_lookups, other.most_lookups),
        )


@dataclass(frozen=True)
class Stretch:
    """Some seeds for one worker. It may be sent to another process if the kind is a known one."""

    kind: Kind
    scenario: str
    seeds: range
    sizes: Sizes
    required: str

    def __reduce__(self) -> tuple[Any, ...]:
        known = kind_of(self.kind.name)
        assert known.parameter or known.make is self.kind.make, "an unknown kind stays at home"
        names = [f.name for f in fields(Kind) if f.name not in ("make", "with_parameter")]
        now = {name: getattr(self.kind, name) for name in names}
        changed = {name: value for name, value in now.items() if value != getattr(known, name)}
        rest = self.scenario, self.seeds, self.sizes, self.required
        return _stretch, (self.kind.name, changed, *rest)


def _stretch(name: str, changed: Mapping[str, Any], *rest: Any) -> Stretch:
    return Stretch(replace(kind_of(name), **changed), *rest)


Mapped: TypeAlias = Callable[[Callable[[Stretch], Measured], Iterable[Stretch]], Iterator[Measured]]
"""How stretches are measured, in order: `map`, or that of several processes (`workers`)."""


def measured(
    kind: Kind,
    scenario: str,
    seeds: range,
    sizes: Sizes | None = None,
    *,
    required: str | None = None,
    mapped: Mapped = map,
) -> Measured:
    """Run and judge every seed."""
    *_, found = measuring(kind, scenario, seeds, sizes, required=required, mapped=mapped)
    return found


def measuring(
    kind: Kind,
    scenario: str,
    seeds: range,
    sizes: Sizes | None = None,
    *,
    required: str | None = None,
    mapped: Mapped = map,
) -> Iterator[Measured]:
    """The same, as it grows; at least once."""
    required = required or kind.promises[scenario]
    found = Measured(kind.name, scenario, required)
    yield found
    stretches = (
        Stretch(kind, scenario, seeds[start : start + _STRIDE], sizes or Sizes(), required)
        for start in range(0, len(seeds), _STRIDE)
    )
    for more in mapped(measured_stretch, stretches):
        found += more
        yield found


def measured_stretch(stretch: Stretch) -> Measured:
    """Seed after seed."""
    required = stretch.required
    levels: Counter[str] = Counter()
    first: dict[str, int] = {}
    violations = []
    unknown = crashed = updates = lookups = 0
    most = 0.0
    for seed in stretch.seeds:
        run = simulated(stretch.kind, stretch.scenario, seed, stretch.sizes)
        verdict = judge(run.history)
        level, kept = verdict.level, verdict.holds(required)
        if kept == UNKNOWN:
            unknown += 1
        else:
            levels[level] += 1
            above = level_above(level)
            if above is None or verdict.holds(above) == FAILS:
                first.setdefault(level, seed)
            violations += [(seed, level)] if kept == FAILS else []
        trace = run.trace
        if trace.crashes:
            crashed += 1
        else:
            updates += trace.updates
            lookups += trace.lookups
            most = max(most, trace.lookups / max(1, trace.updates))
    return Measured(
        stretch.kind.name,
        stretch.scenario,
        required,
        len(stretch.seeds),
        levels,
        first,
        tuple(violations),
        unknown,
        crashed,
        updates,
        lookups,
        most,
    )
