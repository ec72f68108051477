"""Which rows of its inputs a block must see, asked for in rounds: a state machine without I/O.

Extends the lookups of SWEEP (Agrawal, El Abbadi, Singh, Yurek, SIGMOD 1997, section 5) to a batch
and to all joins. With log(s) for a scan's logged rows and ans(d) for the answers to a direction d,
the keys that a direction from -> to of a link sends are the values, at the keys of `from`, of

    log(s)  and  ans(d)  for every other direction d into a scan s of `from`'s keys

and, if `to` is `own`, the values at the keys of `to` itself of

    log(s)  and  ans(d)  for the directions d into s that stay inside `to`.

A direction is sent when everything that feeds it has been. Where directions feed each other (the
inner side of an outer join is itself a join, linked elsewhere), they are sent again with the new
keys until there are none: keys only grow, and more than needed is harmless.

Promise: with the rows asked for, the block's change is exact at every cn. For inner joins of n
scans that are 2(n-1) lookups, each sent once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from steadyview.plans.lineage import Place
from steadyview.plans.links import Link, Side

H = TypeVar("H")
H_in = TypeVar("H_in", contravariant=True)
K = TypeVar("K")


class KeyAlgebra(Protocol[H_in, K]):
    """Rows `H_in` and sets of key values `K`, as whoever carries out the asks keeps them."""

    def values(self, rows: Sequence[H_in], column: int) -> K:
        """The values of a column in rows of one scan, without NULL."""

    def union(self, sets: Sequence[K]) -> K:
        """All values."""

    def unsent(self, keys: K, sent: K | None) -> K | None:
        """The keys that are not among those sent; None if there are none."""


@dataclass(frozen=True)
class Direction:
    """One way along a link."""

    link: int
    to_left: bool

    @property
    def back(self) -> Direction:
        """The other way."""
        return Direction(self.link, not self.to_left)


@dataclass(frozen=True)
class Ask(Generic[K]):
    """Look up the rows of `scan` that have one of `keys` in `column`; without keys, all of them."""

    direction: Direction
    scan: int
    column: int | None = None
    keys: K | None = None


@dataclass(frozen=True)
class Reached(Generic[K]):
    """What was asked of one side of a join: the rows with one of `keys`; None: all of them.

    The keys are those of every row on the other side that changed or can reach a change there
    (and, of a side that must be whole at its own change, the keys of that).
    """

    side: Side
    keys: K | None


class Asking(Generic[H, K]):
    """The rounds of one block; `logged`: the scans whose relation changed, with the logged rows."""

    def __init__(
        self, links: Iterable[Link], algebra: KeyAlgebra[H, K], logged: dict[int, H]
    ) -> None:
        self._links = tuple(links)
        self._algebra = algebra
        self._logged = logged
        self._directions = [
            Direction(i, to_left) for i in range(len(self._links)) for to_left in (False, True)
        ]
        self._fed_by = {d: self._feeding(d) for d in self._directions}
        self._answers: dict[tuple[Direction, int], list[H]] = {}
        self._sent: dict[Direction, K | None] = {}

    def asks(self) -> list[Ask[K]]:
        """The next round, all to be answered before the one after; none when it is over."""
        pending: dict[Direction, K | None] = {}
        for direction in self._directions:
            wanted = self._wanted(direction)
            if not isinstance(wanted, _Nothing):
                pending[direction] = wanted
        ready = [d for d in pending if not self._held(d, pending.keys())] or list(pending)
        return [ask for d in ready for ask in self._send(d, pending[d])]

    def answered(self, ask: Ask[K], rows: H) -> None:
        """Take the rows that were asked for, and the logged rows that belong to them.

        A source may not show yet, or show already, what the log says of these keys.
        """
        self._answers.setdefault((ask.direction, ask.scan), []).append(rows)

    def reached(self) -> list[Reached[K]]:
        """Everything that was asked so far, by direction."""
        return [Reached(self._ends(d)[1], keys) for d, keys in self._sent.items()]

    def _ends(self, direction: Direction) -> tuple[Side, Side]:
        link = self._links[direction.link]
        return (link.right, link.left) if direction.to_left else (link.left, link.right)

    def _feeding(self, direction: Direction) -> list[Direction]:
        """The directions whose answers can bring new keys to this one."""
        start, end = self._ends(direction)
        return [
            d for d in self._directions if d != direction and self._feeds(d, direction, start, end)
        ]

    def _feeds(self, feeder: Direction, fed: Direction, start: Side, end: Side) -> bool:
        source, target = self._ends(feeder)
        reached = target.entry if target.keys is None else {p.scan for p in target.keys}
        here = start.scans if start.keys is None else {p.scan for p in start.keys}
        if feeder != fed.back and not here.isdisjoint(reached):
            return True
        inside = source.scans < end.scans and target.scans < end.scans
        there = end.scans if end.keys is None else {p.scan for p in end.keys}
        return end.own and inside and not there.isdisjoint(reached)

    def _held(self, direction: Direction, pending: Iterable[Direction]) -> bool:
        """Whether a direction that is yet to be sent can still bring keys to this one."""
        waiting = set(pending) - {direction}
        seen: set[Direction] = set()
        front = [direction]
        while front:
            for feeder in self._fed_by[front.pop()]:
                if feeder in waiting:
                    return True
                if feeder not in seen:
                    seen.add(feeder)
                    front.append(feeder)
        return False

    def _wanted(self, direction: Direction) -> K | None | _Nothing:
        """The keys to send now; None: all rows; _NOTHING where there is nothing to ask."""
        start, end = self._ends(direction)
        if not end.scans:
            return _NOTHING
        others = [d for d in self._fed_by[direction] if d != direction.back]
        inside = [d for d in others if self._is_inside(d, end)]
        if start.keys is None or end.keys is None or not end.findable:
            changed = self._any(start.scans, others) or (end.own and self._any(end.scans, inside))
            return None if changed and direction not in self._sent else _NOTHING
        sets = [self._values(p, others) for p in start.keys]
        if end.own:
            sets += [self._values(p, inside) for p in end.keys]
        keys = self._algebra.union([s for s in sets if s is not None])
        unsent = self._algebra.unsent(keys, self._sent.get(direction))
        return _NOTHING if unsent is None else unsent

    def _is_inside(self, direction: Direction, side: Side) -> bool:
        start, end = self._ends(direction)
        return start.scans < side.scans and end.scans < side.scans

    def _any(self, scans: frozenset[int], directions: Sequence[Direction]) -> bool:
        logged = not scans.isdisjoint(self._logged)
        return logged or any(d in directions and s in scans for d, s in self._answers)

    def _values(self, place: Place, directions: Sequence[Direction]) -> K | None:
        rows = [self._logged[place.scan]] if place.scan in self._logged else []
        for direction in directions:
            rows += self._answers.get((direction, place.scan), [])
        return self._algebra.values(rows, place.column) if rows else None

    def _send(self, direction: Direction, keys: K | None) -> list[Ask[K]]:
        _, end = self._ends(direction)
        if keys is None or end.keys is None or not end.findable:
            self._sent[direction] = None
            return [Ask(direction, scan) for scan in sorted(end.entry)]
        before = self._sent.get(direction)
        self._sent[direction] = keys if before is None else self._algebra.union([before, keys])
        return [Ask(direction, p.scan, p.column, keys) for p in end.keys]


class _Nothing:
    """There is nothing to ask."""


_NOTHING = _Nothing()
