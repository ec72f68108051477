"""A view's FROM as the algorithms of the papers see it: numbered positions at sources.

A position is one occurrence of a relation. Queries grow along a spanning tree of the join graph, so
that each lookup is of a position that can be joined with what is known; where a chain allows both
ways, to the left first (as in SWEEP, and in Example 2 of the Strobe paper).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from steadyview.changes import RelationName
from steadyview.views.definition import Definition
from steadyview.views.join_tree import JoinTree


@dataclass(frozen=True)
class Positions:
    """Relation and tree neighbours of each position."""

    relations: tuple[RelationName, ...]
    neighbours: tuple[tuple[int, ...], ...]

    @staticmethod
    def of_view(definition: Definition, tree: JoinTree) -> Positions:
        """The positions of a view and the spanning tree that its lookups follow."""
        near: list[set[int]] = [set() for _ in definition.occurrences]
        for edge in tree.edges:
            near[edge.u].add(edge.v)
        return Positions(
            tuple(o.relation.name for o in definition.occurrences),
            tuple(tuple(sorted(n)) for n in near),
        )

    @property
    def size(self) -> int:
        """How many there are: the n of the papers."""
        return len(self.relations)

    @cached_property
    def all(self) -> frozenset[int]:
        """Every position."""
        return frozenset(range(self.size))

    @cached_property
    def sources(self) -> frozenset[str]:
        """The sources that the view speaks of."""
        return frozenset(relation.source for relation in self.relations)

    @cached_property
    def _of(self) -> dict[RelationName, tuple[int, ...]]:
        found: dict[RelationName, tuple[int, ...]] = {}
        for position, relation in enumerate(self.relations):
            found[relation] = (*found.get(relation, ()), position)
        return found

    def of(self, relation: RelationName) -> tuple[int, ...]:
        """The positions of a relation: none if the view does not use it, several in a self-join."""
        return self._of.get(relation, ())

    def at(self, source: str) -> tuple[int, ...]:
        """The positions whose relations live at a source."""
        return tuple(p for p, relation in enumerate(self.relations) if relation.source == source)

    @cached_property
    def _next(self) -> dict[tuple[frozenset[int], frozenset[int]], int | None]:
        return {}

    def next(self, bound: frozenset[int], within: frozenset[int] | None = None) -> int | None:
        """The position to join next with `bound`, a connected set; None when all `within` are."""
        asked = (bound, self.all if within is None else within)
        if asked not in self._next:
            missing = asked[1] - bound
            reachable = [p for p in missing if not bound.isdisjoint(self.neighbours[p])]
            self._next[asked] = min(reachable, default=None)
        return self._next[asked]

    @cached_property
    def _outward(self) -> dict[int, tuple[int, ...]]:
        return {start: tuple(self._visited(start)) for start in self.all}

    def outward(self, start: int) -> tuple[int, ...]:
        """Every other position in the order in which a sweep from `start` visits it."""
        return self._outward[start]

    def _visited(self, start: int) -> Iterator[int]:
        bound = frozenset({start})
        while (position := self.next(bound)) is not None:
            bound |= {position}
            yield position

    def branches(self, start: int) -> list[frozenset[int]]:
        """The subtrees that hang on `start`, it included in each: left and right of a chain."""
        return [self._subtree(start, first) | {start} for first in self.neighbours[start]]

    def _subtree(self, away_from: int, first: int) -> frozenset[int]:
        found, waiting = {first}, [first]
        for u in waiting:
            waiting += [v for v in self.neighbours[u] if v != away_from and v not in found]
            found.update(waiting)
        return frozenset(found)
