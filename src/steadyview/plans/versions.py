"""Making versions: of a source's answers and log, or of a node's rows and change; in Arrow.

For a window (a, b], an answer S that reflects the set P of transactions, and a log of changes
dR(s),

    R(a)  =  S  -  sum{ dR(s) : s in P, s > a }  +  sum{ dR(s) : s not in P, s <= a }

and R(k) follows by the steps dR(s), a < s <= k, reflected or not. One running sum per row makes
true versions of that: one at a time, none below one. Only the used columns count: a change of
others alone is no change.

One relation may have several answers in a batch, each to other keys, each with a P of its own. A
row belongs to the first answer that was asked for it. A logged row that belongs to none has just
its steps; it was there at least as often as it went.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from steadyview.plans.moves import BEGINNING, CN, FOREVER, FROM, TO, N

COUNT = "_count"
Step = tuple[int, int]
"""Steps of a node (a, b] are ascending and do not overlap: it has no state between a and b."""


@dataclass(frozen=True)
class Logged:
    """Changes of a relation: its columns, `_count` (signed) and `_cn` (FOREVER: not admitted)."""

    rows: pa.Table


@dataclass(frozen=True)
class Reply:
    """Rows of a relation, all those with one of `keys` in `column`; without a column, all.

    `reflects`: for every logged row, whether the rows show it.
    """

    rows: pa.Table
    reflects: np.ndarray
    column: str | None = None
    keys: pa.Array | None = None

    def belongs(self, rows: pa.Table) -> np.ndarray:
        """Which rows this reply is about, of any that the relation had."""
        if self.column is None or self.keys is None:
            return np.ones(rows.num_rows, dtype=bool)
        found = pc.is_in(rows.column(self.column), value_set=self.keys, skip_nulls=True)
        mine: np.ndarray = found.to_numpy(zero_copy_only=False).astype(bool)
        return mine


def step_ends(cns: np.ndarray, steps: Sequence[Step]) -> np.ndarray:
    """For each cn the end of the step that it lies in; the cn itself if it lies in none.

    >>> step_ends(np.array([3, 4, 6, 7]), [(3, 6)]).tolist()
    [3, 6, 6, 7]
    """
    if not steps:
        return cns
    lows, highs = np.array(steps, dtype=np.int64).T
    place = np.minimum(np.searchsorted(highs, cns, side="left"), len(steps) - 1)
    return np.where((cns > lows[place]) & (cns <= highs[place]), highs[place], cns)


def in_steps(log: Logged, steps: Sequence[Step]) -> Logged:
    """The log as if all of each step (a, b] had happened at once, at b; what reflects it stays.

    So versions have no states within a step, and what cancels there is nothing.

    >>> log = Logged(pa.table({"_count": [1, 1, -1, 1], "_cn": [3, 4, 6, 7]}))
    >>> in_steps(log, [(3, 6)]).rows["_cn"].to_pylist()
    [3, 6, 6, 7]
    """
    moved = step_ends(log.rows[CN].to_numpy(), steps)
    place = log.rows.schema.get_field_index(CN)
    return Logged(log.rows.set_column(place, CN, pa.array(moved, pa.int64())))


def versions(
    columns: Sequence[str], log: Logged, replies: Sequence[Reply], after: int, upto: int
) -> pa.Table:
    """The versions of the columns over (after, upto], complete for what the replies are about."""
    cn = log.rows.column(CN).to_numpy()
    count = log.rows.column(COUNT).to_numpy().astype(np.int64)
    inside = (cn > after) & (cn <= upto)
    parts = [log.rows.select(columns).filter(pa.array(inside))]
    times, steps = [cn[inside]], [count[inside]]
    unowned = np.ones(log.rows.num_rows, dtype=bool)
    earlier: list[Reply] = []
    for reply in replies:
        own = reply.belongs(log.rows) & unowned
        unowned &= ~own
        rows = reply.rows.select(columns)
        fresh = np.ones(rows.num_rows, dtype=bool)
        for other in earlier:
            fresh &= ~other.belongs(reply.rows)
        earlier.append(reply)
        back = own & reply.reflects & (cn > after)
        forth = own & ~reply.reflects & (cn <= after)
        for table, change in (
            (rows.filter(pa.array(fresh)), np.ones(int(fresh.sum()), dtype=np.int64)),
            (log.rows.select(columns).filter(pa.array(back)), -count[back]),
            (log.rows.select(columns).filter(pa.array(forth)), count[forth]),
        ):
            parts.append(table)
            times.append(np.full(table.num_rows, BEGINNING))
            steps.append(change)
    return _running(pa.concat_tables(parts), np.concatenate(times), np.concatenate(steps))


def _running(rows: pa.Table, times: np.ndarray, steps: np.ndarray) -> pa.Table:
    """One running sum per row, begun so high that it is never below zero."""
    identity = numbered(rows)
    lacking = _lacking(identity, times, steps)
    low = np.flatnonzero(lacking)
    place = np.concatenate([np.arange(len(identity)), _first_places(identity)[low]])
    identity = np.concatenate([identity, low])
    times = np.concatenate([times, np.full(len(low), BEGINNING)])
    steps = np.concatenate([steps, lacking[low]])
    order, starts = _sorted(identity, times)
    summed = np.add.reduceat(steps[order], starts) if len(starts) else steps
    # where steps cancel nothing ends: an update of other columns is none of these
    first, summed = order[starts][summed != 0], summed[summed != 0]
    identity, times, place = identity[first], times[first], place[first]
    level = _levels(identity, summed)
    ends = np.full(len(times), FOREVER)
    same = identity[1:] == identity[:-1]
    ends[:-1][same] = times[1:][same]
    held = level != 0
    found = rows.take(pa.array(place[held]))
    for name, values in ((N, level), (FROM, times), (TO, ends)):
        found = found.append_column(name, pa.array(values[held].astype(np.int64)))
    return found


def numbered(rows: pa.Table) -> np.ndarray:
    """A number per row, the same for equal rows; NULL equals NULL. Dense, from zero."""
    number = np.zeros(rows.num_rows, dtype=np.int64)
    for column in rows.columns:
        codes = column.combine_chunks().dictionary_encode(null_encoding="encode").indices
        wide = number * (len(codes) + 1) + codes.to_numpy(zero_copy_only=False)
        number = np.unique(wide, return_inverse=True)[1].astype(np.int64)
    return number


def _first_places(identity: np.ndarray) -> np.ndarray:
    return np.unique(identity, return_index=True)[1]


def _sorted(identity: np.ndarray, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """An order by row and time, and where in it each (row, time) starts."""
    order = np.lexsort((times, identity))
    row, time = identity[order], times[order]
    first = np.ones(len(order), dtype=bool)
    first[1:] = (row[1:] != row[:-1]) | (time[1:] != time[:-1])
    return order, np.flatnonzero(first)


def _lacking(identity: np.ndarray, times: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """How often each row must have been there at the beginning beyond what is known."""
    if not len(identity):
        return np.zeros(0, dtype=np.int64)
    order, starts = _sorted(identity, times)
    row = identity[order][starts]
    level = _levels(row, np.add.reduceat(steps[order], starts))
    return np.maximum(-np.minimum.reduceat(level, _begins(row)), 0)


def _levels(identity: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Running sums per row."""
    if not len(steps):
        return steps
    total = np.cumsum(steps)
    begins = _begins(identity)
    lengths = np.diff(begins, append=len(steps))
    levels: np.ndarray = total - np.repeat(total[begins] - steps[begins], lengths)
    return levels


def _begins(identity: np.ndarray) -> np.ndarray:
    return np.flatnonzero(np.concatenate([[True], identity[1:] != identity[:-1]]))
