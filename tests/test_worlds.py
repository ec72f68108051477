"""The generator makes every kind of world that the tests over it claim to cover."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from steadyview.algebra import Bag
from tests.recomputation import differences, recomputed
from tests.worlds import World, seeded_world

WORLDS = 300
KINDS = {
    "aggregate",
    "aggregate over everything",
    "average",
    "comma list",
    "common table",
    "cross join",
    "cycle",
    "duplicate",
    "key change",
    "local transaction over two relations",
    "non-equi residual",
    "null",
    "one relation",
    "self-join",
    "several sources",
    "subquery",
    "view changes",
}


def kinds(world: World) -> Iterator[str]:
    yield from _view_kinds(world)
    yield from _row_kinds(world)
    if differences(recomputed(world, world.view.sql)):
        yield "view changes"


def _view_kinds(world: World) -> Iterator[str]:
    view = world.view
    relations = [place.schema.name for place in view.places]
    pairs = [c for c in view.conditions if len(c.over) == 2]
    links = {c.over for c in pairs}
    facts = {
        "one relation": len(relations) == 1,
        "self-join": len(set(relations)) < len(relations),
        "several sources": len({name.source for name in relations}) > 1,
        "cross join": len(links) < len(relations) - 1,
        "cycle": len(links) > len(relations) - 1,
        "non-equi residual": any("<" in c.sql or ">" in c.sql for c in pairs),
        "comma list": len(relations) > 1 and "JOIN" not in view.sql,
        "subquery": any(place.style == "subquery" for place in view.places),
        "common table": any(place.style == "with" for place in view.places),
        "aggregate": bool(view.calls and view.keys),
        "aggregate over everything": bool(view.calls and not view.keys),
        "average": any(call.function == "AVG" for call in view.calls),
    }
    yield from (kind for kind, holds in facts.items() if holds)


def _row_kinds(world: World) -> Iterator[str]:
    if any(count > 1 for rows in world.initial.values() for _, count in rows):
        yield "duplicate"
    if any(None in row for rows in world.initial.values() for row, _ in rows):
        yield "null"
    for transaction in world.transactions:
        if len({change.relation for change in transaction.changes}) > 1:
            yield "local transaction over two relations"
        if {change.count for change in transaction.changes} == {1, -1}:
            yield "key change"


def test_every_kind_of_world_is_generated_often() -> None:
    seen = Counter(kind for seed in range(WORLDS) for kind in set(kinds(seeded_world(seed))))
    rare = {kind: seen[kind] for kind in KINDS if seen[kind] < WORLDS // 30}
    assert not rare
    assert seen["view changes"] > WORLDS // 2


def test_a_world_never_takes_away_a_row_that_is_not_there() -> None:
    for seed in range(WORLDS):
        world = seeded_world(seed)
        state = dict(world.initial)
        for change in (c for transaction in world.transactions for c in transaction.changes):
            state[change.relation] += Bag([(change.row, change.count)])
            assert all(count > 0 for _, count in state[change.relation])


def test_a_transaction_changes_relations_of_its_source_only() -> None:
    for seed in range(WORLDS):
        for transaction in seeded_world(seed).transactions:
            sources = {change.relation.source for change in transaction.changes}
            assert sources == {transaction.source}


def test_a_number_always_names_the_same_world() -> None:
    assert seeded_world(7) == seeded_world(7)
    assert len(seeded_world(7, (40, 40)).transactions) == 40
