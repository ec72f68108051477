"""Every way of finding the records to apply: what it is made of, and what it must be clean of.

The order is that of the paper: the first idea, Algorithm 1 and its flaws, Algorithm 2, Algorithm 2
without what it needs; then the product's own way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Final

from steadyview.checking.deferred import ONE_DATABASE, PER_SOURCE
from steadyview.maintenance.ipda.algorithm_1 import Algorithm1
from steadyview.maintenance.ipda.algorithm_2 import Algorithm2
from steadyview.maintenance.ipda.by_write_time import ByWriteTime
from steadyview.maintenance.ipda.contract import DeferredAlgorithm
from steadyview.simulation.deferred.commit_numbers import CommitNumbers
from steadyview.simulation.deferred.database import DeferredDatabase


@dataclass(frozen=True)
class Way:
    """`promises`: whether it claims all six properties.

    `two_clocks`: the second node has a clock of its own. `sources`: how many databases there are;
    `order`: which transactions must not be shown the other way round. `set_back`: whether the clock
    is, now and then.
    """

    name: str
    make: Callable[[DeferredDatabase, Random], DeferredAlgorithm]
    promises: bool = False
    two_clocks: bool = False
    sources: int = 1
    order: str = ONE_DATABASE
    set_back: bool = False


def _commit_numbers(database: DeferredDatabase, random: Random) -> CommitNumbers:
    return CommitNumbers(database, lambda waiting: random.randint(0, waiting))


_WAYS: Final = (
    Way("write times", lambda *_: ByWriteTime()),
    Way("algorithm 1", lambda *_: Algorithm1()),
    Way("algorithm 1, atomic", lambda *_: Algorithm1(atomic=True)),
    Way("algorithm 1, atomic, two clocks", lambda *_: Algorithm1(atomic=True), two_clocks=True),
    Way("algorithm 2", lambda *_: Algorithm2(), promises=True),
    Way("algorithm 2, two clocks", lambda *_: Algorithm2(), two_clocks=True),
    Way("algorithm 2, without its lock", lambda *_: Algorithm2(locked=False)),
    Way(
        "commit numbers",
        _commit_numbers,
        promises=True,
        sources=3,
        order=PER_SOURCE,
        set_back=True,
    ),
    Way("commit numbers, one order for all", _commit_numbers, sources=3),
)
WAYS: Final[Mapping[str, Way]] = {way.name: way for way in _WAYS}


def way_of(name: str) -> Way:
    """The way of that name.

    >>> way_of("algorithm 2").promises
    True
    """
    return WAYS[name]
