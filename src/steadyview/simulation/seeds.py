"""What one seed means: a world, a schedule, a run of one algorithm, and its history.

The same kind, scenario, sizes and seed give the same history everywhere. Algorithms with the same
needs (keys, one source) meet the same worlds. Where views are plans, worlds are harder: some views
show groups, and some transactions are to be seen later than others.

A world's blueprint is dealt from a deck that grows with the seed, since reading a view's SQL takes
longer than a run: small seeds share few views, a million meet them all.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from random import Random

from steadyview.checking import History
from steadyview.maintenance.algorithms import Kind
from steadyview.simulation.blueprints import dealt
from steadyview.simulation.histories import history
from steadyview.simulation.running import Run, Trace
from steadyview.simulation.schedules import BATCH_MANNERS, MANNERS, Dice
from steadyview.simulation.worlds import Sizes, World, with_late_transactions, world

CRASHES = 2
"""How often a warehouse dies in one run, at most."""
_DECK, _SEEDS_PER_CARD = 40, 100


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
    card = int(random.random() * (_DECK + seed // _SEEDS_PER_CARD))
    blueprint = dealt(
        card, sizes.relations, keys=kind.keys, one_source=kind.one_source, groups=kind.plans
    )
    made = world(random, scenario, sizes, blueprint)
    if kind.plans:
        made = with_late_transactions(made, Random(f"late {seed}"))
    ways = BATCH_MANNERS if kind.plans else MANNERS
    manners = ways[int(random.random() * len(ways))]
    crashes = CRASHES if scenario in kind.survives else 0
    run = Run(made, kind, Dice(random, manners), crashes=crashes, verbose=verbose)
    return Simulated(made, run.finish())
