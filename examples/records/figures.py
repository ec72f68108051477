"""Figures 2 to 8 of Jacobsen et al. by queues with stated service times.

100,000 base records (the paper: 1,000,000), 20 storage units, 10 log servers. Every update changes
y of one base record, drawn uniformly from those of the manager's streams.
"""

from __future__ import annotations

from bisect import bisect
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from random import Random
from typing import Any

from steadyview.maintenance.records.additive_views import ADDITIVE_VIEWS, added
from steadyview.maintenance.records.algorithms_1_to_3 import Algorithms1To3
from steadyview.maintenance.records.entries import LogEntry, LogStream
from steadyview.maintenance.records.minimum_printed import MinimumPrinted, ReferenceCountsPrinted
from steadyview.maintenance.records.requests import GroupScan, Stamp, StoredRecord
from steadyview.maintenance.records.tas import CounterTas, SignatureTas, Tas
from steadyview.simulation.records.queues import Queues, ServiceTimes, Throughput
from steadyview.simulation.records.store import SimulatedStore

MANAGERS = (1, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20)
CARDINALITIES = (10, 100, 1000)
DISTRIBUTIONS = ("uniform", "normal", "Zipf")
DIVISORS = (1, 2, 4, 5, 10, 20)
BASE_RECORDS, GROUPS, LOG_SERVERS, PARTITIONS = 100_000, 1000, 10, 20
MILLISECONDS, ENTRIES = 4_000.0, 8_000
VALUES = 1_000
SKEW = 0.733
"""Of Zipf's law over 20 partitions: the first has 9 times the updates of the last."""
LONGER_BY = 0.18
"""Milliseconds of an operation with a signature, of 2: the paper's 9 % put in, not found."""
_VIEW = ADDITIVE_VIEWS["SUM"]


@dataclass(frozen=True)
class Figure:
    """A point of a figure: by line and number of managers."""

    number: str
    line: str
    managers: int
    found: Throughput


class BaseRecords:
    """y of every base record, its group by its key, and how often each group has each value."""

    def __init__(self, groups: int, draw: Callable[[Random], int], random: Random) -> None:
        self._groups, self._draw, self._random = groups, draw, random
        self.values = [draw(random) for _ in range(BASE_RECORDS)]
        self.counts: list[Counter[int]] = [Counter() for _ in range(groups)]
        for key, y in enumerate(self.values):
            self.counts[self.group(key)][y] += 1
        self._number = 0

    def group(self, key: int) -> int:
        """Has nothing to do with the stream of the key."""
        return key // (BASE_RECORDS // GROUPS) % self._groups

    def update(self, key: int) -> LogEntry:
        """The record gets another value."""
        group, old, new = self.group(key), self.values[key], self._draw(self._random)
        self._number += 1
        self.values[key] = new
        counts = self.counts[group]
        counts[new] += 1
        counts[old] -= 1
        if not counts[old]:
            del counts[old]
        stream = LogStream("base", 1, 1, key % LOG_SERVERS)
        return LogEntry("R", key, (key, group, old), (key, group, new), self._number, (stream,))

    def scan(self, group: Any) -> GroupScan:
        """The least value of a group."""
        counts = self.counts[group]
        first = min(counts)
        return GroupScan(first, counts[first], {})


def uniform(random: Random) -> int:
    """Every value as often."""
    return int(random.random() * VALUES)


def normal(random: Random) -> int:
    """Around the middle."""
    return min(VALUES - 1, max(0, round(random.gauss(VALUES / 2, VALUES / 8))))


_ZIPF = list(accumulate(1 / n for n in range(1, VALUES + 1)))


def zipf(random: Random) -> int:
    """The least value is the most frequent one."""
    return bisect(_ZIPF, random.random() * _ZIPF[-1])


DRAWS = dict(zip(DISTRIBUTIONS, (uniform, normal, zipf), strict=True))


def sum_point(signature: bool, cardinality: int, managers: int, seed: int = 1) -> Figure:
    """Figures 2 and 3 with a counter, 5 and 6 with a signature."""
    tas: Tas = SignatureTas() if signature else CounterTas()
    times = ServiceTimes(operation=1.0 + LONGER_BY if signature else 1.0)
    random = Random(seed)
    base = BaseRecords(cardinality, uniform, random)
    queues = Queues(_sum_store(base, tas), Algorithms1To3(_VIEW, tas), times, base.scan)
    found = queues.run([_share(base, random, n, managers) for n in range(managers)], MILLISECONDS)
    return Figure("5, 6" if signature else "2, 3", f"cardinality {cardinality}", managers, found)


def minimum_point(counted: bool, distribution: str, managers: int, seed: int = 1) -> Figure:
    """Figure 4 without reference counts, 7 with."""
    tas = CounterTas()
    random = Random(seed)
    base = BaseRecords(GROUPS, DRAWS[distribution], random)
    program = ReferenceCountsPrinted(tas) if counted else MinimumPrinted(tas)
    scans = {group: base.scan(group) for group in range(GROUPS)}
    first = {g: (s.first, s.count) if counted else (s.first,) for g, s in scans.items()}
    records = {group: StoredRecord(fields, Stamp(tas.first)) for group, fields in first.items()}
    store = SimulatedStore(tas, lambda fields: fields[:1], records)
    queues = Queues(store, program, ServiceTimes(), base.scan)
    found = queues.run([_share(base, random, n, managers) for n in range(managers)], MILLISECONDS)
    return Figure("7" if counted else "4", distribution, managers, found)


def flow_point(balanced: bool, managers: int, seed: int = 1) -> Figure:
    """Figure 8: so many entries, dealt to 20 streams, and the streams to managers."""
    tas = SignatureTas()
    random = Random(seed)
    base = BaseRecords(GROUPS, uniform, random)
    weights = [1.0 if balanced else 1 / n**SKEW for n in range(1, PARTITIONS + 1)]
    partitions = random.choices(range(PARTITIONS), weights, k=ENTRIES)
    shares = [
        _entries(base, random, [p for p in partitions if p % managers == n])
        for n in range(managers)
    ]
    queues = Queues(_sum_store(base, tas), Algorithms1To3(_VIEW, tas), ServiceTimes(), base.scan)
    found = queues.run(shares)
    return Figure("8", "balanced" if balanced else "unbalanced", managers, found)


def _sum_store(base: BaseRecords, tas: Tas) -> SimulatedStore:
    sums = {}
    for group, counts in enumerate(base.counts):
        fields = None
        for y, rows in counts.items():
            fields = added(fields, (rows, rows, rows * y))
        if fields is not None:
            sums[group] = StoredRecord(fields, Stamp(tas.first))
    return SimulatedStore(tas, _VIEW.shown, sums)


def _share(base: BaseRecords, random: Random, number: int, managers: int) -> Iterator[LogEntry]:
    """Updates of the base records that go through one manager, without end."""
    while True:
        key = int(random.random() * (BASE_RECORDS // managers)) * managers + number
        yield base.update(key)


def _entries(base: BaseRecords, random: Random, partitions: Sequence[int]) -> Iterator[LogEntry]:
    for partition in partitions:
        key = int(random.random() * (BASE_RECORDS // PARTITIONS)) * PARTITIONS + partition
        yield base.update(key)


def points() -> list[tuple[Callable[..., Figure], tuple[Any, ...]]]:
    """All that is measured, to be called one by one."""
    found: list[tuple[Callable[..., Figure], tuple[Any, ...]]] = []
    for signature in (False, True):
        found += [(sum_point, (signature, c, m)) for c in CARDINALITIES for m in MANAGERS]
    for counted in (False, True):
        found += [(minimum_point, (counted, d, m)) for d in DISTRIBUTIONS for m in MANAGERS]
    found += [(flow_point, (balanced, m)) for balanced in (True, False) for m in DIVISORS]
    return found


