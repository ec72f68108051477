"""From a failing run to a small one that fails too, greedily: what can go, goes.

An *episode* is everything that a run of one kind depends on: a world and an explicit schedule. Left
out are positions of the view, transactions, single changes, initial rows, conditions, groups,
delays, then events of the schedule; insertions become initial rows, and values 1, where they can. A
world from which something was taken is mended: deletions of rows that are not there, and insertions
of keys that are taken, go as well.
Promise: the result fails, and no single one of these steps leads to a smaller one that does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from steadyview.algebra import Bag, Row
from steadyview.maintenance.algorithms import Kind
from steadyview.simulation.running import Run
from steadyview.simulation.schedules import Script
from steadyview.simulation.seeds import CRASHES, Simulated
from steadyview.simulation.sources import CRASH, Choice
from steadyview.simulation.worlds import RowChange, World, WorldTransaction

Fails = Callable[[Simulated], bool]


@dataclass(frozen=True)
class Episode:
    """A world and a script for it."""

    world: World
    choices: tuple[Choice, ...]


def replayed(kind: Kind, episode: Episode, *, verbose: bool = False) -> Simulated:
    """The run of an episode."""
    crashes = CRASHES if any(choice.what == CRASH for choice in episode.choices) else 0
    script = Script(episode.choices)
    run = Run(episode.world, kind, script, crashes=crashes, verbose=verbose)
    return Simulated(episode.world, run.finish())


def shrunk(kind: Kind, episode: Episode, fails: Fails) -> Episode:
    """The smallest failing episode that is found; the one given if it does not fail itself."""
    while (smaller := _once_through(kind, episode, fails)) is not None:
        episode = smaller
    return _renamed(episode)


def _once_through(kind: Kind, episode: Episode, fails: Fails) -> Episode | None:
    """Every way to make it smaller, each as often as it helps; None if none did."""
    found = None
    for ways in _WAYS:
        progress = True
        while progress:
            progress = False
            for smaller in ways(found or episode):
                if fails(replayed(kind, smaller)):
                    found, progress = smaller, True
                    break
    return found


def _without_position(episode: Episode) -> Iterator[Episode]:
    world = episode.world
    uses = world.blueprint.uses
    for i in reversed(range(len(uses))):
        if len(uses) > 1:
            yield replace(episode, world=_using(world, uses[:i] + uses[i + 1 :]))


def _using(world: World, uses: Sequence[int]) -> World:
    """The view over these positions, and only the relations that it uses."""
    kept = sorted(set(uses))
    number = {relation: n for n, relation in enumerate(kept)}
    blueprint = replace(
        world.blueprint,
        uses=tuple(number[relation] for relation in uses),
        sources=tuple(world.blueprint.sources[relation] for relation in kept),
        pairs=frozenset(number[r] for r in world.blueprint.pairs if r in number),
    )
    changes = [
        [c._replace(relation=number[c.relation]) for c in t.changes if c.relation in number]
        for t in world.transactions
    ]
    return World(blueprint, tuple(world.rows[r] for r in kept), _made(world.transactions, changes))


def _without_transaction(episode: Episode) -> Iterator[Episode]:
    world = episode.world
    for i in reversed(range(len(world.transactions))):
        rest = world.transactions[:i] + world.transactions[i + 1 :]
        yield replace(episode, world=_mended(replace(world, transactions=rest)))


def _without_change(episode: Episode) -> Iterator[Episode]:
    world = episode.world
    for t, transaction in enumerate(world.transactions):
        for c in range(len(transaction.changes)):
            changes = [list(other.changes) for other in world.transactions]
            del changes[t][c]
            rest = _made(world.transactions, changes)
            yield replace(episode, world=_mended(replace(world, transactions=rest)))


def _initially(episode: Episode) -> Iterator[Episode]:
    """A row that is inserted is there from the beginning instead."""
    world = episode.world
    for t, transaction in enumerate(world.transactions):
        for c, change in enumerate(transaction.changes):
            if change.sign > 0 and _may_begin_with(world, change):
                changes = [list(other.changes) for other in world.transactions]
                del changes[t][c]
                rows = list(world.rows)
                rows[change.relation] += Bag([(change.row, 1)])
                rest = _made(world.transactions, changes)
                made = replace(world, rows=tuple(rows), transactions=rest)
                yield replace(episode, world=_mended(made))


def _may_begin_with(world: World, change: RowChange) -> bool:
    width = world.blueprint.key_width(change.relation)
    return not width or change.row[:width] not in {
        row[:width] for row, _ in world.rows[change.relation]
    }


def _without_row(episode: Episode) -> Iterator[Episode]:
    world = episode.world
    for relation, rows in enumerate(world.rows):
        for row, _ in rows:
            fewer = list(world.rows)
            fewer[relation] = rows - Bag([(row, 1)])
            yield replace(episode, world=_mended(replace(world, rows=tuple(fewer))))


def _plainer_view(episode: Episode) -> Iterator[Episode]:
    blueprint = episode.world.blueprint
    for plainer in (
        replace(blueprint, condition=0),
        replace(blueprint, shape="chain"),
        replace(blueprint, narrow=True),
        replace(blueprint, groups=""),
    ):
        if plainer != blueprint:
            yield replace(episode, world=replace(episode.world, blueprint=plainer))
    for relation in sorted(blueprint.pairs):
        # one column less is a key only if it is one from the beginning on
        if max(Counter(row[0] for row, _ in episode.world.rows[relation]).values(), default=0) < 2:
            plainer = replace(blueprint, pairs=blueprint.pairs - {relation})
            yield replace(episode, world=_mended(replace(episode.world, blueprint=plainer)))


def _sooner_seen(episode: Episode) -> Iterator[Episode]:
    """A transaction is shown by every state that is frozen after it."""
    world = episode.world
    for i, t in enumerate(world.transactions):
        if t.late:
            before, after = world.transactions[:i], world.transactions[i + 1 :]
            sooner = (*before, replace(t, late=t.late - 1), *after)
            yield replace(episode, world=replace(world, transactions=sooner))


def _shorter_script(episode: Episode) -> Iterator[Episode]:
    """Without everything, a half, a quarter, ..., a single event; from behind."""
    choices = episode.choices
    size = len(choices)
    while size:
        for end in range(len(choices), 0, -size):
            yield replace(episode, choices=choices[: max(0, end - size)] + choices[end:])
        size //= 2


def _lower_value(episode: Episode) -> Iterator[Episode]:
    """A 1 in place of another value: everywhere, or in one row wherever that row occurs."""
    world = episode.world
    rows, width = _rows(world), world.blueprint.key_width
    for value in dict.fromkeys(v for r, row in rows for v in row[width(r) :] if v != 1):
        lower = {
            (r, row): (*row[: width(r)], *(1 if v == value else v for v in row[width(r) :]))
            for r, row in rows
        }
        yield replace(episode, world=_mended(_with_rows(world, lower)))
    for relation, row in rows:
        for column in range(width(relation), len(row)):
            if row[column] != 1:
                other = (*row[:column], 1, *row[column + 1 :])
                yield replace(episode, world=_mended(_with_rows(world, {(relation, row): other})))


def _rows(world: World) -> list[tuple[int, Row]]:
    initial = [(relation, row) for relation, rows in enumerate(world.rows) for row, _ in rows]
    changed = [(c.relation, c.row) for t in world.transactions for c in t.changes]
    return list(dict.fromkeys([*initial, *changed]))


def _with_rows(world: World, others: Mapping[tuple[int, Row], Row]) -> World:
    """Rows replaced wherever they occur; the others stay."""
    rows = [
        Bag((others.get((relation, row), row), count) for row, count in bag)
        for relation, bag in enumerate(world.rows)
    ]
    changes = [
        [c._replace(row=others.get((c.relation, c.row), c.row)) for c in t.changes]
        for t in world.transactions
    ]
    transactions = _made(world.transactions, changes)
    return replace(world, rows=tuple(rows), transactions=transactions)


_WAYS = (
    _without_position,
    _without_transaction,
    _without_change,
    _initially,
    _without_row,
    _plainer_view,
    _sooner_seen,
    _shorter_script,
    _lower_value,
)


def _made(
    transactions: Sequence[WorldTransaction], changes: Sequence[Sequence[RowChange]]
) -> tuple[WorldTransaction, ...]:
    """The same transactions with other changes; those without any are gone."""
    both = zip(transactions, changes, strict=True)
    return tuple(replace(t, changes=tuple(made)) for t, made in both if made)


def _mended(world: World) -> World:
    """Without what cannot be executed any more."""
    there = [Counter(dict(rows)) for rows in world.rows]
    return replace(
        world,
        transactions=_made(
            world.transactions,
            [
                [change for change in t.changes if _executed(world, there[change.relation], change)]
                for t in world.transactions
            ],
        ),
    )


def _executed(world: World, there: Counter[Row], change: RowChange) -> bool:
    """Execute the change if it is possible."""
    row = change.row
    if change.sign < 0:
        possible = there[row] > 0
    else:
        width = world.blueprint.key_width(change.relation)
        taken = {other[:width] for other, count in there.items() if count > 0}
        possible = not width or row[:width] not in taken
    if possible:
        there[row] += change.sign
    return possible


def _renamed(episode: Episode) -> Episode:
    """Transactions and sources numbered from 1 again."""
    world = episode.world
    sources = world.blueprint.sources
    number = {source: n for n, source in enumerate(dict.fromkeys(sources))}
    blueprint = replace(world.blueprint, sources=tuple(number[source] for source in sources))
    transactions = tuple(
        replace(t, id=f"t{i + 1}") for i, t in enumerate(world.transactions)
    )
    names = {f"s{old + 1}": f"s{new + 1}" for old, new in number.items()}
    choices = tuple(
        choice._replace(source=names.get(choice.source, ""))
        for choice in episode.choices
        if not choice.source or choice.source in names
    )
    renamed = replace(world, blueprint=blueprint, transactions=transactions)
    return Episode(renamed, choices)
