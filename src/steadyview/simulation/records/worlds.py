"""Random base records, what is done to them, and in which bucket of the log each of them is.

groups   R(k, x, y): three or four records over two or three groups
sides    L(k, v) and R(k, v): the same, on two sides; rows are (k, v, None)
join     R(x, y) with foreign keys, S(y, z): at every moment each y in R is in S
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Final

from steadyview.algebra import Row
from steadyview.checking.records.history import BaseKey

MOST_CHANGES: Final = 7


@dataclass
class RecordWorld:
    """`first`: every base record at the beginning, None where it is absent; `changes` in order.

    `buckets`: of which part of the log each is.
    """

    first: dict[BaseKey, Row | None]
    changes: list[tuple[BaseKey, Row | None]]
    buckets: Mapping[BaseKey, int] = field(default_factory=dict)
    streams: int = 1
    later: Mapping[BaseKey, int] = field(default_factory=dict)
    """Buckets after a re-partitioning."""

    def timelines(self) -> dict[BaseKey, list[Row | None]]:
        """By base record, its versions."""
        found = {base: [row] for base, row in self.first.items()}
        for base, row in self.changes:
            found[base].append(row)
        return found


def record_world(random: Random, kind: str) -> RecordWorld:
    """One of the three kinds."""
    made = _joined(random) if kind == "join" else _changed(random, _KEYS[kind], kind)
    streams = 1 + int(random.random() * 3)
    buckets = {base: int(random.random() * streams) for base in made.first}
    later = {base: int(random.random() * 3) for base in made.first}
    return RecordWorld(made.first, made.changes, buckets, streams, later)


_KEYS: Final[Mapping[str, tuple[BaseKey, ...]]] = {
    "groups": (("R", "k1"), ("R", "k2"), ("R", "k3"), ("R", "k4")),
    "sides": (("L", "k1"), ("R", "k2"), ("R", "k3"), ("L", "k4")),
}


def _changed(random: Random, keys: tuple[BaseKey, ...], kind: str) -> RecordWorld:
    dice = random.random
    keys = keys[: 3 + int(dice() * 2)]
    first = {base: _row(random, base, kind) if dice() < 0.6 else None for base in keys}
    now = dict(first)
    changes: list[tuple[BaseKey, Row | None]] = []
    for _ in range(2 + int(dice() * (MOST_CHANGES - 1))):
        base = keys[int(dice() * len(keys))]
        row = now[base]
        after = None if row is not None and dice() < 0.4 else _row(random, base, kind)
        if after != row:
            now[base] = after
            changes.append((base, after))
    return RecordWorld(first, changes)


def _row(random: Random, base: BaseKey, kind: str) -> Row:
    dice = random.random
    group = "x1" if dice() < 0.65 else "x2"
    if kind == "sides":
        return (base[1], group, None)
    return (base[1], group, None if dice() < 0.1 else 10 + 10 * int(dice() * 4))


_REFERRED: Final = ("y1", "y2")
_REFERRING: Final = ("k1", "k2")


def _joined(random: Random) -> RecordWorld:
    dice = random.random
    now: dict[BaseKey, Row | None] = {}
    for y in _REFERRED:
        now["S", y] = (y, int(dice() * 3)) if dice() < 0.8 else None
    for key in _REFERRING[: 1 + int(dice() * 2)]:
        now["R", key] = _reference(random, key, now) if dice() < 0.3 else None
    first = dict(now)
    changes: list[tuple[BaseKey, Row | None]] = []
    for _ in range(2 + int(dice() * (MOST_CHANGES - 1))):
        base, row = _change(random, now)
        if row != now[base]:
            now[base] = row
            changes.append((base, row))
    return RecordWorld(first, changes)


def _reference(random: Random, key: str, now: Mapping[BaseKey, Row | None]) -> Row | None:
    there = [y for y in _REFERRED if now["S", y] is not None]
    return (key, there[int(random.random() * len(there))]) if there else None


def _change(random: Random, now: Mapping[BaseKey, Row | None]) -> tuple[BaseKey, Row | None]:
    dice = random.random
    wanted = "S" if dice() < 0.5 else "R"
    bases = [base for base in now if base[0] == wanted]
    base = bases[int(dice() * len(bases))]
    relation, key = base
    row = now[base]
    if relation == "R":
        gone = row is not None and dice() < 0.35
        return base, None if gone else _reference(random, str(key), now)
    referred = any(b[0] == "R" and r is not None and r[1] == key for b, r in now.items())
    if row is not None and not referred and dice() < 0.5:
        return base, None
    return base, (key, int(dice() * 3))
