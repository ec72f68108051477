"""C-Strobe and C-TStrobe remember changes only as long as a query may need them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from steadyview.maintenance.algorithms import kind_of
from steadyview.maintenance.c_strobe import Delta
from steadyview.simulation.seeds import simulated
from steadyview.simulation.worlds import Sizes

SIZES = Sizes(relations=3, transactions=12)


def watched(name: str, made: list[Delta]):
    """The algorithm, its objects in reach."""
    kind = kind_of(name)

    def make(*arguments):
        made.append(kind.make(*arguments))
        return made[-1]

    return replace(kind, make=make, survives=frozenset())


@pytest.mark.parametrize("name", ["c-strobe", "c-t-strobe", "c-t-strobe:3"])
@pytest.mark.parametrize("scenario", ["single", "source-local", "global"])
def test_nothing_is_remembered_when_nothing_waits(name, scenario):
    for seed in range(100):
        made: list[Delta] = []
        simulated(watched(name, made), scenario, seed, SIZES)
        (algorithm,) = made
        assert algorithm.UQS == {}
        assert algorithm.L == []


@pytest.mark.parametrize("name", ["c-strobe", "c-t-strobe"])
def test_the_list_begins_with_what_is_at_hand_while_queries_are_open(name, monkeypatch):
    lengths = []
    received = Delta.append

    def spied(self, update):
        size = received(self, update)
        lengths.append((len(self.L), bool(self.UQS), size))
        return size

    monkeypatch.setattr(Delta, "append", spied)
    for seed in range(100):
        simulated(watched(name, []), "single", seed, SIZES)
    assert any(is_open and length > 1 for length, is_open, _ in lengths)
    assert all(length == size for length, is_open, size in lengths if not is_open)
