"""Table 1 of Agrawal et al., with lookups counted: by number of relations and by update rate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import factorial, perm
from random import Random

from examples.papers.adversary import Attack
from examples.papers.stream import Counts, Sources, algorithm_of, chain, streamed, update_of
from steadyview.maintenance.algorithms import BATCHED, kind_of
from steadyview.maintenance.events import Ask

SIZES = (2, 3, 4, 5, 6)
RATES = (0.05, 0.2, 0.5, 1.0, 2.0, 4.0)
ALGORITHMS = (
    "recompute",
    "eca",
    "strobe",
    "c-strobe",
    "sweep",
    "nested-sweep",
    "nested-sweep:3",
    BATCHED,
)
BATCHES = (1, 2, 4, 8, 16, 32, 64)
UPDATES = 100
SEEDS = (1, 2, 3)


@dataclass(frozen=True)
class Point:
    """All streams of one algorithm, one number of relations and one rate."""

    algorithm: str
    n: int
    rate: float
    counts: tuple[Counts, ...]

    def total(self, name: str) -> int:
        """The sum of one count over the streams."""
        return sum(getattr(counts, name) for counts in self.counts)

    def most(self, name: str) -> int:
        """The largest."""
        return max(getattr(counts, name) for counts in self.counts)

    @property
    def lookups_per_update(self) -> float:
        """Query messages, their answers not counted."""
        return self.total("lookups") / self.total("updates")

    @property
    def installs_per_update(self) -> float:
        """1 where every update has a state of its own."""
        return self.total("installs") / self.total("updates")


def point(algorithm: str, n: int, rate: float, seeds: Sequence[int] = SEEDS) -> Point:
    """Measure one point."""
    kind = kind_of(algorithm)
    return Point(algorithm, n, rate, tuple(streamed(kind, n, rate, UPDATES, s) for s in seeds))


def printed_bound(n: int) -> int:
    """Compensating queries of C-Strobe for one insertion, grouped by relation, as printed."""
    return factorial(n - 1)


def our_bound(n: int) -> int:
    """The same, counted level by level of the recursion.

    >>> [our_bound(n) for n in (3, 4, 5)]
    [2, 9, 40]
    """
    return sum(perm(n - 1, k) for k in range(1, n - 1))


def batched_lookups(n: int, size: int, batches: int = 20) -> float:
    """Lookups per update where `size` updates make a batch; the average of some batches."""
    random, lookups = Random(size), 0
    for _ in range(batches):
        attack = Attack(BATCHED, n)
        for _ in range(size):
            attack.update(int(random.random() * n))
        while attack.waiting:
            attack.answer()
        lookups += attack.lookups
    return lookups / (batches * size)


def eca_terms(n: int, opened: int) -> int:
    """Joins in ECA's next query while so many are unanswered; the relations are updated in turn."""
    sources = Sources(chain(n, one_source=True))
    eca = algorithm_of(kind_of("eca"), sources)
    terms = 0
    for number in range(1, opened + 2):
        relation = number % n
        update = update_of(sources.site, number, relation, sources.toggled(relation))
        terms = sum(len(ask.parts) for ask in eca.received(update) if isinstance(ask, Ask))
    return terms
