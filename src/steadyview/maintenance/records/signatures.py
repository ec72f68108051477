"""The compact update signature: per log stream, the last entry that a record reflects.

Section IV-D. A list of all tags of the operations that were done on the record would do; with

    per (stream, record) entries are applied in order and without gaps        (the flow rule)

the list is determined by its greatest entry per stream. The paper asks for order per base record
only; then a vector is not enough: entry 2 of k2 may be applied before entry 1 of k1, and 1 is taken
for seen.
Where a log is partitioned anew, an entry has a stream in each partitioning, and is seen if it is
under any of them. A manager of the old one may still live and know nothing of the new names: an
entry that meets a newer partitioning in a signature is *superseded*, and its manager has to stop.
(x is changed by entry 3 under the new name; the old manager, still at 3, would do it again.)
The vector of a record that is absent is not empty but the store's *floor*: what every record has
seen. A deleted record leaves its signature (a tombstone) until the floor covers it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

from steadyview.maintenance.records.entries import LogEntry, LogStream

Signature: TypeAlias = Mapping[LogStream, int]
Positions: TypeAlias = Mapping[LogStream, int]
"""Per stream the last entry done: by a manager, or reflected by an answer."""
NO_SIGNATURE: Final[Signature] = {}


class Superseded(Exception):
    """The record is kept under a newer partitioning than the manager knows."""


def has_processed(sn: Signature, entry: LogEntry) -> bool:
    """Whether the entry is in, under the present partitioning or one before.

    >>> old, new = LogStream("shop", 1, 1, 0), LogStream("shop", 1, 2, 5)
    >>> entry = LogEntry("r", 1, None, (1,), number=7, streams=(new, old))
    >>> has_processed({old: 7}, entry), has_processed({old: 6, new: 3}, entry)
    (True, False)
    """
    _check_names(entry.streams[0], sn)
    return any(sn.get(stream, 0) >= entry.number for stream in entry.streams)


def generated(sn: Signature, entry: LogEntry) -> Signature:
    """The signature when the entry is in too."""
    return {**sn, entry.stream: max(sn.get(entry.stream, 0), entry.number)}


def latest(one: Signature, other: Signature) -> Signature:
    """The greater per stream."""
    found = dict(one)
    for stream, number in other.items():
        if found.get(stream, 0) < number:
            found[stream] = number
    return found


def above(sn: Signature, floor: Signature) -> Signature:
    """What has to be stored of a signature: the floor says the rest."""
    return {stream: number for stream, number in sn.items() if number > floor.get(stream, 0)}


def is_covered(sn: Signature, registered: Positions) -> bool:
    """Whether a tombstone may be reclaimed: *every* entry it remembers is registered as done.

    Then raise the floor by it, and drop it. One stream of it is not enough: the entry of another
    would be done again on a record that remembers nothing.
    """
    return all(registered.get(stream, 0) >= number for stream, number in sn.items())


def without_partitioning(sn: Signature, number: int) -> Signature:
    """A signature without the components of an old partitioning.

    Only after a clean stop of it: all that was applied is registered. With an entry applied but not
    registered it is done again.
    """
    return {stream: entry for stream, entry in sn.items() if stream.partitioning != number}


def is_behind(reflected: Positions, end: Positions) -> bool:
    """Whether something that was in the log is not shown.

    Positions in streams of two partitionings say nothing of each other.
    """
    for stream, number in end.items():
        if reflected.get(stream, 0) < number:
            _check_names(stream, reflected)
            return True
    return False


def _check_names(mine: LogStream, others: Iterable[LogStream]) -> None:
    for stream in others:
        if stream.partitioning > mine.partitioning and stream[:2] == mine[:2]:
            raise Superseded(f"{mine} was partitioned anew: {stream}")
