"""The base tables of a run: every state that they had, and the log."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from steadyview.algebra import Row
from steadyview.checking.records.history import BaseKey
from steadyview.maintenance.records.entries import LogEntry, LogStream
from steadyview.maintenance.records.requests import BaseRecord, GroupScan
from steadyview.maintenance.records.signatures import Positions
from steadyview.simulation.records.worlds import RecordWorld

Before = Callable[[Any, Any], bool]


def stream_of(bucket: int, partitioning: int = 1) -> LogStream:
    """The stream of a bucket."""
    return LogStream("base", 1, partitioning, bucket)


class BaseTables:
    """They change one change at a time; each is in the log at once."""

    def __init__(self, world: RecordWorld) -> None:
        self._world = world
        self.log: list[LogEntry] = []
        self._partitionings = [world.buckets]
        self._states: list[tuple[dict[BaseKey, Row | None], Positions, dict[BaseKey, int]]] = [
            (dict(world.first), {}, dict.fromkeys(world.first, 0))
        ]

    @property
    def is_over(self) -> bool:
        """No change is left."""
        return len(self.log) == len(self._world.changes)

    @property
    def end(self) -> Positions:
        """The last entry of every stream."""
        return self._states[-1][1]

    def change(self) -> LogEntry:
        """The next change happens."""
        base, row = self._world.changes[len(self.log)]
        rows, end, numbers = self._states[-1]
        number = len(self.log) + 1
        streams = self._streams(base)
        entry = LogEntry(base[0], base[1], rows[base], row, number, streams)
        self.log.append(entry)
        self._states.append(
            ({**rows, base: row}, {**end, streams[0]: number}, {**numbers, base: number})
        )
        return entry

    def repartition(self) -> None:
        """Every entry, old or new, is in a stream of the new partitioning too."""
        self._partitionings.insert(0, self._world.later)
        self.log = [replace(e, streams=self._streams((e.relation, e.key))) for e in self.log]
        self._states = [(rows, self._end(n), by) for n, (rows, _, by) in enumerate(self._states)]

    def _streams(self, base: BaseKey) -> tuple[LogStream, ...]:
        newest = len(self._partitionings)
        return tuple(
            stream_of(buckets[base], newest - place)
            for place, buckets in enumerate(self._partitionings)
        )

    def _end(self, upto: int) -> Positions:
        return {entry.stream: entry.number for entry in self.log[:upto]}

    def scan(self, key: Any, before: Before, behind: int = 0) -> GroupScan:
        """The first value of a group, so many states ago."""
        rows, reflected, _ = self._state(behind)
        first, count = None, 0
        for row in rows.values():
            if row is not None and row[1] == key:
                if count == 0 or before(row[2], first):
                    first, count = row[2], 1
                elif row[2] == first:
                    count += 1
        return GroupScan(first, count, reflected)

    def record(self, base: BaseKey, behind: int = 0) -> BaseRecord:
        """One record with the number of its last entry."""
        rows, reflected, numbers = self._state(behind)
        return BaseRecord(rows.get(base), numbers.get(base, 0), reflected)

    def _state(self, behind: int) -> tuple[dict[BaseKey, Row | None], Positions, Mapping[Any, int]]:
        return self._states[max(0, len(self._states) - 1 - behind)]
