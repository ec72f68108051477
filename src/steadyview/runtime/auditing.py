"""Audits: does what the log says add up to what the source holds?

    count and sums of hashes of R at cn  ==  those of the last audit  +  the log of R since

Some faults leave no other trace: rows written with triggers off, a table taken out of the stream
and put back unseen. An audit reads each relation once a day, whole, from a frozen state that is
compensated to one cn. Compared are whole rows, and, where a column was lost or came since the last
audit, every other column by itself. The first audit of a relation, and the first after it was lost,
has nothing to be compared with: it is what the next one compares with; the log between two audits
is kept for that (`housekeeping`). What cannot be audited is told in `status`, and tried again a day
later; nothing else depends on it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from steadyview.catalog.audits import WHOLE, Audit
from steadyview.changes import Loss, RelationSchema, StreamPosition, Transaction
from steadyview.changes.types import COUNT, SEQ
from steadyview.engine.failures import spark_told
from steadyview.engine.frames import Frames, column_ddl
from steadyview.engine.session import beside
from steadyview.errors import ColumnLost, SteadyviewError, TransientError
from steadyview.query.as_of import RelationsAsOf
from steadyview.query.moment import Moment, WaitFor, admitted_since, open_moment
from steadyview.runtime.parts import Parts
from steadyview.sources.contract import Read, ReadTask, Snapshot, Span

EVERY = 24 * 3600
"""Seconds between two audits of a relation."""
_GROUP = "steadyview audit"
FIRST_WAIT, LONGEST_WAIT = 60.0, 3600.0
"""Seconds until an audit that could not be finished is tried again, and at most."""


@dataclass(frozen=True)
class Unequal:
    """A relation that is not what its log leads to: the loss, and what was found instead."""

    lost: Loss
    found: Audit


class Ended(Exception):
    """The audit was told to end."""


class Auditor:
    """Audits the relations of one warehouse; the caller holds the lease.

    `audit` runs in a thread of its own, one at a time, and nothing else is called meanwhile but
    `end`, which sets an event.
    """

    def __init__(self, parts: Parts, wait_for: WaitFor) -> None:
        self._parts = parts
        self._wait_for = wait_for
        self._ending = threading.Event()
        self._reading = False
        self._again: dict[str, tuple[float, float]] = {}
        """Sources that could not be audited for now: when to try again, and how long that was."""

    def due(self, sources: Sequence[str]) -> list[str]:
        """Those of the sources with a relation that was not audited for a day."""
        settings = self._parts.project.sources
        now, since = time.monotonic(), self._parts.clock.now_us() - EVERY * 1_000_000
        asked = [s for s in sources if settings[s]["audit"] != "off"]
        rested = [s for s in asked if self._again.get(s, (0.0, 0.0))[0] <= now]
        return [s for s in rested if self._overdue(s, since)]

    def _overdue(self, source: str, since: int) -> list[RelationSchema]:
        audits = self._parts.catalog.audits.last(source)
        relations = self._parts.catalog.sources.schemas(source)
        return [r for r in relations if r.name not in audits or audits[r.name].at <= since]

    def end(self) -> None:
        """End the audit under way, soon; it stays due. Repeat it until it has ended."""
        self._ending.set()
        if self._reading:
            self._parts.spark.sparkContext.cancelJobGroup(_GROUP)

    def may_begin(self) -> None:
        """Nobody waits for the end of an audit any more."""
        self._ending.clear()

    def audit(self, source: str) -> list[Unequal]:
        """Read the source's relations that are due and compare; those that do not add up.

        Each of these is due again until `accept` is called: first its views have to be stopped.
        Raises nothing but faults of ours: an audit is no condition of anything.
        """
        try:
            found = self._audit(source)
        except Ended:
            return []
        except (SteadyviewError, PySparkException, Py4JError):
            if self._ending.is_set():
                return []
            # the source, the disk or Spark: told by the batches, which meet the same
            _, wait = self._again.get(source, (0.0, FIRST_WAIT / 2))
            wait = min(wait * 2, LONGEST_WAIT)
            self._again[source] = (time.monotonic() + wait, wait)
            return []
        finally:
            self._reading = False
        self._again.pop(source, None)
        return found

    def _audit(self, source: str) -> list[Unequal]:
        since = self._parts.clock.now_us() - EVERY * 1_000_000
        overdue = {r.name for r in self._overdue(source, since)}
        catalog = self._parts.catalog
        before = self._known(source)
        frames = Frames(beside(self._parts.spark))
        frames.spark.sparkContext.setJobGroup(_GROUP, _GROUP, interruptOnCancel=True)
        self._reading = True
        unequal = []
        with (
            spark_told(self._parts.root),
            self._parts.work_folder("audit") as folder,
            open_moment([self._parts.sources[source]], self._wait_for, catalog) as moment,
        ):
            for relation in catalog.sources.schemas(source):
                if relation.name not in overdue:
                    continue
                if self._ending.is_set():
                    raise Ended
                found = self._read(frames, folder, relation, moment)
                lost, found = self._compared(frames, relation, found)
                if self._known(source) != before:
                    # something was lost meanwhile, perhaps of this: the next one sees clearly
                    raise Ended
                if lost is None:
                    catalog.audits.keep(found)
                else:
                    unequal.append(Unequal(lost, found))
        return unequal

    def _known(self, source: str) -> object:
        """Changes when something of the source was lost."""
        sources = self._parts.catalog.sources
        lost = {x for x in sources.losses() if x.relation.source == source}
        return {r.name: r.evidence for r in sources.schemas(source)}, lost

    def accept(self, unequal: Unequal) -> None:
        """The views are stopped: what was found is what the next audit compares with."""
        self._parts.catalog.audits.keep(unequal.found)

    def _read(
        self, frames: Frames, folder: Path, relation: RelationSchema, moment: Moment
    ) -> Audit:
        """The relation as it is; columns that cannot be read are left out, with the reason."""
        columns, lost = list(range(len(relation.columns))), []
        now = self._parts.clock.now_us()
        while columns:
            try:
                with spark_told(self._parts.root):
                    rows, hashes = self._sums(frames, folder, relation, columns, moment)
            except ColumnLost as error:
                lost.append(error)
                names = [relation.columns[i].name for i in columns]
                if error.column not in names:
                    break
                columns.remove(columns[names.index(error.column)])
            except TransientError:
                raise
            except SteadyviewError as error:
                return Audit(relation.name, moment.upto, 0, {}, now, _untold(relation, error))
            else:
                part = f'column "{lost[0].column}" of ' if lost else ""
                told = _untold(relation, lost[0], part) if lost else None
                return Audit(relation.name, moment.upto, rows, hashes, now, told)
        return Audit(relation.name, moment.upto, 0, {}, now, _untold(relation, lost[0]))

    def _sums(
        self,
        frames: Frames,
        folder: Path,
        relation: RelationSchema,
        columns: Sequence[int],
        moment: Moment,
    ) -> tuple[int, dict[str, int]]:
        source = relation.name.source
        admitted = admitted_since(
            source, moment, moment.upto, self._parts.catalog, self._parts.log
        )
        relations = RelationsAsOf(frames, folder, self._parts.log, moment.upto)
        snapshot = _Interruptible(moment.snapshots[source], self._ending)
        rows = relations.view(relation, tuple(columns), snapshot, admitted)
        named = {name: [_quoted(name)] for name in (relation.columns[i].name for i in columns)}
        return _summed(frames, rows, "1L", {**named, WHOLE: [c for (c,) in named.values()]})

    def _compared(
        self, frames: Frames, relation: RelationSchema, found: Audit
    ) -> tuple[Loss | None, Audit]:
        """What is wrong, if anything; and the audit to keep."""
        last = self._parts.catalog.audits.last(relation.name.source).get(relation.name)
        if last is None or not last.hashes or not found.hashes:
            return None, found
        if self._parts.catalog.commits.oldest_cn() > last.cn:
            gone = f'"{relation.name}" could not be compared with its audit at cn {last.cn}'
            told = f"{gone}: the changes since then are not kept any more"
            return None, replace(found, error=found.error or told)
        lost = self._lost_since(relation, last)
        if None in lost:
            return None, found
        same = (last.columns & found.columns) - lost
        if last.columns == found.columns == same:
            same |= {WHOLE} & last.hashes.keys()
        if not same:
            return None, found
        rows, hashes = self._logged(frames, relation, last.cn, found.cn, same)
        expected = last.rows + rows
        if expected == found.rows and all(
            last.hashes[c] + hashes[c] == found.hashes[c] for c in same
        ):
            return None, found
        differs = "other rows" if expected == found.rows else f"{found.rows:,} rows"
        reason = (
            f'changes of "{relation.name}" are not all known: it has {differs} at cn {found.cn},'
            f" where the changes since cn {last.cn} lead to {expected:,}"
        )
        return Loss(relation.name, None, 0, reason), found

    def _lost_since(self, relation: RelationSchema, last: Audit) -> set[str | None]:
        """The columns whose values the log lacks since the last audit; None: all of it."""
        catalog = self._parts.catalog
        seq = catalog.commits.seq_upto(relation.name.source, last.cn)
        losses = (x for x in catalog.sources.losses() if x.relation == relation.name)
        return {x.column for x in losses if x.seq > seq}

    def _logged(
        self,
        frames: Frames,
        relation: RelationSchema,
        after: int,
        upto: int,
        wanted: frozenset[str] | set[str],
    ) -> tuple[int, dict[str, int]]:
        """What the log adds to the count and to the wanted sums in (after, upto]."""
        commits, source = self._parts.catalog.commits, relation.name.source
        first, last = commits.seq_upto(source, after) + 1, commits.seq_upto(source, upto)
        files = self._parts.log.files(relation.name, first, last) if first <= last else []
        named = {c.name: i for i, c in enumerate(relation.columns) if c.name in wanted}
        ddl = f"{column_ddl(relation, named.values())}, {COUNT} INT, {SEQ} BIGINT"
        log = frames.parquet("audited_log", files, ddl)
        listed = {name: [f"c{i}"] for name, i in named.items()}
        if WHOLE in wanted:
            listed[WHOLE] = [c for (c,) in listed.values()]
        rows = f"(SELECT * FROM {log} WHERE {SEQ} BETWEEN {first} AND {last})"
        return _summed(frames, rows, f"CAST({COUNT} AS BIGINT)", listed)


class _Interruptible:
    """A snapshot whose local reads end when somebody wants the audit to end."""

    def __init__(self, snapshot: Snapshot, ending: threading.Event) -> None:
        self._snapshot = snapshot
        self._ending = ending

    @property
    def horizon(self) -> StreamPosition:
        return self._snapshot.horizon

    def reflects(self, transaction: Transaction) -> bool:
        return self._snapshot.reflects(transaction)

    def spans(self, relation: RelationSchema, rows: int) -> Sequence[Span]:
        return self._snapshot.spans(relation, rows)

    def close(self) -> None:
        self._snapshot.close()

    def tasks(self, read: Read, parallelism: int = 1) -> Sequence[ReadTask]:
        found = self._snapshot.tasks(read, parallelism)
        return [_Watched(task, self._ending) if task.local else task for task in found]


class _Watched:
    local = True

    def __init__(self, task: ReadTask, ending: threading.Event) -> None:
        self._task = task
        self._ending = ending

    def batches(self) -> Iterator[pa.RecordBatch]:
        for batch in self._task.batches():
            if self._ending.is_set():
                raise Ended
            yield batch


def _untold(relation: RelationSchema, error: SteadyviewError, part: str = "") -> str:
    return f'{part}"{relation.name}" is not audited: {error.message}'


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def _hash(columns: Sequence[str]) -> str:
    """Spark's own hash passes NULLs over: flags tell where they are."""
    flagged = ", ".join(f"{c}, {c} IS NULL" for c in columns)
    return f"CAST(XXHASH64({flagged}) AS DECIMAL(38,0))"


def _summed(
    frames: Frames, rows: str, count: str, columns: Mapping[str, Sequence[str]]
) -> tuple[int, dict[str, int]]:
    """The sum of `count`, and for each name the sum of the hashes of its columns, `count` times."""
    sums = [f"COALESCE(SUM({count} * {_hash(listed)}), 0)" for listed in columns.values()]
    found = frames.spark.sql(
        f"SELECT COALESCE(SUM({count}), 0), {', '.join(sums)} FROM {rows}"
    ).first()
    assert found is not None
    return int(found[0]), dict(zip(columns, map(int, found[1:]), strict=True))
