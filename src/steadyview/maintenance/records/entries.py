"""Log streams and their entries, as view managers see them.

A *stream* is a part of a source's log; all changes of one base record are in one stream. Entries
are numbered by the source's log, so that a number means the same however the log is partitioned.
A log that starts again from one, or a partitioning that changes, makes other streams: both are part
of the name. Otherwise a signature would call new entries seen, silently.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from steadyview.algebra import Row

RecordKey: TypeAlias = Hashable
"""A view record's key."""


class LogStream(NamedTuple):
    """One part of a source's log: `incarnation` of the log, `partitioning` of it, `bucket`."""

    source: str
    incarnation: int
    partitioning: int
    bucket: int


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One change of one base record: `old` to `new`, None where it is absent.

    `streams`: where the entry is in each partitioning that is still remembered, the present first.
    """

    relation: str
    key: Hashable
    old: Row | None
    new: Row | None
    number: int
    streams: tuple[LogStream, ...]

    @property
    def stream(self) -> LogStream:
        """Where it is now."""
        return self.streams[0]
