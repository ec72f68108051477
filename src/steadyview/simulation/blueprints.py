"""Shapes of worlds: relations at sources and a view over them. Few enough to be compiled once each.

A relation has columns `k, a, b, v`: `k` is its key where the world is keyed, or `k` and `a`
together; `a` and `b` join it with its neighbours, `v` is a value that conditions may look at. The
shapes, position by position:

    chain   b of the one before = a          shared   a of the first = a
    star    b of the first = a               ring     a chain whose ends are joined as well
    theta   b of the one before <= a
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import count
from random import Random
from typing import TypeVar

from steadyview.changes import Column, RelationName, RelationSchema
from steadyview.maintenance.bag_view_algebra import BagViewAlgebra, Compiled
from steadyview.maintenance.positions import Positions
from steadyview.simulation.view_plan import ViewPlan, view_plan
from steadyview.views.analyze import analyze
from steadyview.views.join_tree import join_tree
from steadyview.views.parse import parse_view

T = TypeVar("T")

COLUMNS = ("k", "a", "b", "v")
CONDITIONS = ("", "p0.v <> 1", "p0.v <= p1.v", "p1.v IS NULL OR p1.v < 3")
_LINKS = {
    "chain": "p{before}.b = p{i}.a",
    "star": "p0.b = p{i}.a",
    "shared": "p0.a = p{i}.a",
    "ring": "p{before}.b = p{i}.a",
    "theta": "p{before}.b <= p{i}.a",
}
_SHAPES = ("chain", "chain", "chain", "star", "star", "shared", "shared", "ring", "theta")
_SHAPES_OF_TWO = ("chain", "chain", "shared", "theta")
_POSITIONS = (2, 2, 2, 3, 3, 3, 3, 4, 4, 5)
_KEYED, _CONDITIONED, _SELF_JOINED, _MOVED = 0.25, 0.4, 0.15, 0.25
"""How many worlds are keyed where none has to be, how many views have a condition, how many use a
relation twice; how many relations live elsewhere.
"""
BY_VALUE, OF_ALL = "by value", "of all"
_GROUPS = ("", "", "", BY_VALUE, BY_VALUE, OF_ALL)
_PAIRED, _PAIR = 0.3, 0.6
"""How many keyed worlds have keys of two columns, and how many of their relations."""


@dataclass(frozen=True)
class Blueprint:
    """What a world looks like before it has rows.

    `sources`: the source of each relation, by number. `uses`: the relation of each position.
    `condition`: an index into CONDITIONS. `narrow`: the view shows keys and one value only.
    `pairs`: the relations of a keyed world whose key is `k` and `a`.
    `groups`: the view shows counts, sums and averages, BY_VALUE of the first `a`, or OF_ALL rows.
    """

    sources: tuple[int, ...]
    uses: tuple[int, ...]
    shape: str
    keyed: bool
    condition: int = 0
    narrow: bool = False
    pairs: frozenset[int] = frozenset()
    groups: str = ""

    def key_width(self, relation: int) -> int:
        """How many of its first columns are the key of a relation; 0 where it has none."""
        return (1 + (relation in self.pairs)) if self.keyed else 0

    @cached_property
    def keys(self) -> tuple[tuple[tuple[int, int], ...], ...]:
        """Per position, (column, output) pairs: where a keyed view shows its key."""
        outputs = count()
        return tuple(
            tuple((column, next(outputs)) for column in range(self.key_width(relation)))
            for relation in self.uses
        )

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The relations' names."""
        return tuple(f"r{i + 1}" for i in range(len(self.sources)))

    @cached_property
    def source_names(self) -> tuple[str, ...]:
        """The source of each relation, by name."""
        return tuple(f"s{source + 1}" for source in self.sources)

    @cached_property
    def view(self) -> str:
        """The view's SQL, over bare relation names."""
        tables = [f"r{relation + 1} AS p{i}" for i, relation in enumerate(self.uses)]
        text = tables[0]
        for i, table in enumerate(tables[1:], 1):
            text += f" JOIN {table} ON {self._link(i)}"
        condition = CONDITIONS[self.condition] if len(self.uses) > 1 else ""
        where = f" WHERE {condition}" if condition else ""
        by = " GROUP BY p0.a" if self.groups == BY_VALUE else ""
        return f"SELECT {', '.join(self._outputs())} FROM {text}{where}{by}"

    def _link(self, i: int) -> str:
        link = _LINKS[self.shape].format(before=i - 1, i=i)
        closes = self.shape == "ring" and i == len(self.uses) - 1
        return f"{link} AND p{i}.b = p0.a" if closes else link

    def _outputs(self) -> list[str]:
        if self.groups:
            return self._aggregates()
        if self.keyed:
            keys = [
                f"p{i}.{COLUMNS[column]} AS {COLUMNS[column]}{i}"
                for i, key in enumerate(self.keys)
                for column, _ in key
            ]
            return [*keys, "p0.v AS v"] if self.narrow else [*keys, "p0.v AS v", "p0.a AS a"]
        shown = [f"p{i}.v AS v{i}" for i in range(len(self.uses))]
        return shown[:1] if self.narrow else shown

    def _aggregates(self) -> list[str]:
        """A narrow view shows no key: equal rows of different groups are duplicates."""
        last = f"p{len(self.uses) - 1}.v"
        if self.narrow:
            return [f"SUM({last}) AS s"]
        key = ["p0.a AS a"] if self.groups == BY_VALUE else []
        shown = ["COUNT(*) AS n", f"COUNT({last}) AS c", f"SUM({last}) AS s", f"AVG({last}) AS m"]
        return [*key, *shown, "SUM(p0.k) AS k"]


@dataclass(frozen=True)
class Site:
    """A blueprint with everything the algorithms need of its view."""

    blueprint: Blueprint
    relations: tuple[RelationName, ...]
    positions: Positions
    algebra: BagViewAlgebra

    @property
    def plan(self) -> ViewPlan:
        """The view as the product plans it."""
        return _planned(self.blueprint.view, self.blueprint.names)


@lru_cache(maxsize=4096)
def site(blueprint: Blueprint) -> Site:
    """Read the view's SQL and prepare it."""
    names, sources = blueprint.names, blueprint.source_names
    compiled = _compiled(blueprint.view, names, blueprint.keys if blueprint.keyed else ())
    relations = tuple(RelationName(s, (n,)) for s, n in zip(sources, names, strict=True))
    neighbours = Positions.of_view(compiled.definition, compiled.tree).neighbours
    positions = Positions(tuple(relations[r] for r in blueprint.uses), neighbours)
    return Site(blueprint, relations, positions, BagViewAlgebra(compiled))


@lru_cache(maxsize=2048)
def _compiled(
    view: str, names: tuple[str, ...], keys: tuple[tuple[tuple[int, int], ...], ...]
) -> Compiled:
    definition = analyze(parse_view("v", view), _schemas(names))
    return Compiled(definition, join_tree(definition), keys)


@lru_cache(maxsize=2048)
def _planned(view: str, names: tuple[str, ...]) -> ViewPlan:
    return view_plan(view, _schemas(names))


def _schemas(names: tuple[str, ...]) -> list[RelationSchema]:
    columns = tuple(Column(name, "BIGINT", "", keyable=True) for name in COLUMNS)
    return [RelationSchema(RelationName(name, ()), columns) for name in names]


@lru_cache(maxsize=8192)
def dealt(
    card: int, positions: int | None, *, keys: bool, one_source: bool, groups: bool = False
) -> Blueprint:
    """The blueprint on a card: any number of `positions` from 2 to 5, unless one is asked for.

    With a self-join there is one relation less. With `keys` it is keyed, otherwise it may be. With
    `groups` the view may show counts and sums.
    """
    random = Random(card)
    drawn_positions = _pick(random, _POSITIONS)
    positions = positions or drawn_positions
    keyed = random.random() < _KEYED or keys
    self_joined = positions > 1 and random.random() < _SELF_JOINED
    tables = positions - 1 if self_joined else positions
    uses = tuple(range(tables))
    if self_joined:
        uses = (*uses, 0 if random.random() < 0.5 else tables - 1)
    sources = (0,) * tables if one_source else _spread(random, tables)
    shape = _pick(random, _SHAPES if positions > 2 else _SHAPES_OF_TWO)
    conditioned = random.random() < _CONDITIONED
    condition = 1 + int(random.random() * (len(CONDITIONS) - 1)) if conditioned else 0
    narrow = random.random() < 0.5
    paired = keyed and random.random() < _PAIRED
    pairs = frozenset(r for r in range(tables) if paired and random.random() < _PAIR)
    summed = _pick(random, _GROUPS) if groups else ""
    return Blueprint(sources, uses, shape, keyed, condition, narrow, pairs, summed)


def _spread(random: Random, tables: int) -> tuple[int, ...]:
    """Mostly a source for each relation; numbered in the order in which they are met."""
    drawn_sources = [
        int(random.random() * tables) if random.random() < _MOVED else i for i in range(tables)
    ]
    number = {source: n for n, source in enumerate(dict.fromkeys(drawn_sources))}
    return tuple(number[source] for source in drawn_sources)


def _pick(random: Random, options: Sequence[T]) -> T:
    return options[int(random.random() * len(options))]
