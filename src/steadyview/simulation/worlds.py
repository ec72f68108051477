"""A world: rows to begin with, and transactions in the order of one global serial schedule.

Values are few and skewed, so that joins hit, keys come back and conflicts are frequent; any but a
key may be NULL. In a keyed world every relation holds a key at most once; otherwise there are
duplicate rows. A transaction is executed at each of its sources, in the order of the schedule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from random import Random
from typing import NamedTuple

from steadyview.algebra import Bag, Row
from steadyview.simulation.blueprints import Blueprint, Site, site

SCENARIOS = ("single", "source-local", "global")
_KEYS = (1, 2, 3)
_PAIRS = ((1, 1), (1, 1), (2, 1), (2, 1), (1, 2), (2, 2), (1, 3))
"""Keys of two columns: neither tells rows apart."""
_VALUES = (1, 1, 1, 1, 1, 1, 2, 2, 3, None)
_SIDES = len(_VALUES)
_COPIED = 0.2
"""How many new rows, where no key forbids it, are copies of one that is there."""
_LATE, _LATEST = 0.4, 3
"""How many transactions are shown late, where some are, and by how many frozen states at most."""


class RowChange(NamedTuple):
    """One row inserted (sign 1) or deleted (sign -1); `relation` by number."""

    relation: int
    row: Row
    sign: int


@dataclass(frozen=True, slots=True)
class WorldTransaction:
    """Changes in the order of execution; they may span sources in a global scenario.

    `late`: how many states that a source freezes later do not show it yet (PostgreSQL streams a
    commit before it is to be seen), unless one of its rows is changed again before.
    """

    id: str
    changes: tuple[RowChange, ...]
    late: int = 0


@dataclass(frozen=True)
class World:
    """Everything that is decided before a schedule runs."""

    blueprint: Blueprint
    rows: tuple[Bag[Row], ...]
    transactions: tuple[WorldTransaction, ...]

    @property
    def site(self) -> Site:
        """The prepared view."""
        return site(self.blueprint)

    @cached_property
    def initial_view(self) -> Bag[Row]:
        """The view over the rows to begin with; not of a view with groups."""
        algebra, positions = self.site.algebra, self.site.positions
        rows = [self.rows[relation] for relation in self.blueprint.uses]
        joined = algebra.seed(0, rows[0])
        for position in positions.outward(0):
            joined = algebra.join(joined, position, rows[position])
        return algebra.project(joined)


@dataclass(frozen=True)
class Sizes:
    """How large worlds are.

    Positions of the view (None: 2 to 5, as the seed decides); and, each at most: rows of a relation
    to begin with, transactions, changes of one transaction.
    """

    relations: int | None = None
    rows: int = 2
    transactions: int = 4
    changes: int = 3


def world(random: Random, scenario: str, sizes: Sizes, blueprint: Blueprint) -> World:
    """A world of that scenario."""
    maker = _Maker(random, blueprint)
    rows = tuple(maker.initial(i, int(random.random() * (sizes.rows + 1))) for i in maker.relations)
    count = 2 + int(random.random() * (sizes.transactions - 1))
    transactions = tuple(maker.transaction(f"t{i + 1}", scenario, sizes) for i in range(count))
    return World(blueprint, rows, transactions)


def with_late_transactions(made: World, random: Random) -> World:
    """The same world, but some transactions are to be seen only later than others."""
    transactions = tuple(
        replace(t, late=1 + int(random.random() * _LATEST)) if random.random() < _LATE else t
        for t in made.transactions
    )
    return replace(made, transactions=transactions)


class _Maker:
    """Draws rows and changes; remembers what is there."""

    def __init__(self, random: Random, blueprint: Blueprint) -> None:
        self._random = random
        self._blueprint = blueprint
        self.relations = range(len(blueprint.sources))
        self._there: list[list[Row]] = [[] for _ in self.relations]

    def initial(self, relation: int, count: int) -> Bag[Row]:
        """So many rows to begin with."""
        for _ in range(count):
            row = self._row(relation)
            if row is not None:
                self._there[relation].append(row)
        return Bag.of(self._there[relation])

    def transaction(self, name: str, scenario: str, sizes: Sizes) -> WorldTransaction:
        """One change; several at one source; or several anywhere."""
        relation = self._pick(self.relations)
        if scenario == "single":
            return WorldTransaction(name, self._changed(relation, modify=False))
        sources = self._blueprint.sources
        local = [r for r in self.relations if sources[r] == sources[relation]]
        among = self.relations if scenario == "global" and self._random.random() < 0.6 else local
        changes: list[RowChange] = []
        for _ in range(1 + int(self._random.random() * sizes.changes)):
            changes += self._changed(self._pick(among), modify=True)
        return WorldTransaction(name, tuple(changes))

    def _changed(self, relation: int, *, modify: bool) -> tuple[RowChange, ...]:
        """An insertion, a deletion, or (a deletion and an insertion of the same key)."""
        there = self._there[relation]
        kind = self._random.random()
        if there and kind < 0.45:
            old = there.pop(int(self._random.random() * len(there)))
            gone = RowChange(relation, old, -1)
            if not modify or kind < 0.25:
                return (gone,)
            width = self._blueprint.key_width(relation) or 1
            new = (*old[:width], *self._values()[width - 1 :])
            there.append(new)
            return gone, RowChange(relation, new, 1)
        row = self._row(relation)
        if row is None:
            old = there.pop()
            return (RowChange(relation, old, -1),)
        there.append(row)
        return (RowChange(relation, row, 1),)

    def _row(self, relation: int) -> Row | None:
        """A row that may be inserted now; None if every key is taken."""
        there = self._there[relation]
        if not self._blueprint.keyed:
            copied = there and self._random.random() < _COPIED
            return there[self._pick(range(len(there)))] if copied else (1, *self._values())
        if relation in self._blueprint.pairs:
            pairs = {row[:2] for row in there}
            left = [pair for pair in _PAIRS if pair not in pairs]
            return (*left[self._pick(range(len(left)))], *self._values()[1:]) if left else None
        taken = {row[0] for row in there}
        free = [key for key in _KEYS if key not in taken]
        return (self._pick(free), *self._values()) if free else None

    def _values(self) -> Row:
        random = self._random.random
        return (
            _VALUES[int(random() * _SIDES)],
            _VALUES[int(random() * _SIDES)],
            _VALUES[int(random() * _SIDES)],
        )

    def _pick(self, options: Sequence[int]) -> int:
        return options[int(self._random.random() * len(options))]
