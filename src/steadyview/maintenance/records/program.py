"""What every way of propagating entries to records says."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from steadyview.maintenance.records.entries import LogEntry, RecordKey
from steadyview.maintenance.records.requests import Steps


class UpdateProgram(Protocol):
    """A view's update program (section V); it may be redriven from its beginning at any time."""

    def propagate(self, entry: LogEntry) -> Steps:
        """What one entry does to the view."""

    def touched(self, entry: LogEntry) -> Collection[RecordKey] | None:
        """The records it may change; None if only the store knows."""


class GroupedProgram(UpdateProgram, Protocol):
    """One that can take entries together: a group commit."""

    def propagate_together(self, entries: Sequence[LogEntry]) -> Steps:
        """What these entries do, one operation per record."""
