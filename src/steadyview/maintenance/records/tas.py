"""Kinds of test-and-set: what a version is, and what it can tell.

    no TAS      nothing is tested: two managers that read the same record lose one update
    cnt-TAS     a counter (section IV-A): no update is lost; a redriven entry is done again
    sig-TAS     the update signature (IV-B, IV-D): nor is an entry done twice
    list-TAS    the signature as the complete list of tags (IV-B), before it was made compact

The paper lets a deleted record go with its signature. Smallest failure: x = {k1}; s1:1 deletes k1,
is applied, and its manager dies before it knows; s2:1 inserts k2 into x; s1:1, redriven, finds the
record without s1 and deletes it. So ours leave a *tombstone*, and inserting over it expects it.
Nor may a counter be "initialized to any value": it restarts at zero, and a manager that read the
record before it was deleted and inserted again passes its test. With a tombstone it goes on.
"""

from __future__ import annotations

from typing import Any, Protocol

from steadyview.maintenance.records.entries import LogEntry
from steadyview.maintenance.records.requests import Stamp, Version
from steadyview.maintenance.records.signatures import NO_SIGNATURE, generated, has_processed


class Tas(Protocol):
    """`first`: the version of a record that never was. `tests`: whether stamps are compared."""

    first: Version
    tests: bool

    def has_processed(self, version: Version, entry: LogEntry) -> bool:
        """Whether the version tells that the entry is in."""

    def generated(self, version: Version, entry: LogEntry) -> Version:
        """The version of the record when the entry is in."""

    def buried(self, stamp: Stamp) -> Stamp | None:
        """What a deleted record leaves."""


class NoTas:
    """Plain writes."""

    first: Version = None
    tests = False

    def has_processed(self, version: Version, entry: LogEntry) -> bool:
        """Nobody knows."""
        return False

    def generated(self, version: Version, entry: LogEntry) -> Version:
        """There is none."""

    def buried(self, stamp: Stamp) -> Stamp | None:
        """Nothing."""
        return None


class CounterTas:
    """cnt-TAS. `tombstones`: a counter is never reused."""

    first: Version = 0
    tests = True

    def __init__(self, *, tombstones: bool = False) -> None:
        self._tombstones = tombstones

    def has_processed(self, version: Version, entry: LogEntry) -> bool:
        """A counter tells nothing of entries."""
        return False

    def generated(self, version: Version, entry: LogEntry) -> Version:
        """One more."""
        return version + 1

    def buried(self, stamp: Stamp) -> Stamp | None:
        """The counter, if at all."""
        return stamp if self._tombstones else None


class SignatureTas:
    """sig-TAS with the compact vector. `tombstones`: not in the paper."""

    first: Version = NO_SIGNATURE
    tests = True

    def __init__(self, *, tombstones: bool = True) -> None:
        self._tombstones = tombstones

    def has_processed(self, version: Version, entry: LogEntry) -> bool:
        """By the greatest entry of its stream."""
        return has_processed(version, entry)

    def generated(self, version: Version, entry: LogEntry) -> Version:
        """With the entry as the last of its stream."""
        return generated(version, entry)

    def buried(self, stamp: Stamp) -> Stamp | None:
        """The signature, if at all."""
        return stamp if self._tombstones else None


class ListTas:
    """sig-TAS with the complete list of tags, as a set. It does not need the flow rule to be exact.

    Still, without flow control a delete that overtakes its insert finds nothing and is dropped.
    """

    first: Any = frozenset()
    tests = True

    def has_processed(self, version: Version, entry: LogEntry) -> bool:
        """It is in the list."""
        return (entry.stream, entry.number) in version

    def generated(self, version: Version, entry: LogEntry) -> Version:
        """One tag more."""
        return version | {(entry.stream, entry.number)}

    def buried(self, stamp: Stamp) -> Stamp | None:
        """The list."""
        return stamp
