"""Shapes of worlds: relations at sources and a view over them. Few enough to be compiled once each.

A relation has columns `k, a, b, v`: `k` is its key where the world is keyed, `a` and `b` join it
with its neighbours, `v` is a value that conditions may look at. A chain joins `b` of one position
with `a` of the next; a star joins `a` of every other position with `b` of the first; in a
shared-attribute world all positions have the same `a`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from random import Random

from steadyview.changes import Column, RelationName, RelationSchema
from steadyview.maintenance.bag_view_algebra import BagViewAlgebra, Compiled
from steadyview.maintenance.positions import Positions
from steadyview.views.analyze import analyze
from steadyview.views.join_tree import join_tree
from steadyview.views.parse import parse_view

COLUMNS = ("k", "a", "b", "v")
SHAPES = ("chain", "star", "shared")
CONDITIONS = ("", "p0.v <> 1", "p0.v <= p1.v")


@dataclass(frozen=True)
class Blueprint:
    """What a world looks like before it has rows.

    `sources`: the source of each relation, by number. `uses`: the relation of each position.
    `condition`: an index into CONDITIONS. `narrow`: the view shows keys and one value only.
    """

    sources: tuple[int, ...]
    uses: tuple[int, ...]
    shape: str
    keyed: bool
    condition: int = 0
    narrow: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The relations' names."""
        return tuple(f"r{i + 1}" for i in range(len(self.sources)))

    @property
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
        condition = CONDITIONS[self.condition]
        where = f" WHERE {condition}" if condition else ""
        return f"SELECT {', '.join(self._outputs())} FROM {text}{where}"

    def _link(self, i: int) -> str:
        links = {"chain": f"p{i - 1}.b = p{i}.a", "star": f"p0.b = p{i}.a"}
        return links.get(self.shape, f"p0.a = p{i}.a")

    def _outputs(self) -> list[str]:
        if self.keyed:
            keys = [f"p{i}.k AS k{i}" for i in range(len(self.uses))]
            return [*keys, "p0.v AS v"] if self.narrow else [*keys, "p0.v AS v", "p0.a AS a"]
        shown = [f"p{i}.v AS v{i}" for i in range(len(self.uses))]
        return shown[:1] if self.narrow else shown


@dataclass(frozen=True)
class Site:
    """A blueprint with everything the algorithms need of its view."""

    blueprint: Blueprint
    relations: tuple[RelationName, ...]
    compiled: Compiled
    positions: Positions
    algebra: BagViewAlgebra


@lru_cache(maxsize=4096)
def site(blueprint: Blueprint) -> Site:
    """Read the view's SQL and prepare it."""
    schemas = [
        RelationSchema(RelationName(name, ()), tuple(Column(c, "BIGINT", "") for c in COLUMNS))
        for name in blueprint.names
    ]
    definition = analyze(parse_view("v", blueprint.view), schemas)
    tree = join_tree(definition)
    keys = tuple(((0, i),) for i in range(len(blueprint.uses))) if blueprint.keyed else ()
    compiled = Compiled(definition, tree, keys)
    by_name = dict(zip(blueprint.names, blueprint.source_names, strict=True))
    named = Positions.of_view(definition, tree)
    relations = tuple(RelationName(by_name[n], (n,)) for n in blueprint.names)
    at = {RelationName(n, ()): r for n, r in zip(blueprint.names, relations, strict=True)}
    positions = Positions(tuple(at[r] for r in named.relations), named.neighbours)
    return Site(blueprint, relations, compiled, positions, BagViewAlgebra(compiled))


def drawn(random: Random, relations: int, *, keyed: bool, one_source: bool) -> Blueprint:
    """A blueprint with that many positions."""
    self_join = relations > 1 and random.random() < 0.15
    tables = relations - 1 if self_join else relations
    sources = tuple(
        0 if one_source else (i if random.random() < 0.8 else int(random.random() * tables))
        for i in range(tables)
    )
    uses = (*range(tables), int(random.random() * tables)) if self_join else tuple(range(tables))
    shape = SHAPES[int(random.random() * len(SHAPES))] if relations > 2 else SHAPES[0]
    condition = int(random.random() * len(CONDITIONS)) if random.random() < 0.4 else 0
    condition = 0 if relations == 1 else condition
    return Blueprint(sources, uses, shape, keyed, condition, random.random() < 0.5)
