"""A stream of single updates at a given rate, and the lookups that an algorithm needs for it.

Time is counted in round trips: every message takes half of one, a source answers at once. Updates
are executed at random moments (Poisson), `rate` of them per round trip: so many overtake a query.
The view joins a chain of n relations, one per source (or all at one, for ECA). Joins always hit:
every relation has one row that stays and one that comes and goes, so no answer is ever empty.
Where updates come faster than an algorithm works they wait, and the last are done after the end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from random import Random
from typing import Any

from steadyview.algebra import Bag, Row
from steadyview.maintenance.algorithms import Kind
from steadyview.maintenance.bag_view_algebra import Handle
from steadyview.maintenance.events import Algorithm, Ask, Change, Install, Read, Update
from steadyview.simulation.batches import Batches, first_kept
from steadyview.simulation.blueprints import Blueprint, Site, site
from steadyview.simulation.sources import Freeze, Lookup

STAYS: Row = (0, 1, 1, 0)
COMES_AND_GOES: Row = (1, 1, 1, 1)


@dataclass
class Counts:
    """What one stream needed."""

    updates: int = 0
    insertions: int = 0
    lookups: int = 0
    terms: int = 0
    """Joins asked for; a lookup of ECA holds many."""
    installs: int = 0
    depth: int = 0
    """How deep Nested SWEEP's recursion went."""
    compensating: int = 0
    """The most compensating queries that C-Strobe sent for one insertion."""


def chain(n: int, *, one_source: bool = False) -> Site:
    """The view's site."""
    sources = (0,) * n if one_source else tuple(range(n))
    return site(Blueprint(sources, tuple(range(n)), "chain", keyed=True))


class Sources:
    """The relations now, and the view over them."""

    def __init__(self, of: Site) -> None:
        self.site = of
        self.rows = [Bag.of([STAYS]) for _ in of.relations]
        self._frozen: dict[int, Bag[Row]] = {}

    def toggled(self, relation: int) -> int:
        """Insert the row that comes and goes, or delete it: 1 or -1."""
        change = -1 if self.rows[relation].count(COMES_AND_GOES) else 1
        self.rows[relation] += Bag([(COMES_AND_GOES, change)])
        return change

    def answer(self, query: Ask[Handle] | Read | Freeze | Lookup) -> list[Any]:
        """Evaluate a query now. Every position is a relation of its own; all is to be seen."""
        if isinstance(query, Freeze):
            self._frozen |= {p: self.rows[p] for p in self.site.positions.at(query.source)}
            return [frozenset()]
        if isinstance(query, Lookup):
            rows, column = self._frozen[query.relation], query.column
            return [rows.where(lambda row: column is None or row[column] in query.keys)]
        if isinstance(query, Read):
            return [self.rows[position] for position in query.positions]
        return [self._joined(part.known, part.steps) for part in query.parts]

    def _joined(self, known: Handle, steps: Sequence[tuple[int, Handle | None]]) -> Handle:
        for position, rows in steps:
            base = self.rows[position] if rows is None else rows
            known = self.site.algebra.join(known, position, base)
        return known

    def view(self) -> Bag[Row]:
        """The right rows of the view."""
        joined = self.site.algebra.seed(0, self.rows[0])
        joined = self._joined(joined, [(p, None) for p in self.site.positions.outward(0)])
        return self.site.algebra.project(joined)


def algorithm_of(kind: Kind, sources: Sources) -> Algorithm[Any]:
    """The algorithm for the view as it is now."""
    site_ = sources.site
    if kind.make is None:
        kept, _ = first_kept(site_.plan, sources.rows)
        return Batches(site_.plan, site_.relations, kept)
    return kind.make(site_.positions, site_.algebra, sources.view(), True)


def update_of(of: Site, number: int, relation: int, change: int) -> Update[Handle]:
    """The message about one executed update."""
    name = of.relations[relation]
    changes = (Change(name, Bag.of([COMES_AND_GOES]), inserted=change > 0),)
    return Update(number, name.source, f"t{number}", changes)


def streamed(kind: Kind, n: int, rate: float, updates: int, seed: int) -> Counts:
    """Run one stream to its end; the view must be right then."""
    return _Stream(kind, chain(n, one_source=kind.one_source)).run(rate, updates, Random(seed))


class _Stream:
    """Things that happen, each at its time."""

    def __init__(self, kind: Kind, of: Site) -> None:
        self._sources = Sources(of)
        self._algorithm = algorithm_of(kind, self._sources)
        self._counts = Counts()
        self._view = self._sources.view()
        self._now = 0.0
        self._agenda: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._tie = count()

    def run(self, rate: float, updates: int, random: Random) -> Counts:
        """All updates are planned first."""
        time = 0.0
        for _ in range(updates):
            time += random.expovariate(rate)
            self._at(time, self._execute, int(random.random() * len(self._sources.rows)))
        while self._agenda:
            self._now, _, happens, arguments = heappop(self._agenda)
            happens(*arguments)
        assert self._view == self._sources.view(), "the stream ended with a wrong view"
        self._counts.depth = getattr(self._algorithm, "depth", 0)
        return self._counts

    def _at(self, time: float, happens: Callable[..., None], *arguments: Any) -> None:
        heappush(self._agenda, (time, next(self._tie), happens, arguments))

    def _execute(self, relation: int) -> None:
        change = self._sources.toggled(relation)
        self._counts.insertions += change > 0
        self._at(self._now + 0.5, self._arrive, relation, change)

    def _arrive(self, relation: int, change: int) -> None:
        self._counts.updates += 1
        update = update_of(self._sources.site, self._counts.updates, relation, change)
        self._act(self._algorithm.received(update))

    def _act(self, actions: Sequence[Any]) -> None:
        for action in actions:
            if isinstance(action, Install):
                self._view += action.change
                self._counts.installs += 1
                continue
            if not isinstance(action, Freeze):
                self._counts.lookups += 1
                self._counts.terms += len(action.parts) if isinstance(action, Ask) else 1
            self._at(self._now + 0.5, self._evaluate, action)
        compensating = getattr(self._algorithm, "compensating", 0)
        self._counts.compensating = max(self._counts.compensating, compensating)

    def _evaluate(self, query: Any) -> None:
        self._at(self._now + 0.5, self._answered, query.query, self._sources.answer(query))

    def _answered(self, query: int, answer: list[Handle]) -> None:
        self._act(self._algorithm.answered(query, answer))
