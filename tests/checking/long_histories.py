"""Histories as a live warehouse records them: many transactions, states as they were taken in."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from steadyview.algebra import Bag
from steadyview.checking import History, Relation, Transaction

JOINED = "r0 JOIN r1 ON r0.b = r1.a JOIN r2 ON r1.b = r2.a"
ROWS_VIEW = f"SELECT r0.k AS k0, r1.k AS k1, r2.k AS k2, r2.b AS v FROM {JOINED}"
GROUPS_VIEW = f"SELECT r0.b AS g, COUNT(*) AS n, SUM(r2.b) AS s FROM {JOINED} GROUP BY r0.b"
_DOMAIN = 25


class LongHistory:
    """Three relations at three sources, joined; `taken` is the order that made the states.

    The history lists the transactions in another order that agrees with every source.
    """

    def __init__(self, seed: int, *, view: str, transactions: int, rows: int = 50) -> None:
        self._choose = random.Random(seed)
        self._keys = iter(range(10**9))
        self.view = view
        self.initial = {f"r{i}": [self._row() for _ in range(rows)] for i in range(3)}
        held = {name: list(of) for name, of in self.initial.items()}
        names = [self._choose.choice(list(held)) for _ in range(transactions)]
        self.taken = [(name, self._changes(held[name])) for name in names]
        self.states = list(self._shown())

    def _row(self) -> tuple[int, ...]:
        return (next(self._keys), *(self._choose.randint(1, _DOMAIN) for _ in range(2)))

    def _changes(self, held: list[Any]) -> list[tuple[Any, int]]:
        old = held.pop(self._choose.randrange(len(held)))
        new = (old[0], *self._row()[1:]) if self._choose.random() < 0.5 else self._row()
        held.append(new)
        return [(old, -1), (new, 1)]

    def _shown(self) -> Any:
        """The view after each transaction, by plain loops over an index."""
        held = {name: list(rows) for name, rows in self.initial.items()}
        yield self._joined(held)
        for name, changes in self.taken:
            for row, count in changes:
                held[name].append(row) if count > 0 else held[name].remove(row)
            yield self._joined(held)

    def _joined(self, held: dict[str, list[Any]]) -> Bag[Any]:
        by_a: dict[int, list[Any]] = {}
        for z in held["r2"]:
            by_a.setdefault(z[1], []).append(z)
        rows = [
            (x, y, z)
            for y in held["r1"]
            for x in held["r0"]
            if x[2] == y[1]
            for z in by_a.get(y[2], ())
        ]
        if self.view == ROWS_VIEW:
            return Bag.of((x[0], y[0], z[0], z[2]) for x, y, z in rows)
        groups: dict[int, list[int]] = {}
        for x, _, z in rows:
            groups.setdefault(x[2], []).append(z[2])
        return Bag.of((g, len(values), sum(values)) for g, values in groups.items())

    def history(self, states: Sequence[Bag[Any]], *, as_taken: bool = False) -> History:
        transactions = [
            (name, Transaction(f"t{i}", {name: Bag(changes)}))
            for i, (name, changes) in enumerate(self.taken)
        ]
        if not as_taken:
            waiting = {n: [t for m, t in transactions if m == n] for n in self.initial}
            names = [name for name, _ in transactions]
            self._choose.shuffle(names)
            transactions = [(name, waiting[name].pop(0)) for name in names]
        relations = {
            name: Relation(f"s{name}", ("k", "a", "b"), Bag.of(rows))
            for name, rows in self.initial.items()
        }
        return History(self.view, relations, [t for _, t in transactions], states)
