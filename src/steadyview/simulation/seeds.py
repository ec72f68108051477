"""What one seed means: a world, a schedule, a run of one algorithm, and its history.

The same kind, scenario, sizes and seed give the same history everywhere. Algorithms with the same
needs (keys, one source) meet the same worlds.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from random import Random

from steadyview.checking import History
from steadyview.maintenance.algorithms import Kind
from steadyview.simulation.histories import history
from steadyview.simulation.running import Run, Trace
from steadyview.simulation.schedules import MANNERS, Dice
from steadyview.simulation.worlds import Sizes, World, world

CRASHES = 2
"""How often a warehouse dies in one run, at most."""
_KEYED = 0.25
"""How many worlds have keys where none are needed."""


@dataclass(frozen=True)
class Simulated:
    """One run and what it was over."""

    world: World
    trace: Trace

    @cached_property
    def history(self) -> History:
        """What a checker is shown."""
        return history(self.world, self.trace)


def simulated(
    kind: Kind, scenario: str, seed: int, sizes: Sizes, *, verbose: bool = False
) -> Simulated:
    """The run that the seed decides."""
    random = Random(seed)
    keyed = random.random() < _KEYED or kind.keys
    made = world(random, scenario, sizes, keyed=keyed, one_source=kind.one_source)
    manners = MANNERS[int(random.random() * len(MANNERS))]
    crashes = CRASHES if scenario in kind.survives else 0
    run = Run(made, kind, Dice(random, manners), crashes=crashes, verbose=verbose)
    return Simulated(made, run.finish())
