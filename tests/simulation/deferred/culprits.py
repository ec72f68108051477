"""Algorithm 2 and commit numbers with one fault each; the predicates must convict every one.

`breaks`: the properties that it breaks within so many seeds, all of them; real time is among them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from steadyview.maintenance.ipda.algorithm_2 import Algorithm2
from steadyview.maintenance.ipda.requests import (
    COMMITS,
    ApplyRecords,
    EndTransaction,
    InsertCommitRecord,
    LockForReading,
    LockForWriting,
    PurgeCommitRecords,
    ReadClock,
    ReadCommitRecords,
    RetrieveRecords,
    Unlock,
)
from steadyview.simulation.deferred import Way, way_of
from steadyview.simulation.deferred.commit_numbers import CommitNumbers, NumberedCommits

LOST, REDUNDANT, IN_A_VIEW = "lost", "redundant", "not atomic in a view"
ACROSS, REORDERED, REAL_TIME = "not atomic across views", "reordered", "real time"
CULPRITS: list[Culprit] = []


@dataclass(frozen=True)
class Culprit:
    way: Way
    breaks: frozenset[str]
    within: int


def convict(honest: str, *breaks: str, within: int = 400) -> Callable:
    """Put it on the list, in place of an honest way."""

    def listed(culprit):
        def make(database, random):
            if not issubclass(culprit, CommitNumbers):
                return culprit()
            return culprit(database, lambda waiting: random.randint(0, waiting))

        way = replace(way_of(honest), name=culprit.__name__, make=make)
        CULPRITS.append(Culprit(way, frozenset({*breaks, REAL_TIME}), within))
        return culprit

    return listed


class _InWindow(Algorithm2):
    """Algorithm 2 with another window."""

    def apply(self, view, after, upto):
        yield LockForReading(COMMITS, upto)
        xids = yield ReadCommitRecords(*self.window(after, upto))
        records = yield RetrieveRecords(view, frozenset(xids))
        yield ApplyRecords(view, upto, tuple(records))


@convict("algorithm 2", REDUNDANT)
class WithBothEnds(_InWindow):
    """[t1, t2] for (t1, t2]."""

    def window(self, after, upto):
        return after - 1, upto


@convict("algorithm 2", LOST, ACROSS, REORDERED)
class WithNeitherEnd(_InWindow):
    """(t1, t2) for (t1, t2]."""

    def window(self, after, upto):
        return after, upto - 1


@convict("algorithm 2", LOST, ACROSS, REORDERED)
class ReadingPastTheLock(Algorithm2):
    """Step 1 asks for the range before t2 only up to t1: it never waits."""

    def apply(self, view, after, upto):
        yield LockForReading(COMMITS, after)
        xids = yield ReadCommitRecords(after, upto)
        records = yield RetrieveRecords(view, frozenset(xids))
        yield ApplyRecords(view, upto, tuple(records))


@convict("algorithm 2", LOST, ACROSS, REORDERED)
class UnlockingEarly(Algorithm2):
    """Releases the lock when the clock is read, before the commit record is there."""

    def commit(self, xid):
        yield LockForWriting(COMMITS)
        timestamp = yield ReadClock()
        yield Unlock(COMMITS)
        yield InsertCommitRecord(xid, timestamp)
        yield EndTransaction()


@convict("algorithm 2", LOST, ACROSS, REORDERED)
class ReadingTheClockFirst(Algorithm2):
    """Obtains the lock with the time already read."""

    def commit(self, xid):
        timestamp = yield ReadClock()
        yield LockForWriting(COMMITS)
        yield InsertCommitRecord(xid, timestamp)
        yield Unlock(COMMITS)
        yield EndTransaction()


@convict("algorithm 2", LOST, ACROSS, REORDERED)
class StampedAtTheBeginning(Algorithm2):
    """The time at which a transaction wrote first, for its commit time."""

    def __init__(self):
        super().__init__()
        self._stamps = {}

    def propagate(self, records):
        for record in records:
            if record.xid not in self._stamps:
                self._stamps[record.xid] = yield ReadClock()
            yield from super().propagate([record])

    def commit(self, xid):
        yield LockForWriting(COMMITS)
        yield InsertCommitRecord(xid, self._stamps.get(xid, 0))
        yield Unlock(COMMITS)
        yield EndTransaction()


@convict("algorithm 2", LOST, IN_A_VIEW)
class RetrievingAtOnce(Algorithm2):
    """Takes the first record of each transaction for all."""

    def apply(self, view, after, upto):
        yield LockForReading(COMMITS, upto)
        xids = yield ReadCommitRecords(after, upto)
        records = yield RetrieveRecords(view, frozenset(xids))
        first = {}
        for record in records:
            first.setdefault(record.xid, record)
        yield ApplyRecords(view, upto, tuple(first.values()))


@convict("algorithm 2", LOST, ACROSS, REORDERED)
class PurgingByOneView(Algorithm2):
    """Forgets what the freshest view has; the others needed it."""

    def purge(self, refreshed):
        yield PurgeCommitRecords(max(refreshed))


# Commit numbers


class _NoFloor(NumberedCommits):
    """Tells the cn of a time that has come, and remembers nothing of it."""

    def cn_at(self, time, now):
        if time > max(self.settled, now):
            return None
        return sum(t <= time for t in self._times) - 1


class _HostClock(NumberedCommits):
    """Commit times as the host's clock has them."""

    def admit(self, count, now):
        self._times += [now] * count
        return [now] * count


class _WithCommits(CommitNumbers):
    def __init__(self, database, flush):
        super().__init__(database, flush)
        self.commits = self.commit_table()


@convict("commit numbers", ACROSS, within=2000)
class NumbersWithoutAFloor(_WithCommits):
    """After a clock is set back, a commit gets a time that was read at before."""

    commit_table = _NoFloor


@convict("commit numbers", ACROSS, REORDERED, within=2000)
class NumbersByTheHostClock(_WithCommits):
    """Commit times that go back with the host's clock."""

    commit_table = _HostClock


@convict("commit numbers", LOST, ACROSS, REORDERED)
class NumbersNotWaitingForPropagation(CommitNumbers):
    """Takes what is published for all there is."""

    def apply(self, view, after, upto):
        cn = self._cn_at(upto)
        if cn is None:
            return
        records = tuple(r for n, r in self._delta if self._at[view] < n <= cn and r.view == view)
        self._at[view] = cn
        yield ApplyRecords(view, upto, records)


@convict("commit numbers", REDUNDANT)
class NumbersFromTheLastOne(CommitNumbers):
    """cn1 <= cn where cn1 < cn is right."""

    def apply(self, view, after, upto):
        self._at[view] -= 1
        yield from super().apply(view, after, upto)
