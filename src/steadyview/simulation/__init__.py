"""Invents worlds, schedules and faults, and lets the algorithms live in them.

Belongs here: sources, channels and crashes in memory, all decided by one seed; histories of what
happened; shrinking a failing one and drawing it for a person.
Does not belong here: judging a history (`checking`), the algorithms themselves (`maintenance`; the
product's own way: `plans`, whose statements SQLite runs here).
Laws: the same seed gives the same history everywhere; nothing here loads Spark or reads a clock.
"""

from steadyview.simulation.counterexamples import Counterexample, counterexample
from steadyview.simulation.measuring import Measured, measured, measuring
from steadyview.simulation.seeds import Simulated, simulated
from steadyview.simulation.workers import workers
from steadyview.simulation.worlds import SCENARIOS, Sizes

__all__ = [
    "SCENARIOS",
    "Counterexample",
    "Measured",
    "Simulated",
    "Sizes",
    "counterexample",
    "measured",
    "measuring",
    "simulated",
    "workers",
]
