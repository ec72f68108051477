"""Why an algorithm is not at some level: the smallest history that shows it, drawn for a person."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from steadyview.checking import FAILS, Verdict, judge
from steadyview.maintenance.algorithms import Kind
from steadyview.simulation.diagrams import diagram, wrapped
from steadyview.simulation.seeds import Simulated, simulated
from steadyview.simulation.shrinking import Episode, replayed, shrunk
from steadyview.simulation.worlds import Sizes


@dataclass(frozen=True)
class Counterexample:
    """A shrunk run of one seed in which the level fails."""

    kind: Kind
    scenario: str
    seed: int
    below: str
    episode: Episode
    run: Simulated

    @cached_property
    def verdict(self) -> Verdict:
        """The checker's judgement."""
        return judge(self.run.history)

    @cached_property
    def text(self) -> str:
        """The view, its rows, what happened as a space-time diagram, and the verdict."""
        head = f"{self.kind.name}, {self.scenario}, seed {self.seed}, shrunk: not {self.below}"
        verdict = wrapped(f"{self.verdict.level}: {self.verdict.sentence}")
        return "\n".join([head, "", *diagram(self.run), "", *verdict])

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "seed": self.seed,
            "level": self.verdict.level,
            "sentence": self.verdict.sentence,
            "diagram": self.text.splitlines(),
        }


def counterexample(
    kind: Kind,
    scenario: str,
    seed: int,
    *,
    below: str | None = None,
    sizes: Sizes | None = None,
) -> Counterexample | None:
    """Shrink the seed's history while the level fails; None if it does not fail there.

    `below`: the level promised, if none is said.
    """
    level = below or kind.promises[scenario]
    run = simulated(kind, scenario, seed, sizes or Sizes())
    if not _fails(run, level):
        return None
    episode = Episode(run.world, tuple(run.trace.choices))
    small = shrunk(kind, episode, lambda smaller: _fails(smaller, level))
    return Counterexample(
        kind, scenario, seed, level, small, replayed(kind, small, verbose=True)
    )


def _fails(run: Simulated, level: str) -> bool:
    return judge(run.history).holds(level) == FAILS
