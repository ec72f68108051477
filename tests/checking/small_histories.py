"""Tiny random histories of every level, good and deliberately broken, all from one seed.

Values are few (1, 2, 3, NULL), so that joins hit, rows repeat and different vectors look alike.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from steadyview.algebra import Bag
from steadyview.checking import History, Relation, Transaction

Rows = Mapping[str, Sequence[tuple[Any, ...]]]
"""Every relation's rows, each as often as it is there."""


def eq(*pairs: tuple[Any, Any]) -> bool:
    """SQL's AND of equalities, in WHERE: NULL is equal to nothing."""
    return all(x is not None and x == y for x, y in pairs)


def grouped(rows: Sequence[tuple[Any, Any]]) -> list[tuple[Any, ...]]:
    keys = {key for key, _ in rows}
    values = {key: [v for k, v in rows if k == key and v is not None] for key in keys}
    count = {key: sum(k == key for k, _ in rows) for key in keys}
    sums = {key: sum(2 - v for v in values[key]) if values[key] else None for key in keys}
    return [(k, count[k], len(values[k]), sums[k]) for k in keys]


VIEWS: tuple[tuple[str, int, Callable[[Rows], list[tuple[Any, ...]]]], ...] = (
    (
        "SELECT r0.a, r1.b FROM r0 JOIN r1 ON r0.b = r1.a",
        2,
        lambda r: [(x[0], y[1]) for x in r["r0"] for y in r["r1"] if eq((x[1], y[0]))],
    ),
    (
        "SELECT r0.a, r1.b, r2.b AS c FROM r0, r1, r2 WHERE r0.b = r1.a AND r1.b = r2.a",
        3,
        lambda r: [
            (x[0], y[1], z[1])
            for x in r["r0"]
            for y in r["r1"]
            for z in r["r2"]
            if eq((x[1], y[0]), (y[1], z[0]))
        ],
    ),
    (
        "SELECT r0.a + r1.a AS s, r0.b = 2 AS two FROM r0 JOIN r1 ON r0.b = r1.b AND r0.a < r1.a",
        2,
        lambda r: [
            (x[0] + y[0], x[1] == 2)
            for x in r["r0"]
            for y in r["r1"]
            if eq((x[1], y[1])) and None not in (x[0], y[0]) and x[0] < y[0]
        ],
    ),
    (
        "SELECT p.a, q.a AS b FROM r0 p JOIN r0 q ON p.b = q.b CROSS JOIN r1 WHERE r1.a = 1",
        2,
        lambda r: [
            (x[0], y[0])
            for x in r["r0"]
            for y in r["r0"]
            for z in r["r1"]
            if eq((x[1], y[1]), (z[0], 1))
        ],
    ),
    (
        "SELECT r0.a, COUNT(*) AS n, COUNT(r1.b) AS m, SUM(2 - r1.b) AS s"
        " FROM r0 JOIN r1 ON r0.b = r1.a GROUP BY r0.a",
        2,
        lambda r: grouped([(x[0], y[1]) for x in r["r0"] for y in r["r1"] if eq((x[1], y[0]))]),
    ),
    (
        "SELECT COUNT(*) AS n, SUM(r0.a) AS s FROM r0 JOIN r1 ON r0.b = r1.a WHERE r1.b > 1",
        2,
        lambda r: [
            _count_and_sum(
                [
                    x[0]
                    for x in r["r0"]
                    for y in r["r1"]
                    if eq((x[1], y[0])) and y[1] is not None and y[1] > 1
                ]
            )
        ],
    ),
)


COUNTING = (
    ("SELECT COUNT(*) AS n FROM r0, r1", 2, lambda r: [(len(r["r0"]) * len(r["r1"]),)]),
    (
        "SELECT COUNT(*) AS n FROM r0, r1, r2",
        3,
        lambda r: [(len(r["r0"]) * len(r["r1"]) * len(r["r2"]),)],
    ),
)
"""Views in which very different vectors look alike: 2 x 3 rows are 3 x 2 rows."""


def _count_and_sum(values: list[Any]) -> tuple[Any, Any]:
    known = [v for v in values if v is not None]
    return len(values), sum(known) if known else None


class SmallHistory:
    """One random world, its view recomputed by plain loops, and states made in some way."""

    def __init__(
        self, seed: int, transactions: tuple[int, int] = (1, 5), views: Any = VIEWS
    ) -> None:
        self.choose = random.Random(seed)
        self.view, relations, self.compute = self.choose.choice(views)
        sources = self.choose.randint(1, 3)
        # One relation more than the view reads: a transaction of it only orders others.
        names = [f"r{i}" for i in range(relations + 1)]
        self.source_of = {name: f"s{self.choose.randrange(sources)}" for name in names}
        self.initial = {name: self._rows() for name in self.source_of}
        self._draw_transactions(self.choose.randint(*transactions))
        self.states = self._states()
        self.history = History(
            self.view,
            {
                name: Relation(source, ("a", "b"), Bag.of(self.initial[name]))
                for name, source in self.source_of.items()
            },
            [Transaction(f"t{i}", changes) for i, changes in enumerate(self.transactions)],
            [Bag.of(state) for state in self.states],
        )

    def _value(self) -> Any:
        return self.choose.choice((1, 2, 1, 2, 1, 2, 3, None))

    def _rows(self) -> list[tuple[Any, ...]]:
        return [(self._value(), self._value()) for _ in range(self.choose.randint(1, 4))]

    def _draw_transactions(self, number: int) -> None:
        rows = {name: list(held) for name, held in self.initial.items()}
        self.transactions: list[dict[str, Bag[tuple[Any, ...]]]] = []
        for _ in range(number):
            changes: dict[str, list[tuple[tuple[Any, ...], int]]] = {}
            first = self.choose.choice(list(rows))
            near = [n for n in rows if self.source_of[n] == self.source_of[first]]
            reachable = list(rows) if self.choose.random() < 0.25 else near
            for name in sorted({first, self.choose.choice(reachable)}):
                for _ in range(self.choose.choice((1, 1, 2, 3))):
                    changes.setdefault(name, []).append(self._change(rows[name]))
            self.transactions.append({name: Bag(change) for name, change in changes.items()})

    def _change(self, held: list[tuple[Any, ...]]) -> tuple[tuple[Any, ...], int]:
        if held and self.choose.random() < 0.4:
            return held.pop(self.choose.randrange(len(held))), -1
        held.append((self._value(), self._value()))
        return held[-1], 1

    # what a vector shows

    def commits(self) -> dict[str, list[int]]:
        """The numbers of the transactions that changed each source."""
        return {
            source: [
                t
                for t, changes in enumerate(self.transactions)
                if any(len(bag) and self.source_of[name] == source for name, bag in changes.items())
            ]
            for source in sorted(set(self.source_of.values()))
        }

    def shows(self, seen: Mapping[str, Sequence[int]]) -> Bag[tuple[Any, ...]]:
        """The view where each source has the transactions `seen`."""
        bags = {name: Bag.of(rows) for name, rows in self.initial.items()}
        for name, source in self.source_of.items():
            for t in seen[source]:
                bags[name] = bags[name] + self.transactions[t].get(name, Bag())
        held = {name: [row for row, n in bag for _ in range(n)] for name, bag in bags.items()}
        return Bag.of(self.compute(held))

    def after(self, order: Sequence[int]) -> Bag[tuple[Any, ...]]:
        """The view after these transactions, each whole."""
        commits = self.commits()
        return self.shows({s: [t for t in c if t in order] for s, c in commits.items()})

    def an_order(self) -> list[int]:
        """A random order of all transactions that agrees with every source's."""
        waiting, order = list(range(len(self.transactions))), []
        sources = {t: {s for s, c in self.commits().items() if t in c} for t in waiting}
        while waiting:
            free = [
                t for t in waiting if not any(u < t and sources[u] & sources[t] for u in waiting)
            ]
            order.append(self.choose.choice(free))
            waiting.remove(order[-1])
        return order

    # states

    def _states(self) -> list[list[tuple[Any, ...]]]:
        order = self.an_order()
        chain = [self.after(order[:n]) for n in range(len(order) + 1)]
        way = self.choose.choice(("taken", "skipping", "vectors", "shuffled", "broken", "absurd"))
        middle = chain[1:-1]
        if way == "skipping":
            middle = [state for state in middle if self.choose.random() < 0.5]
        elif way == "vectors":
            middle = [self._any_vector() for _ in range(self.choose.randint(1, 3))]
        elif way == "shuffled":
            self.choose.shuffle(middle)
        chain = [chain[0], *middle, chain[-1]]
        if way == "broken":
            at = self.choose.randrange(len(chain))
            chain[at] = self._broken(chain[at])
        elif way == "absurd":
            chain.insert(self.choose.randrange(len(chain)), self._any_subset())
        if self.choose.random() < 0.3:
            chain = [state for state in chain for _ in range(self.choose.randint(1, 2))]
        return [[row for row, n in state for _ in range(n)] for state in chain]

    def _any_vector(self) -> Bag[tuple[Any, ...]]:
        return self.shows(
            {s: c[: self.choose.randint(0, len(c))] for s, c in self.commits().items()}
        )

    def _any_subset(self) -> Bag[tuple[Any, ...]]:
        """Some transactions of each source, in no order; the last state where that is absurd."""
        commits = self.commits()
        seen = {s: [t for t in c if self.choose.random() < 0.5] for s, c in commits.items()}
        for name, source in self.source_of.items():
            held = Bag.of(self.initial[name])
            for t in seen[source]:
                held = held + self.transactions[t].get(name, Bag())
            if any(n < 0 for _, n in held):
                return self.shows(commits)
        return self.shows(seen)

    def _broken(self, state: Bag[tuple[Any, ...]]) -> Bag[tuple[Any, ...]]:
        rows = [row for row, n in state for _ in range(n)]
        if rows and self.choose.random() < 0.5:
            row = self.choose.choice(rows)
            rows = [*rows, row] if self.choose.random() < 0.5 else [r for r in rows if r is not row]
            return Bag.of(rows)
        return self._any_vector()
