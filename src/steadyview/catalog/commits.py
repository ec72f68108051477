"""The commit table: the warehouse order of all transactions of all sources (law 4).

A flush is admitted in one catalog transaction, which is also what makes the flush exist. The table
holds runs: for a run (cn_from, source, seq_from, seq_to, time_from) and 0 <= i <= seq_to - seq_from

    transaction seq_from + i of the source  has  cn_from + i  and commit time  time_from + i  (us)

Invariant: cn is dense from 1; commit time is strictly increasing in cn, over restarts and with a
clock that is set back; per source, cn is increasing in seq and seq is dense.
cn 0 is the state before any transaction; its time is the warehouse's creation.

A time has a cn for good only if no later commit can get a time up to it. So every commit time is
above the last one and above a *floor*, which is kept here and raised before a time above both is
answered:  cn_at(t) is the same whenever it is asked, and cn_at(time_of(cn)) == cn.
A time that a gate has bound means its cn instead (`gates.py`), and nothing before it is bound.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from steadyview.catalog.clock import Clock, from_us
from steadyview.catalog.database import Database
from steadyview.catalog.gates import BoundTimes, forget_bound, left_behind
from steadyview.catalog.runs import AdmittedRun, cut, cut_seq
from steadyview.catalog.sources import store_lost
from steadyview.changes import Flush
from steadyview.crash_points import crash_point
from steadyview.errors import GateOpen, OutsideRetention, StorageUnavailable

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

_RUN = "SELECT cn_from, source, seq_from, seq_to, time_from FROM runs"


@dataclass(frozen=True)
class MeantCommit:
    """The cn that a time means. `bound`: by a gate, not exact for the sources in `told`."""

    cn: int
    bound: bool = False
    told: Mapping[str, str] = field(default_factory=dict)


class Commits:
    """The commit table.

    `trust` is called before anything is done by the clock, and raises where that cannot be trusted.
    """

    def __init__(self, database: Database, clock: Clock) -> None:
        self.trust: Callable[[], None] = lambda: None
        self._database = database
        self._clock = clock
        self._gates = BoundTimes(database)

    def admit(self, flush: Flush) -> AdmittedRun | None:
        """Make the flush exist and give its transactions their cn and commit time; its run.

        None if the flush holds no transaction. Repeating a flush changes nothing. Raises ValueError
        if it does not follow the source's last transaction.
        """
        self.trust()
        with self._database.write() as connection:
            done, last_seq = _source(connection, flush.source)
            if flush.number <= done:
                return self.run_of(flush.source, flush.seq_from)
            _check_dense(flush, last_seq)
            run = self._record(connection, flush)
        crash_point("admitted")
        return run

    def _record(self, connection: sqlite3.Connection, flush: Flush) -> AdmittedRun | None:
        cn, last, floor = connection.execute(
            "SELECT last_cn, last_time, floor FROM warehouse"
        ).fetchone()
        now = max(self._clock.now_us(), last + 1, floor + 1)
        connection.execute(
            "UPDATE sources SET position = ?, proof = ?, flush = ?, last_seq = max(last_seq, ?),"
            " admitted = ?, dated = max(dated, ?) WHERE name = ?",
            (
                flush.position,
                flush.proof,
                flush.number,
                flush.seq_to,
                now,
                flush.dated,
                flush.source,
            ),
        )
        left_behind(connection, flush.source, flush.dated)
        for lost in flush.lost:
            store_lost(connection, lost)
        if flush.seq_to < flush.seq_from:
            return None
        run = AdmittedRun(cn + 1, flush.source, flush.seq_from, flush.seq_to, now)
        _insert(connection, run)
        return run

    def last_cn(self) -> int:
        """The newest cn; 0 before the first transaction."""
        return self._one("SELECT last_cn FROM warehouse")

    def oldest_cn(self) -> int:
        """Commits before this cn are forgotten."""
        return self._one("SELECT oldest_cn FROM warehouse")

    def runs(self, cn_from: int, cn_to: int) -> list[AdmittedRun]:
        """The transactions cn_from..cn_to as runs in cn order, cut to that range."""
        first = "coalesce((SELECT max(cn_from) FROM runs WHERE cn_from <= ?1), ?1)"
        sql = f"{_RUN} WHERE cn_from BETWEEN {first} AND ?2 ORDER BY cn_from"
        found = (AdmittedRun(*row) for row in self._database.read(sql, (cn_from, cn_to)))
        return [cut(run, cn_from, cn_to) for run in found if run.cn_to >= cn_from]

    def runs_of(self, source: str, seq_from: int, seq_to: int) -> list[AdmittedRun]:
        """The transactions seq_from..seq_to of the source as runs in order, cut to that range."""
        first = "SELECT max(seq_from) FROM runs WHERE source = ?1 AND seq_from <= ?2"
        sql = (
            f"{_RUN} WHERE source = ?1 AND seq_from BETWEEN coalesce(({first}), ?2) AND ?3"
            " ORDER BY seq_from"
        )
        found = (AdmittedRun(*row) for row in self._database.read(sql, (source, seq_from, seq_to)))
        return [cut_seq(run, seq_from, seq_to) for run in found if run.seq_to >= seq_from]

    def run_of(self, source: str, seq: int) -> AdmittedRun | None:
        """The whole run that holds the source's transaction, None if not (or no longer) known."""
        sql = f"{_RUN} WHERE source = ? AND seq_from <= ? ORDER BY seq_from DESC LIMIT 1"
        run = self._run(sql, source, seq)
        return run if run and seq <= run.seq_to else None

    def cn_of(self, source: str, seq: int) -> int | None:
        """The cn of the source's transaction, None if it is not admitted (or no longer known)."""
        run = self.run_of(source, seq)
        return run.cn_from + seq - run.seq_from if run else None

    def transaction_of(self, cn: int) -> tuple[str, int]:
        """The source and seq of the transaction with this cn; OutsideRetention if not known."""
        run = self._run_at(cn)
        return run.source, run.seq_from + cn - run.cn_from

    def seq_upto(self, source: str, cn: int) -> int:
        """The source's last transaction at or before cn; 0 if there is none."""
        self._check_kept(cn)
        sql = f"{_RUN} WHERE source = ? AND cn_from <= ? ORDER BY cn_from DESC LIMIT 1"
        run = self._run(sql, source, cn)
        return min(run.seq_to, run.seq_from + cn - run.cn_from) if run else 0

    def first_after(self, source: str, cn: int) -> int | None:
        """The source's first transaction after a cn, by its own cn; None if there is none yet."""
        sql = (
            f"{_RUN} WHERE source = ? AND cn_from + seq_to - seq_from > ?"
            " ORDER BY cn_from LIMIT 1"
        )
        run = self._run(sql, source, cn)
        return None if run is None else max(run.cn_from, cn + 1)

    def last_upto(self, source: str, cn: int) -> int | None:
        """The source's last transaction at or before a cn, by its own cn; None if none is known."""
        sql = f"{_RUN} WHERE source = ? AND cn_from <= ? ORDER BY cn_from DESC LIMIT 1"
        run = self._run(sql, source, cn)
        return None if run is None else min(run.cn_to, cn)

    def time_of(self, cn: int) -> int:
        """The commit time of cn in microseconds; of cn 0, when the warehouse was created."""
        if cn == 0:
            return self._one("SELECT created FROM warehouse")
        run = self._run_at(cn)
        return run.time_from + cn - run.cn_from

    def cn_at(self, time: int) -> int:
        """The largest cn whose commit time is, or ever will be, at most `time`.

        OutsideRetention for a time to come, before the warehouse, or of a commit that is forgotten,
        GateOpen for one that is to be bound;
        StorageUnavailable if the floor is to be raised and the catalog cannot be written to.
        """
        return self.meant(time).cn

    def meant(self, time: int) -> MeantCommit:
        """The same, with what a gate has to do with it."""
        gate = self._gates.at(time)
        if gate is None:
            return MeantCommit(self._admitted_by(time))
        if gate.cn is None:
            if time > self._clock.now_us():
                raise self._no_state(time)
            raise _still_open(time, gate.sources)
        if gate.cn < self.oldest_cn():
            raise self._no_state(time)
        return MeantCommit(gate.cn, bound=True, told=gate.told)

    def _admitted_by(self, time: int) -> int:
        if time > self._settled():
            self._settle(time)
        run = self._run(f"{_RUN} WHERE time_from <= ? ORDER BY time_from DESC LIMIT 1", time)
        cn = min(run.cn_to, run.cn_from + time - run.time_from) if run else 0
        if time < self.time_of(0) or cn < self.oldest_cn():
            raise self._no_state(time)
        return cn

    def _settled(self) -> int:
        """No commit to come has a time up to this one."""
        return self._one("SELECT max(last_time, floor) FROM warehouse")

    def _settle(self, time: int) -> None:
        """Raise the floor to a time that has come."""
        if time > self._clock.now_us():
            raise self._no_state(time)
        self.trust()
        try:
            with self._database.write() as connection:
                connection.execute("UPDATE warehouse SET floor = max(floor, ?)", (time,))
        except StorageUnavailable as error:
            raise StorageUnavailable(
                f"which commit was the newest at {_text(time)} cannot be settled",
                detail=f"the catalog cannot be written to: {error.detail}",
                hint=f"ask for a time up to {_text(self._settled())}, or for a cn",
            ) from error

    def _no_state(self, time: int) -> OutsideRetention:
        oldest = self.time_of(self.oldest_cn())
        newest = max(self._clock.now_us(), self._settled())
        return OutsideRetention(
            f"no state of {_text(time)} is known",
            detail=f"times from {_text(oldest)} to {_text(newest)} can be asked for",
            hint="ask for one of these, or for a commit number",
        )

    def commit_rows(self, source: str, seq_from: int, seq_to: int) -> pa.Table:
        """(seq, cn) of the source's admitted transactions in the range, both int64, in order."""
        # imported late: `status` needs no arrays
        import numpy as np
        import pyarrow as pa

        runs = self.runs_of(source, seq_from, seq_to)
        starts = np.array([r.seq_from for r in runs], dtype=np.int64)
        lengths = np.array([r.seq_to - r.seq_from + 1 for r in runs], dtype=np.int64)
        offsets = np.array([r.cn_from for r in runs], dtype=np.int64) - starts
        before = np.cumsum(lengths) - lengths
        seq = np.arange(lengths.sum(), dtype=np.int64) + np.repeat(starts - before, lengths)
        return pa.table({"seq": seq, "cn": seq + np.repeat(offsets, lengths)})

    def times_of(self, cns: np.ndarray) -> np.ndarray:
        """The commit times of cns, in ascending order, in microseconds."""
        # imported late: `status` needs no arrays
        import numpy as np

        if not len(cns):
            return np.empty(0, dtype=np.int64)
        runs = self.runs(int(cns[0]), int(cns[-1]))
        first = np.array([run.cn_from for run in runs], dtype=np.int64)
        times = np.array([run.time_from for run in runs], dtype=np.int64)
        place = np.searchsorted(first, cns, side="right") - 1
        found: np.ndarray = times[place] + cns - first[place]
        return found

    def forget_before(self, cn: int) -> None:
        """Forget commits before cn; everything about cn and later stays known. Never goes back.

        Each source keeps its last run before cn, which says how far the source was then.
        """
        self.trust()
        keep = "SELECT max(cn_from) FROM runs WHERE cn_from <= ? GROUP BY source"
        with self._database.write() as connection:
            connection.execute(
                "UPDATE warehouse SET oldest_cn = max(oldest_cn, min(?, last_cn))", (cn,)
            )
            ((oldest,),) = connection.execute("SELECT oldest_cn FROM warehouse").fetchall()
            connection.execute(
                "DELETE FROM runs WHERE cn_from + seq_to - seq_from < ?"
                f" AND cn_from NOT IN ({keep})",
                (oldest, oldest),
            )
            forget_bound(connection, oldest, self.time_of(oldest))

    def _run_at(self, cn: int) -> AdmittedRun:
        run = self._run(f"{_RUN} WHERE cn_from <= ? ORDER BY cn_from DESC LIMIT 1", cn)
        if run is None or not run.cn_from <= cn <= run.cn_to:
            raise _outside(cn, self.oldest_cn(), self.last_cn())
        return run

    def _check_kept(self, cn: int) -> None:
        if not self.oldest_cn() <= cn <= self.last_cn():
            raise _outside(cn, self.oldest_cn(), self.last_cn())

    def _run(self, sql: str, *values: Any) -> AdmittedRun | None:
        found = self._database.read(sql, values)
        return AdmittedRun(*found[0]) if found else None

    def _one(self, sql: str) -> int:
        ((value,),) = self._database.read(sql)
        return int(value)


def _source(connection: sqlite3.Connection, name: str) -> tuple[int, int]:
    found = connection.execute("SELECT flush, last_seq FROM sources WHERE name = ?", (name,))
    row = found.fetchone()
    if row is None:
        raise KeyError(name)
    return int(row[0]), int(row[1])


def _check_dense(flush: Flush, last_seq: int) -> None:
    if flush.seq_to >= flush.seq_from and flush.seq_from != last_seq + 1:
        raise ValueError(
            f'flush {flush.number} of source "{flush.source}" starts at seq {flush.seq_from},'
            f" expected {last_seq + 1}"
        )


def _insert(connection: sqlite3.Connection, run: AdmittedRun) -> None:
    connection.execute(
        "INSERT INTO runs VALUES (?, ?, ?, ?, ?)",
        (run.cn_from, run.source, run.seq_from, run.seq_to, run.time_from),
    )
    last_time = run.time_from + run.seq_to - run.seq_from
    connection.execute("UPDATE warehouse SET last_cn = ?, last_time = ?", (run.cn_to, last_time))


def _text(time: int) -> str:
    """A commit time for people, with all its digits."""
    return f"{from_us(time):%Y-%m-%dT%H:%M:%S.%f}Z"


def _still_open(time: int, sources: tuple[str, ...]) -> GateOpen:
    return GateOpen(
        f"which commit {_text(time)} means is not known yet",
        detail=f"a gate is open there until all of its sources were heard from: {_listed(sources)}",
        hint="steadyview run, or run --once, closes it; wait for it with --wait, or ask for a cn",
    )


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _outside(cn: int, oldest: int, newest: int) -> OutsideRetention:
    return OutsideRetention(
        f"commit {cn} is not known", detail=f"commits {oldest} to {newest} are kept"
    )
