"""A run as a history that `checking` can judge."""

from __future__ import annotations

from steadyview.algebra import Bag
from steadyview.checking import History, Relation, Transaction
from steadyview.simulation.blueprints import COLUMNS
from steadyview.simulation.running import Trace
from steadyview.simulation.worlds import World


def history(world: World, trace: Trace) -> History:
    """What the sources did in their serial schedule, and what the view showed."""
    names = world.blueprint.names
    sources = world.blueprint.source_names
    relations = {
        name: Relation(source, COLUMNS, rows)
        for name, source, rows in zip(names, sources, world.rows, strict=True)
    }
    transactions = []
    for transaction in world.transactions:
        changes: dict[str, list[tuple[tuple[object, ...], int]]] = {}
        for change in transaction.changes:
            changes.setdefault(names[change.relation], []).append((change.row, change.sign))
        made = {name: Bag(rows) for name, rows in changes.items()}
        transactions.append(Transaction(transaction.id, made))
    return History(world.blueprint.view, relations, transactions, trace.states)
