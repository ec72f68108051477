"""The product's own way of keeping deferred views: commit numbers, on the processes' moments.

Each source commits by itself; capture reads its commits in order and admits them in flushes. One
catalog transaction gives each transaction its cn and its commit time, from a clock that goes up
whatever the host's does (`catalog/commits.py`):

    time(cn)   =  max(host clock, time(cn - 1) + 1, floor + 1);   in a flush one after the other
    cn_at(t)   =  the largest cn with time(cn) <= t;   the floor is raised to t before it is told

Records of the view deltas carry the cn, so a step from t1 to t2 takes those with

    cn_at(t1) < cn <= cn_at(t2)

as soon as they are published. It asks the commit table for a number, never for a list of
transactions; there is no lock, and no transaction waits. Assumes: capture has each source's commits
in their order. Promised: the six properties, the order of transactions being that of each source.
Not promised: the order in which transactions of different sources ended.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence

from steadyview.maintenance.ipda.records import DeltaRecord
from steadyview.maintenance.ipda.requests import ApplyRecords, EndTransaction, Steps
from steadyview.simulation.deferred.database import Client, DeferredDatabase, Pause


class NumberedCommits:
    """The commit table in memory: commit times by cn, and the floor."""

    def __init__(self, created: int = 0) -> None:
        self._times = [created]
        self._floor = created

    @property
    def last_cn(self) -> int:
        """The newest; 0 before the first."""
        return len(self._times) - 1

    @property
    def settled(self) -> int:
        """No commit to come has a time up to this one."""
        return max(self._times[-1], self._floor)

    def admit(self, count: int, now: int) -> list[int]:
        """So many transactions in order; their commit times."""
        first = max(now, self.settled + 1)
        times = list(range(first, first + count))
        self._times += times
        return times

    def cn_at(self, time: int, now: int) -> int | None:
        """The largest cn whose commit time is, or ever will be, at most `time`; None if to come."""
        if time > max(self.settled, now):
            return None
        self._floor = max(self._floor, time)
        return bisect_right(self._times, time) - 1


class CommitNumbers:
    """`flush`: how many transactions capture takes of those that wait."""

    def __init__(self, database: DeferredDatabase, flush: Callable[[int], int]) -> None:
        self.commits = NumberedCommits()
        self._database = database
        self._flush = flush
        self._captured: dict[str, int] = {}
        self._admitted: list[Client] = []
        self._delta: list[tuple[int, DeltaRecord]] = []
        self._published = 0
        self._at = dict.fromkeys(database.refreshed, 0)

    @property
    def now(self) -> int:
        """The newest time that may be asked for."""
        return max(self._host_clock(), self.commits.settled)

    def propagate(self, records: Sequence[DeltaRecord]) -> Steps:
        """A source knows nothing of views."""
        yield from ()

    def commit(self, xid: str) -> Steps:
        """The same."""
        yield EndTransaction()

    def apply(self, view: str, after: int, upto: int) -> Steps:
        """Roll the view to a time that has come."""
        cn = self._cn_at(upto)
        if cn is None:
            return
        yield Pause(lambda: self._published >= cn)
        records = tuple(r for n, r in self._delta if self._at[view] < n <= cn and r.view == view)
        yield Pause()
        self._at[view] = cn
        yield ApplyRecords(view, upto, records)

    def chores(self) -> list[Steps]:
        """Capture of each source, and propagation: one round of each."""
        return [*map(self._capture, sorted(self._database.log)), self._propagate()]

    @property
    def is_idle(self) -> bool:
        """Whether all that was committed is admitted and published."""
        committed = sum(map(len, self._database.log.values()))
        return committed == len(self._admitted) == self._published

    def _capture(self, source: str) -> Steps:
        done = self._captured.get(source, 0)
        waiting = self._database.log[source][done:]
        flush = waiting[: self._flush(len(waiting))]
        yield Pause()
        if flush and self._captured.get(source, 0) == done:
            self._captured[source] = done + len(flush)
            self._admit(flush)

    def _admit(self, flush: Sequence[Client]) -> None:
        """One catalog transaction."""
        times = self.commits.admit(len(flush), self._host_clock())
        self._admitted += flush
        for client, time in zip(flush, times, strict=True):
            self._database.commit_times[client.xid] = time

    def _propagate(self) -> Steps:
        """A batch: the records of what was admitted, and then one moment in which all is seen."""
        begin, end = self._published, len(self._admitted)
        batch = enumerate(self._admitted[begin:end], begin + 1)
        rows = [(cn, record) for cn, client in batch for record in client.records]
        yield Pause()
        if begin == self._published:
            self._delta += rows
            self._published = end

    def _cn_at(self, time: int) -> int | None:
        return self.commits.cn_at(time, self._host_clock())

    def _host_clock(self) -> int:
        return self._database.clock(0)
