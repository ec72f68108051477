"""Audits: does what the log says add up to what the source holds?

    count and sum of row hashes of R at cn  ==  those of the last audit  +  the log of R since

Some faults leave no other trace: rows written with triggers off, a table taken out of the stream
and put back unseen. An audit reads each relation once a day, whole, from a frozen state that is
compensated to one cn. The first audit of a relation, and the first after a known loss or a change
of its columns, has nothing to be compared with: it is what the next one compares with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from steadyview.catalog.audits import Audit
from steadyview.changes import Loss, RelationSchema
from steadyview.changes.types import COUNT, SEQ
from steadyview.engine.failures import spark_told
from steadyview.engine.frames import Frames, column_ddl
from steadyview.engine.session import beside
from steadyview.query.as_of import Reflection, RelationsAsOf
from steadyview.runtime.moment import Moment, WaitFor, admitted_since, open_moment
from steadyview.runtime.parts import Parts

EVERY = 24 * 3600
"""Seconds between two audits of a relation."""


@dataclass(frozen=True)
class Unequal:
    """A relation that is not what its log leads to: the loss, and what was found instead."""

    lost: Loss
    found: Audit


class Auditor:
    """Audits the relations of one warehouse; the caller holds the lease."""

    def __init__(self, parts: Parts, wait_for: WaitFor) -> None:
        self._parts = parts
        self._wait_for = wait_for

    def due(self, sources: Sequence[str]) -> list[str]:
        """Those of the sources with a relation that was not audited for a day."""
        settings = self._parts.project.sources
        since = self._parts.clock.now_us() - EVERY * 1_000_000
        return [s for s in sources if settings[s]["audit"] != "off" and self._oldest(s) <= since]

    def _oldest(self, source: str) -> int:
        audits = self._parts.catalog.audits.last(source)
        relations = self._parts.catalog.sources.schemas(source)
        return min((audits[r.name].at if r.name in audits else 0 for r in relations), default=0)

    def audit(self, source: str) -> list[Unequal]:
        """Read the source's relations and compare; the relations that do not add up.

        Each of these is due again until `accept` is called: first its views have to be stopped.
        """
        catalog = self._parts.catalog
        frames = Frames(beside(self._parts.spark))
        unequal = []
        with (
            spark_told(self._parts.root),
            self._parts.work_folder("audit") as folder,
            open_moment([self._parts.sources[source]], self._wait_for, catalog) as moment,
        ):
            for relation in catalog.sources.schemas(source):
                found = self._read(frames, folder, relation, moment)
                lost = self._compared(frames, relation, found)
                if lost is None:
                    catalog.audits.keep(found)
                else:
                    unequal.append(Unequal(lost, found))
        return unequal

    def accept(self, unequal: Unequal) -> None:
        """The views are stopped: what was found is what the next audit compares with."""
        self._parts.catalog.audits.keep(unequal.found)

    def _read(
        self, frames: Frames, folder: Path, relation: RelationSchema, moment: Moment
    ) -> Audit:
        source, columns = relation.name.source, tuple(range(len(relation.columns)))
        admitted = admitted_since(
            source, moment, moment.upto, self._parts.catalog, self._parts.log
        )
        reflection = Reflection(admitted.first, admitted.cn, admitted.reflected)
        relations = RelationsAsOf(frames, folder, self._parts.log, moment.upto)
        rows = relations.view(relation, columns, moment.snapshots[source], reflection)
        named = [f"`{c.name.replace('`', '``')}`" for c in relation.columns]
        count, hashes = _summed(frames, f"SELECT 1L AS n, {_hash(named)} AS h FROM {rows}")
        now = self._parts.clock.now_us()
        return Audit(relation.name, moment.upto, count, hashes, columns, now)

    def _compared(self, frames: Frames, relation: RelationSchema, found: Audit) -> Loss | None:
        last = self._parts.catalog.audits.last(relation.name.source).get(relation.name)
        if last is None or last.columns != found.columns or self._broken_since(relation, last):
            return None
        rows, hashes = self._logged(frames, relation, last.cn, found.cn)
        if (last.rows + rows, last.hashes + hashes) == (found.rows, found.hashes):
            return None
        expected = last.rows + rows
        differs = "other rows" if expected == found.rows else f"{found.rows:,} rows"
        reason = (
            f'changes of "{relation.name}" are not all known: it has {differs} at cn {found.cn},'
            f" where the changes since cn {last.cn} lead to {expected:,}"
        )
        return Loss(relation.name, None, 0, reason)

    def _broken_since(self, relation: RelationSchema, last: Audit) -> bool:
        """Whether the log is known not to lead from the last audit to now."""
        catalog = self._parts.catalog
        if catalog.commits.oldest_cn() > last.cn:
            return True
        seq = catalog.commits.seq_upto(relation.name.source, last.cn)
        losses = (loss for loss in catalog.sources.losses() if loss.relation == relation.name)
        return any(loss.seq > seq for loss in losses)

    def _logged(
        self, frames: Frames, relation: RelationSchema, after: int, upto: int
    ) -> tuple[int, int]:
        """What the log adds to count and hashes in (after, upto]."""
        commits, source = self._parts.catalog.commits, relation.name.source
        first, last = commits.seq_upto(source, after) + 1, commits.seq_upto(source, upto)
        files = self._parts.log.files(relation.name, first, last) if first <= last else []
        columns = range(len(relation.columns))
        ddl = f"{column_ddl(relation, columns)}, {COUNT} INT, {SEQ} BIGINT"
        log = frames.parquet("audited_log", files, ddl)
        hashed = _hash([f"c{i}" for i in columns])
        return _summed(
            frames,
            f"SELECT CAST({COUNT} AS BIGINT) AS n, {COUNT} * {hashed} AS h FROM {log}"
            f" WHERE {SEQ} BETWEEN {first} AND {last}",
        )


def _hash(columns: Sequence[str]) -> str:
    return f"CAST(XXHASH64({', '.join(columns)}) AS DECIMAL(38,0))"


def _summed(frames: Frames, rows: str) -> tuple[int, int]:
    found = frames.spark.sql(
        f"SELECT COALESCE(SUM(n), 0), COALESCE(SUM(CAST(h AS DECIMAL(38,0))), 0) FROM ({rows})"
    ).first()
    assert found is not None
    return int(found[0]), int(found[1])
