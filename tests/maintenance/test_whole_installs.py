"""A whole install leaves the view over exactly the updates 1..upto: what a live run publishes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from steadyview.algebra import Bag, Row
from steadyview.changes import RelationName
from steadyview.maintenance.algorithms import BATCHED, KINDS, LOCAL, Kind
from steadyview.maintenance.events import Algorithm, Install, Update
from steadyview.maintenance.positions import Positions
from steadyview.simulation.seeds import simulated
from steadyview.simulation.worlds import Sizes

EXACT = [k for k in KINDS.values() if k.promises[LOCAL] != "none" and k.name != BATCHED]
SIZES = Sizes(relations=3, rows=2, transactions=6, changes=3)


class Spy(Algorithm[Any]):
    """Passes everything on; keeps the view's states at whole installs, and the updates."""

    def __init__(self, inner: Algorithm[Any], seen: list[Spy], algebra: Any, view: Any) -> None:
        self._inner, self.algebra, self.view = inner, algebra, view
        self.updates: list[Update[Any]] = []
        self.whole: list[tuple[int, Bag[Row]]] = []
        seen.append(self)

    def received(self, update: Update[Any]) -> Sequence[Any]:
        self.updates.append(update)
        return self._seen(self._inner.received(update))

    def answered(self, query: int, answer: Sequence[Any]) -> Sequence[Any]:
        return self._seen(self._inner.answered(query, answer))

    def ticked(self) -> Sequence[Any]:
        return self._seen(self._inner.ticked())

    def _seen(self, actions: Sequence[Any]) -> Sequence[Any]:
        for action in actions:
            if isinstance(action, Install):
                self.view += action.change
                if action.whole:
                    self.whole.append((action.upto, self.view))
        return actions


def spied(kind: Kind, seen: list[Spy]) -> Kind:
    def make(positions: Positions, algebra: Any, mv: Any, keyed: bool) -> Algorithm[Any]:
        assert kind.make is not None
        return Spy(kind.make(positions, algebra, mv, keyed), seen, algebra, mv)

    # a restart would begin in the middle
    return replace(kind, make=make, survives=frozenset())


def view_after(spy: Spy, rows: dict[RelationName, Bag[Row]], positions: Positions) -> Bag[Row]:
    joined = spy.algebra.seed(0, rows[positions.relations[0]])
    for position in positions.outward(0):
        joined = spy.algebra.join(joined, position, rows[positions.relations[position]])
    return spy.algebra.project(joined)


@pytest.mark.parametrize("kind", EXACT, ids=lambda kind: kind.name)
def test_whole_installs_are_prefixes_and_never_go_back(kind: Kind) -> None:
    whole = 0
    for seed in range(150):
        seen: list[Spy] = []
        run = simulated(spied(kind, seen), LOCAL, seed, SIZES)
        (spy,) = seen
        site = run.world.site
        rows = dict(zip(site.relations, run.world.rows, strict=True))
        states = [view_after(spy, rows, site.positions)]
        for update in spy.updates:
            for change in update.changes:
                rows[change.relation] += change.rows if change.inserted else -change.rows
            states.append(view_after(spy, rows, site.positions))
        for upto, view in spy.whole:
            assert view == states[upto], f"seed {seed}, upto {upto}"
        uptos = [upto for upto, _ in spy.whole]
        assert uptos == sorted(uptos)
        whole += len(uptos)
    assert whole > 150
