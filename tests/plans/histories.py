"""Random histories of three small relations, and what sources tell of them.

Values are few, so that joins hit, keys change into one another and duplicates are common.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Row = tuple[Any, ...]
VALUES = (0, 1, 2, None)
WIDTH = 2


@dataclass(frozen=True)
class Change:
    """`count` copies of the row come (or go) in transaction `cn`."""

    row: Row
    count: int
    cn: int


@dataclass
class History:
    """Per relation its changes in order; rows of before cn 1 are changes at cn 0."""

    changes: dict[int, list[Change]] = field(default_factory=dict)
    last: int = 0

    def at(self, relation: int, cn: int) -> Counter[Row]:
        found: Counter[Row] = Counter()
        for change in self.changes[relation]:
            if change.cn <= cn:
                found[change.row] += change.count
        return +found

    def shown(self, relation: int, reflected: Mapping[int, bool]) -> Counter[Row]:
        """What a source shows that reflects some of the transactions."""
        found: Counter[Row] = Counter()
        for change in self.changes[relation]:
            if change.cn == 0 or reflected[change.cn]:
                found[change.row] += change.count
        return found


def history(dice: random.Random, rows: int = 3, transactions: int = 8) -> History:
    """One to three relations of few or very few values, up to so many rows and transactions."""
    relations = dice.choice((1, 2, 3, 3))
    values = dice.choice((VALUES, VALUES, VALUES[:2], VALUES[2:]))
    made = History({r: [] for r in range(relations)})
    for r in range(relations):
        made.changes[r] = [
            Change(_row(dice, values), 1, 0) for _ in range(dice.randrange(rows + 1))
        ]
    made.last = dice.randint(1, transactions)
    for cn in range(1, made.last + 1):
        for r in dice.sample(range(relations), min(relations, dice.choice((1, 1, 1, 2, 3)))):
            for _ in range(dice.choice((1, 1, 2))):
                made.changes[r] += _changes(dice, values, made.at(r, cn), cn)
    return made


def crowded(dice: random.Random) -> History:
    """Groups (c0) of many values (c1): what came last goes, or the least, or the greatest."""
    made = History({r: [] for r in range(3)})
    for r in made.changes:
        rows = [_member(dice) for _ in range(dice.randrange(14))]
        made.changes[r] = [Change(row, 1, 0) for row in rows]
    made.last = dice.choice((5, 10, 20))
    for cn in range(1, made.last + 1):
        for r in dice.choice(((0,), (0,), (0,), (0, 1), (1, 2))):
            for _ in range(dice.choice((1, 1, 1, 2, 4))):
                last = made.changes[r][-1] if made.changes[r] else None
                if last and last.count == 1 and dice.random() < 0.4:
                    made.changes[r].append(Change(last.row, -1, cn))
                else:
                    made.changes[r].append(_at_an_end(dice, made.at(r, cn), cn))
    return made


def _at_an_end(dice: random.Random, there: Counter[Row], cn: int) -> Change:
    """A row comes, or one goes: of a group's least or greatest, as a rule."""
    rows = sorted(there, key=lambda row: (row[1] is None, row[1] or 0))
    if not rows or dice.random() < 0.4:
        return Change(_member(dice), 1, cn)
    group = dice.choice(rows)[0]
    mine = [row for row in rows if row[0] == group]
    gone = dice.choice((mine[0], mine[0], mine[-1], dice.choice(mine)))
    return Change(gone, -dice.choice((1, there[gone], there[gone])), cn)


def _member(dice: random.Random) -> Row:
    """Often beyond all that are there."""
    value = dice.choice((*range(9), None, -dice.randrange(9), 9 + dice.randrange(9)))
    return dice.choice((0, 0, 1, None)), value


def _changes(
    dice: random.Random, values: Sequence[Any], there: Counter[Row], cn: int
) -> list[Change]:
    rows = sorted(there.elements(), key=str)
    kind = dice.choice(("insert", "insert", "delete", "update"))
    if kind == "insert" or not rows:
        return [Change(_row(dice, values), 1, cn)]
    old = dice.choice(rows)
    if kind == "delete":
        return [Change(old, -1, cn)]
    place = dice.randrange(WIDTH)
    new = tuple(dice.choice(values) if i == place else v for i, v in enumerate(old))
    return [Change(old, -1, cn), Change(new, 1, cn)]


def _row(dice: random.Random, values: Sequence[Any]) -> Row:
    return tuple(dice.choice(values) for _ in range(WIDTH))
