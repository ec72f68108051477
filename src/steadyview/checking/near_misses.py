"""States that a view would show if a source's transactions were seen out of order, or in part.

Not what any level allows, but what a broken algorithm does: used to explain a state that is the
view over no vector. Looked for among the vectors near one that is known, up to a limit: finding no
explanation proves nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, islice, product
from typing import Any, Final, TypeAlias

from steadyview.algebra import Bag, Row
from steadyview.checking.case import Case
from steadyview.checking.commit_order import Vector
from steadyview.checking.visible import State

_MOST_VECTORS: Final = 200
_MOST_MISSES: Final = 1_000
_MOST_PARTS: Final = 32
_MOST_SKIPPED: Final = 10
"""How far back the transaction may lie that was left out."""


Change: TypeAlias = tuple[str, Row, int]
"""A relation, a row, and how many times more it is there."""


@dataclass(frozen=True)
class NearMiss:
    """What would be seen at the vector but for one transaction; `kind` as in `breaks`."""

    kind: str
    vector: Vector
    facts: Mapping[str, Any]
    state: State


def near_misses(case: Case, near: Vector) -> Iterator[NearMiss]:
    """The near misses around a vector: first transactions that were skipped, then parts."""
    vectors = list(vectors_near(case, near))
    for ways in (_skipping, _in_part):
        yield from islice((miss for v in vectors for miss in ways(case, v)), _MOST_MISSES)


def nearest(case: Case, near: Vector, state: State) -> Vector:
    """The vector around this one at which the view differs from the state in fewest rows."""

    def distance(vector: Vector) -> int:
        shown = case.views.at(vector)
        rows = {*shown, *state}
        return sum(abs(shown.get(row, 0) - state.get(row, 0)) for row in rows)

    return min(vectors_near(case, near), key=distance)


def vectors_near(case: Case, near: Vector) -> Iterator[Vector]:
    """Vectors around this one, nearest first, no more than a limited number."""
    width = max(2, int(_MOST_VECTORS ** (1 / len(near))))
    ranges = [
        sorted((abs(k - middle), k) for k in range(len(commits) + 1))[:width]
        for commits, middle in zip(case.order.commits, near, strict=True)
    ]
    vectors = product(*([k for _, k in places] for places in ranges))
    return islice(vectors, _MOST_VECTORS)


def _skipping(case: Case, vector: Vector) -> Iterator[NearMiss]:
    """One transaction left out that is not the last one seen of its source."""
    for source, seen in enumerate(vector):
        for place in range(seen - 2, max(-1, seen - 2 - _MOST_SKIPPED), -1):
            without = case.order.commits[source][place]
            state = _shown(case, vector, source, without, ())
            if state is not None:
                facts = {
                    "source": case.sources[source],
                    "shows": case.transaction(source, seen - 1),
                    "lacks": case.transaction(source, place),
                }
                yield NearMiss("skipped", vector, facts, state)


def _in_part(case: Case, vector: Vector) -> Iterator[NearMiss]:
    """The last transaction seen of a source with some of its changed rows only."""
    for source, seen in enumerate(vector):
        if not seen:
            continue
        number = case.order.commits[source][seen - 1]
        changes = _changes_at(case, number, source)
        for part in islice(_proper_parts(changes), _MOST_PARTS):
            state = _shown(case, vector, source, number, part)
            if state is not None:
                lacking = [change for change in changes if change not in part]
                facts = {
                    "source": case.sources[source],
                    "transaction": case.transaction(source, seen - 1),
                    "lacks": [{"relation": n, "row": list(r), "count": c} for n, r, c in lacking],
                }
                yield NearMiss("part", vector, facts, state)


def _proper_parts(changes: Sequence[Change]) -> Iterator[Sequence[Change]]:
    for size in range(1, len(changes)):
        yield from combinations(changes, size)


def _changes_at(case: Case, number: int, source: int) -> list[Change]:
    changes = case.history.transactions[number].changes
    return [
        (name, row, count)
        for name, bag in changes.items()
        if case.source_of[name] == source
        for row, count in bag
    ]


def _shown(
    case: Case, vector: Vector, source: int, without: int, instead: Sequence[Change]
) -> State | None:
    """The view at the vector with one transaction of a source replaced; None if it is absurd."""
    views, kept = case.views, []
    for place, version in zip(views.places, views.versions(vector), strict=True):
        rows = place.rows(version)
        name = place.place.relation
        if case.source_of[name] == source:
            gone = case.history.transactions[without].changes.get(name, Bag())
            come = Bag((row, count) for changed, row, count in instead if changed == name)
            rows = dict(Bag((*rows.items(), *place.place.kept(come - gone).items())))
        if any(count < 0 for count in rows.values()):
            return None
        kept.append(rows)
    return views.view.visible(views.view.joined(kept))
