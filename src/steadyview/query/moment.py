"""A moment: one frozen state per source, and which admitted transactions each of them shows.

Order of opening (design: compensation, set at a time): freeze every source; wait until capture has
passed each horizon, so that every reflected transaction is admitted; read the newest cn, which is
the batch's end b. Then, per source, for the transactions that may matter:

    reflected(s)  =  s is settled (some earlier snapshot showed it)  or  this snapshot shows s
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import TracebackType

import numpy as np

from steadyview.catalog import Catalog
from steadyview.changes import RelationName, StreamPosition, Transaction
from steadyview.engine.tagged_log import Admitted
from steadyview.errors import about
from steadyview.sources.contract import Snapshot, Source
from steadyview.update_log import UpdateLog

WaitFor = Callable[[str, StreamPosition], None]
"""Return when everything the source committed before the position is admitted."""


@dataclass
class Moment:
    """The batch's end and the frozen sources. Close it, also on failure.

    `newest`: the last cn that was admitted when the sources were frozen. A first state may be of an
    earlier cn, `upto`; then relations may be `stored`: files with all their rows, one per copy,
    that reflect exactly the transactions up to `upto` and need neither source nor log.
    """

    upto: int
    snapshots: Mapping[str, Snapshot]
    settled: Mapping[str, int]
    newest: int
    stored: Mapping[RelationName, Sequence[str]] = field(default_factory=dict)

    def at(self, cn: int, stored: Mapping[RelationName, Sequence[str]]) -> Moment:
        """The same frozen sources for a first state at an earlier cn."""
        return replace(self, upto=cn, stored=stored)

    def __enter__(self) -> Moment:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for snapshot in self.snapshots.values():
            snapshot.close()


def open_moment(sources: Iterable[Source], wait_for: WaitFor, catalog: Catalog) -> Moment:
    """Freeze the sources and admit everything they show."""
    snapshots: dict[str, Snapshot] = {}
    # read before freezing: what settles later may be younger than the states frozen here
    settled = {s.name: s.settled for s in catalog.sources.states()}
    try:
        for source in sources:
            with about(source.name):
                snapshots[source.name] = source.snapshot()
        for name, snapshot in snapshots.items():
            wait_for(name, snapshot.horizon)
    except BaseException:
        for snapshot in snapshots.values():
            snapshot.close()
        raise
    last = catalog.commits.last_cn()
    return Moment(last, snapshots, settled, last)


def admitted_since(
    source: str, moment: Moment, after: int, catalog: Catalog, log: UpdateLog
) -> Admitted:
    """The source's transactions after cn `after` or not settled, of all that the moment knows."""
    settled = moment.settled[source]
    first = min(settled, catalog.commits.seq_upto(source, after)) + 1
    last = catalog.commits.seq_upto(source, moment.newest)
    cn = catalog.commits.commit_rows(source, first, last)["cn"].to_numpy()
    reflected = np.ones(len(cn), dtype=bool)
    unsettled = max(settled + 1, first)
    if unsettled <= last:
        # a transaction without rows (a column was lost in it) is in no log and matters to nobody
        known = log.transactions(source, unsettled, last)
        shown = _shown(moment.snapshots[source], known["tx"].to_numpy())
        reflected[known["seq"].to_numpy() - first] = shown
    return Admitted(first, cn, reflected)


def _shown(snapshot: Snapshot, ids: np.ndarray) -> np.ndarray:
    asked = (Transaction(0, int(i), 0, 0) for i in ids)
    return np.fromiter((snapshot.reflects(t) for t in asked), dtype=bool, count=len(ids))


def settled_upto(admitted: Admitted) -> int:
    """The last seq before the first transaction that the snapshot does not show."""
    hidden = np.flatnonzero(~admitted.reflected)
    return admitted.first + (int(hidden[0]) if len(hidden) else len(admitted.cn)) - 1
