"""Drives the batched sweep through a world, batch by batch, on in-memory bags.

A *showing* is one batch and what the sources showed to it: the set P of transactions that the
answers reflect (any set), and the luck of the draw: which rows come unasked, in which order answers
arrive, how much of the log that cannot matter is handed over.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from hypothesis import strategies as st

from steadyview.algebra import FOREVER, Bag, Row, Summary
from steadyview.changes import RelationName
from steadyview.maintenance import BatchedSweep, EdgeLookup, Record
from steadyview.maintenance.bag_algebra import Answer, BagAlgebra, Batch, Handle, Keys, LogRow
from steadyview.maintenance.bag_view import projected, summarized
from steadyview.views.definition import Definition
from steadyview.views.join_tree import join_tree
from tests.recomputation import differences, recomputed
from tests.world_views import Choices
from tests.worlds import Drawn, World, chosen_world


@dataclass(frozen=True)
class Showing:
    """One batch, the cns its answers reflect, and the seed of everything left to chance."""

    batch: Batch
    reflected: frozenset[int]
    luck: int = 0


@dataclass(frozen=True)
class Sweeper:
    """The parts under test; a mutant replaces one of them."""

    algebra: type[BagAlgebra] = BagAlgebra
    sweep: type[BatchedSweep[Handle]] = BatchedSweep


@dataclass(frozen=True)
class Swept:
    """What one sweep did: the change it recorded, and every lookup it sent, in order."""

    change: Handle
    asks: tuple[EdgeLookup[Handle], ...]


SOUND = Sweeper()


def chosen_showings(choices: Choices, length: int) -> list[Showing]:
    """The transactions 1..length cut into batches, each with an arbitrary reflected set."""
    cuts = {choices.number(1, length) for _ in range(choices.number(0, 2))}
    ends = sorted({*cuts, length})
    return [
        Showing(Batch(after, upto), _subset(choices, length), choices.number(0, 999))
        for after, upto in zip([0, *ends], ends, strict=False)
    ]


def _subset(choices: Choices, length: int) -> frozenset[int]:
    mask = choices.number(0, 2**length - 1)
    return frozenset(k for k in range(1, length + 1) if mask >> k - 1 & 1)


Generated: TypeAlias = tuple[World, list[Showing]]
"""A world and what its sources show to every batch."""


def chosen_case(choices: Choices) -> Generated:
    """A world, and its transactions' batches, by the given choices."""
    world = chosen_world(choices)
    return world, chosen_showings(choices, len(world.transactions))


@st.composite
def cases(draw: Any) -> Generated:
    """Cases that Hypothesis draws and shrinks."""
    return chosen_case(Drawn(draw))


def sweep(definition: Definition, world: World, showing: Showing, sweeper: Sweeper) -> Swept:
    """One sweep over one batch, answered until it records."""
    luck = random.Random(showing.luck)
    algebra = sweeper.algebra(showing.batch, _log(world, showing, luck))
    changed = changed_occurrences(definition, world, showing.batch)
    machine = sweeper.sweep(definition, join_tree(definition), algebra, changed)
    states = reflected_states(world, showing.reflected)
    waiting, asks = list(machine.begin()), []
    while not isinstance(action := waiting.pop(luck.randrange(len(waiting))), Record):
        asks.append(action)
        answer = _answer(action, states[action.occurrence.relation.name], luck)
        waiting += machine.answered(action.edge, answer)
    assert not waiting, "the sweep went on after it had recorded"
    return Swept(action.change, tuple(asks))


def reflected_states(world: World, reflected: frozenset[int]) -> Mapping[RelationName, Bag[Row]]:
    """S = initial + the changes of the reflected transactions, and of no other."""
    states = dict(world.initial)
    for cn, transaction in enumerate(world.transactions, 1):
        for change in transaction.changes if cn in reflected else ():
            states[change.relation] += Bag([(change.row, change.count)])
    return states


def _log(
    world: World, showing: Showing, luck: random.Random
) -> Mapping[RelationName, Sequence[LogRow]]:
    """The log as the warehouse has it: later transactions are captured, but not admitted yet."""
    batch, whole = showing.batch, luck.random() < 0.5
    log: dict[RelationName, list[LogRow]] = {}
    for cn, transaction in enumerate(world.transactions, 1):
        shown = cn in showing.reflected
        if whole or (cn > batch.after if shown else cn <= batch.upto):
            for c in transaction.changes:
                at = cn if cn <= batch.upto else FOREVER
                log.setdefault(c.relation, []).append(LogRow(c.row, c.count, at, shown))
    return log


def changed_occurrences(definition: Definition, world: World, batch: Batch) -> frozenset[int]:
    """The occurrences of relations that some transaction of the batch changes."""
    inside = world.transactions[batch.after : batch.upto]
    relations = {change.relation for transaction in inside for change in transaction.changes}
    return frozenset(o.number for o in definition.occurrences if o.relation.name in relations)


def _answer(ask: EdgeLookup[Handle], state: Bag[Row], luck: random.Random) -> Answer:
    """Every row asked for, and by chance some that were not."""
    if ask.keys is None:
        return Answer(state)
    assert isinstance(ask.keys, Keys)
    assert ask.edge.key is not None
    assert None not in ask.keys.values
    column, values = ask.edge.key.to_column, ask.keys.values
    return Answer(state.where(lambda row: row[column] in values or luck.random() < 0.2))


def swept_changes(
    definition: Definition, world: World, showings: Sequence[Showing], sweeper: Sweeper = SOUND
) -> dict[int, Any]:
    """The view's change per cn, over all batches: a bag, or a summary per group."""
    changes: dict[int, Any] = {}
    for showing in showings:
        change = sweep(definition, world, showing, sweeper).change
        tagged = _per_cn(definition, change)
        assert all(cn in showing.batch for cn in tagged), "a change is tagged outside its batch"
        changes |= tagged
    return changes


def _per_cn(definition: Definition, change: Handle) -> Mapping[int, Any]:
    if definition.grouping is None:
        return projected(definition, change)
    return summarized(definition.grouping, change)


def true_changes(world: World) -> dict[int, Any]:
    """The same, by recomputation of the view at every cn."""
    if world.view.state is None:
        return dict(differences(recomputed(world, world.view.sql)))
    width = len(world.view.keys)
    states = [summaries(state, width) for state in recomputed(world, world.view.state)]
    return dict(_summary_differences(states))


def summaries(state: Bag[Row], width: int) -> Mapping[Row, Summary]:
    """The rows of a view's `state` query, as a state whose groups have `width` keys."""
    return {row[:width]: _summary(row[width:]) for row, _ in state}


def _summary(columns: Row) -> Summary:
    count, *pairs = columns
    return Summary(count, tuple(pairs[0::2]), tuple(total or 0 for total in pairs[1::2]))


def _summary_differences(
    states: Sequence[Mapping[Row, Summary]],
) -> Iterator[tuple[int, Mapping[Row, Summary]]]:
    for cn, (before, after) in enumerate(zip(states, states[1:], strict=False), 1):
        groups = {group: _minus(after.get(group), before.get(group)) for group in {*before, *after}}
        change = {group: s for group, s in groups.items() if not s.is_nothing}
        if change:
            yield cn, change


def _minus(after: Summary | None, before: Summary | None) -> Summary:
    if before is None:
        assert after is not None
        return after
    negated = Summary(
        -before.count, tuple(-n for n in before.nonnull), tuple(-s for s in before.sums)
    )
    return negated if after is None else after + negated
