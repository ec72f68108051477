"""The five properties hold of the tag, each can be broken; the stored vector lacks the fifth."""

from __future__ import annotations

from random import Random

import pytest

from steadyview.maintenance.records.additive_views import ADDITIVE_VIEWS
from steadyview.maintenance.records.properties import (
    SIGNATURE_PROPERTIES,
    TaggedOperation,
    broken_properties,
    tag_of,
)
from steadyview.maintenance.records.signatures import generated
from steadyview.simulation.records.base_tables import BaseTables
from steadyview.simulation.records.worlds import record_world

VIEWS = [ADDITIVE_VIEWS["SUM"], ADDITIVE_VIEWS["COUNT"]]


def operations(seed: int, tag) -> list[TaggedOperation]:
    """What two attempts at every entry of a log do to two views."""
    world = record_world(Random(seed), "groups")
    base = BaseTables(world)
    while not base.is_over:
        base.change()
    return [
        TaggedOperation((e.relation, e.key), e.number, v.name, record, tag(v.name, record, e, n))
        for n in (1, 2)
        for e in base.log
        for v in VIEWS
        for record in v.additions(e)
    ]


def honest(view, record, entry, attempt):
    return tag_of(view, record, entry)


CULPRITS = {
    1: lambda v, r, e, n: tag_of(v, r, e)._replace(number=0),
    2: lambda v, r, e, n: tag_of("", r, e),
    3: lambda v, r, e, n: tag_of(v, "", e),
    4: lambda v, r, e, n: tag_of(v, r, e)._replace(number=-e.number),
    5: lambda v, r, e, n: tag_of(v, r, e)._replace(number=e.number + n / 10),
}


def test_the_tag_of_an_operation_has_all_five() -> None:
    assert all(not broken_properties(operations(seed, honest)) for seed in range(50))


@pytest.mark.parametrize("number", SIGNATURE_PROPERTIES)
def test_each_property_can_be_broken(number: int) -> None:
    found = [broken_properties(operations(seed, CULPRITS[number])) for seed in range(20)]
    assert any(number in broken for broken in found)


def test_of_the_stored_vector_the_fifth_is_false() -> None:
    """Redriven, the same operation meets what others wrote in between."""
    base = BaseTables(record_world(Random(3), "groups"))
    first, second = base.change(), base.change()
    assert generated({}, first) != generated(generated({}, second), first)
