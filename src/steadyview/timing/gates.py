"""Gates: a time at the sources' clocks becomes one commit number.

A commit gets its number when it is captured, some time after its source dated it. So at a time T,
what was admitted by then lacks what was still under way, and the moment at which all of it has come
shows some that is later. A gate keeps the two apart:

    until every source was heard from beyond T:   dated up to T   admitted, as ever
                                                  dated after T   held back
    then:                                         T is bound to the newest cn, and all is let go

    bound(T) = cn  =>  of the gate's sources, a transaction has a number <= cn  ==  it is dated <= T

A source is heard from beyond T when all that it committed up to T is admitted, and its clock shows
more. Gates are closed in the order of their times, so that a later time never has an earlier cn.

What cannot be kept apart is told with the gate, as a source and why:

    silent   nothing was heard from it for as long as the limit allows: T is closed without it
    ahead    it had dated something after T already, long before T came or the gate was there: so
             nothing of it is held back, and it is not waited for
    mixed    what it committed before and after T came in one piece; which counts as after T

Times are microseconds since 1970. Nothing is held back earlier than the limit before T, by our
clock, whatever a source's clock shows.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

SILENT, AHEAD, MIXED = "silent", "ahead", "mixed"


@dataclass
class Gate:
    """One time that is not bound yet. `since`: from when on, by our clock, the limit counts.

    `beyond`: the sources that were heard from beyond it. `told`: what is not exact, by source.
    """

    time: int
    sources: frozenset[str]
    since: int
    beyond: set[str] = field(default_factory=set)
    told: dict[str, str] = field(default_factory=dict)

    def missing(self) -> list[str]:
        """The sources that are waited for."""
        ahead = {name for name, why in self.told.items() if why == AHEAD}
        return sorted(self.sources - self.beyond - ahead)

    def splits(self, source: str, dated: int) -> bool:
        """Whether what the source dated so lies behind the gate, and can be kept there."""
        return source in self.sources and dated > self.time and self.told.get(source) != AHEAD


class Gates:
    """The open gates of one warehouse: events in, decisions out. `limit` in microseconds."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._open: dict[int, Gate] = {}
        self._taken: dict[str, int] = {}

    def open(
        self, time: int, sources: Collection[str], now: int, told: Mapping[str, str] | None = None
    ) -> None:
        """There is a gate at this time; of one that is there already, the sources may change.

        What a source dated later and was taken before cannot be kept apart any more.
        """
        wanted = frozenset(sources)
        gate = self._open.setdefault(time, Gate(time, wanted, max(time, now)))
        gate.sources = wanted
        gate.told.update(told or {})
        for source in wanted - gate.told.keys():
            if source not in gate.beyond and self._taken.get(source, time) > time:
                gate.told[source] = AHEAD
        gate.told = {name: why for name, why in gate.told.items() if name in wanted}

    def drop(self, time: int) -> None:
        """There is no gate at this time, or no longer one that is open."""
        self._open.pop(time, None)

    def all(self) -> list[Gate]:
        """The gates that are not closed yet, by time."""
        return [self._open[time] for time in sorted(self._open)]

    def times(self, source: str) -> tuple[int, ...]:
        """Where what the source delivers is to be divided."""
        return tuple(gate.time for gate in self.all() if source in gate.sources)

    def took(self, source: str, dated: int, mixed: Collection[int] = ()) -> None:
        """A source's transactions were taken, to be admitted; the latest so far is dated so.

        `mixed`: the times that it could not be divided at.
        """
        self._taken[source] = max(self._taken.get(source, 0), dated)
        for gate in self._open.values():
            if gate.time in mixed and source in gate.sources:
                gate.told.setdefault(source, MIXED)

    def parts(self, source: str, before: int, dated: int) -> bool:
        """Whether a gate lies between what was dated so, and must not be admitted together."""
        return any(g.splits(source, dated) and before <= g.time for g in self._open.values())

    def holds(self, source: str, dated: int, now: int) -> bool:
        """Whether a gate keeps back what the source dated so."""
        open_ = self._open.values()
        return any(g.splits(source, dated) and now >= g.time - self._limit for g in open_)

    def admits(self, source: str, dated: int, now: int) -> bool:
        """Whether what the source dated so may be admitted, and is.

        A gate is left behind by what comes more than the limit before its time.
        """
        if self.holds(source, dated, now):
            return False
        for gate in self._open.values():
            if gate.splits(source, dated):
                gate.told[source] = AHEAD
        return True

    def heard(self, source: str, upto: int) -> None:
        """All that the source committed up to there, by its own clock, is admitted."""
        for gate in self._open.values():
            if source in gate.sources and upto >= gate.time:
                gate.beyond.add(source)

    def due(self, now: int) -> Gate | None:
        """The gate that is to be closed now, if one is; who is missing then was silent."""
        if not self._open:
            return None
        gate = self._open[min(self._open)]
        missing = gate.missing()
        gate.told = {name: why for name, why in gate.told.items() if why != SILENT}
        if missing:
            if now < gate.since + self._limit:
                return None
            gate.told |= dict.fromkeys(missing, SILENT)
            return gate
        # who is ahead says nothing of when the time has come
        early = gate.time if AHEAD in gate.told.values() else gate.time - self._limit
        return gate if now >= early else None
