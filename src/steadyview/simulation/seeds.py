"""What one seed means: a world, a schedule, a run of one algorithm, and its history.

The same kind, scenario, sizes and seed give the same history everywhere. Algorithms with the same
needs (keys, one source) meet the same worlds.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from steadyview.algebra import Bag, Row
from steadyview.checking import History
from steadyview.maintenance.algorithms import Kind
from steadyview.maintenance.bag_view_algebra import Handle
from steadyview.maintenance.events import Algorithm
from steadyview.simulation.blueprints import Site
from steadyview.simulation.histories import history
from steadyview.simulation.running import MANNERS, Make, Run, Trace
from steadyview.simulation.worlds import Sizes, World, world

_RELATIONS = (2, 2, 2, 3, 3, 3, 3, 4, 4, 5)
"""How many positions a view has where nobody asks for a number."""


@dataclass(frozen=True)
class Simulated:
    """One run and what it was over."""

    world: World
    trace: Trace

    @property
    def history(self) -> History:
        """What a checker is shown."""
        return history(self.world, self.trace)


def simulated(
    kind: Kind, scenario: str, seed: int, sizes: Sizes, *, verbose: bool = False
) -> Simulated:
    """The run that the seed decides."""
    random = Random(seed)
    relations = sizes.relations or _RELATIONS[int(random.random() * len(_RELATIONS))]
    keyed = random.random() < 0.25 or kind.keys
    made = world(random, scenario, sizes.of(relations), keyed=keyed, one_source=kind.one_source)
    manners = MANNERS[int(random.random() * len(MANNERS))]
    run = Run(made, maker(kind), random, manners, verbose=verbose)
    return Simulated(made, run.finish())


def maker(kind: Kind) -> Make:
    """Makes the kind's algorithm for a world."""
    make = kind.make
    assert make is not None, kind.name

    def made(site: Site, view: Bag[Row]) -> Algorithm[Handle]:
        return make(site.positions, site.algebra, view, site.blueprint.keyed)

    return made
