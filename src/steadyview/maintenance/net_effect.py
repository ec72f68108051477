"""What the changes of a transaction amount to: per relation and row, insertions minus deletions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from steadyview.changes import RelationName
from steadyview.maintenance.events import Change
from steadyview.maintenance.positions import Positions
from steadyview.maintenance.view_algebra import ViewAlgebra

H = TypeVar("H")


def net_rows(
    changes: Iterable[Change[H]], positions: Positions, algebra: ViewAlgebra[H]
) -> dict[RelationName, H]:
    """Signed rows per relation of the view; a relation whose changes cancel out may stay."""
    found: dict[RelationName, list[H]] = {}
    for change in changes:
        if positions.of(change.relation):
            rows = change.rows if change.inserted else algebra.negate(change.rows)
            found.setdefault(change.relation, []).append(rows)
    return {name: rows[0] if len(rows) == 1 else algebra.add(rows) for name, rows in found.items()}


def net_changes(
    changes: Iterable[Change[H]], positions: Positions, algebra: ViewAlgebra[H]
) -> tuple[list[Change[H]], list[Change[H]]]:
    """The deletions and the insertions that are left of a transaction, one of each per relation."""
    deletions, insertions = [], []
    for relation, rows in net_rows(changes, positions, algebra).items():
        gone, come = algebra.minus(rows), algebra.plus(rows)
        if not algebra.is_empty(gone):
            deletions.append(Change(relation, gone, inserted=False))
        if not algebra.is_empty(come):
            insertions.append(Change(relation, come, inserted=True))
    return deletions, insertions


def at_positions(rows: dict[RelationName, H], positions: Positions) -> dict[int, H]:
    """The same by position, ascending: a relation of a self-join is there several times."""
    return {p: rows[r] for p, r in enumerate(positions.relations) if r in rows}
