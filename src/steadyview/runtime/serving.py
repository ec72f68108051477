"""Reads: one view, several views in one query, a view's history."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from steadyview.catalog import Catalog, MeantCommit, ViewRow, from_us, to_us
from steadyview.errors import OutsideRetention, QueryRefused
from steadyview.runtime.bound_times import ShownTime, shown_times, sources_of
from steadyview.runtime.kept import recalled
from steadyview.runtime.parts import Parts
from steadyview.runtime.state_kept import check_kept, gap_at
from steadyview.update_log import UpdateLog
from steadyview.warehouse.history import changes
from steadyview.warehouse.states import States, check_readable
from steadyview.warehouse.view_store import ViewStore

At = int | datetime | str | None


@dataclass(frozen=True)
class Commit:
    """A commit that changed a view: which source's transaction, how many visible rows.

    `since`: the view took all that came after that cn in one step, of which this was the last; or
    so many `commits` that changed it were compressed, which are told by their net effect.
    `bound`: the times that gates have bound to what the view showed from then on.
    """

    cn: int
    time: datetime
    source: str
    transaction: int
    added: int
    removed: int
    since: int | None = None
    commits: int | None = None
    bound: tuple[ShownTime, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """For JSON; times in ISO format."""
        told = {"time": self.time.isoformat(timespec="microseconds")}
        return {**asdict(self), **told, "bound": [shown.to_dict() for shown in self.bound]}


def resolve(catalog: Catalog, at: int | datetime | str) -> int:
    """The cn that a cn, a time or an ISO text means, for good. A time without zone is UTC."""
    return meant_at(catalog, at)[1].cn


def meant_at(
    catalog: Catalog, at: int | datetime | str
) -> tuple[datetime | None, MeantCommit]:
    """The same, with the time (None: it is a cn), and what a gate has to do with it."""
    if isinstance(at, int):
        return None, MeantCommit(at)
    moment = datetime.fromisoformat(at) if isinstance(at, str) else at
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return moment.astimezone(UTC), catalog.commits.meant(to_us(moment))


def read(parts: Parts, spark: SparkSession, row: ViewRow, at: At) -> DataFrame:
    """A view's rows at a cn or time, the newest by default."""
    check_readable(row, row.cn or 0)
    cn = row.cn if at is None else resolve(parts.catalog, at)
    assert cn is not None
    return rows_at(parts, spark, row.name, cn)


def check_not_refused(row: ViewRow) -> None:
    """QueryRefused for a view that is refused: it has no rows."""
    if row.state == "refused":
        raise QueryRefused(
            f'view "{row.name}" is refused, so it has no rows',
            detail=f"{row.code}: {row.error}",
            hint="steadyview check shows the place in its file",
        )


def rows_at(parts: Parts, spark: SparkSession, name: str, cn: int) -> DataFrame:
    """A view's rows at exactly this cn."""
    row = row_of(parts.catalog, name)
    while True:
        bases, read = parts.catalog.views.bases(row.id), row.id
        # after the bases: a view delta that reaches as far as the newest of them
        row = row_of(parts.catalog, name)
        if row.id == read:
            break
    store = ViewStore(parts.root, row, recalled(row).shape)
    check_kept(parts.catalog, store, row, cn)
    return States(spark, store).visible(row, bases, cn)


def rows_reaching(parts: Parts, spark: SparkSession, row: ViewRow, cn: int) -> DataFrame:
    """The rows at this cn of the very view of this row, which may go beyond what it shows."""
    bases = parts.catalog.views.bases(row.id)
    # after the bases: a view delta that reaches as far as the newest of them
    now = parts.catalog.views.row(row.id)
    upto, version = max(now.cn or 0, row.cn or 0), (now.delta_version, row.delta_version)
    row = replace(now, cn=upto, delta_version=max(v or 0 for v in version))
    store = ViewStore(parts.root, row, recalled(row).shape)
    check_kept(parts.catalog, store, row, cn)
    return States(spark, store).visible(row, bases, cn)


def row_of(catalog: Catalog, name: str) -> ViewRow:
    """The view as kept; OutsideRetention if it is not, or not any more."""
    row = catalog.views.find(name)
    if row is None:
        raise no_state(name)
    return row


def no_state(name: str) -> OutsideRetention:
    """The view is none that the warehouse has rows of."""
    hint = "steadyview run builds its first state"
    return OutsideRetention(f'view "{name}" has no state yet', hint=hint)


def history(parts: Parts, row: ViewRow, limit: int) -> list[Commit]:
    """The newest commits that changed the view, newest first."""
    store = ViewStore(parts.root, row, recalled(row).shape)
    ranges = [gap for gap in parts.catalog.gaps.of([row.id]) if gap.compressed]
    found = changes(store, row, ranges, limit)
    gaps = {c.cn: gap_at(parts.catalog, row, c.cn - 1) for c in found}
    places = {c.cn: parts.catalog.commits.transaction_of(c.cn) for c in found}
    ids = _transaction_ids(parts.log, places.values())
    read = sources_of(row, {r.id: r for r in parts.catalog.views.all()})
    until = [parts.catalog.commits.last_cn(), *(c.cn - 1 for c in found)]
    return [
        Commit(
            c.cn,
            from_us(parts.catalog.commits.time_of(c.cn)),
            places[c.cn][0],
            ids.get(places[c.cn], places[c.cn][1]),
            c.added,
            c.removed,
            None if (gap := gaps[c.cn]) is None else gap.low,
            None if gap is None else gap.commits,
            tuple(shown_times(parts.catalog, c.cn, last, read)),
        )
        for c, last in zip(found, until, strict=False)
    ]


def _transaction_ids(
    log: UpdateLog, places: Iterable[tuple[str, int]]
) -> dict[tuple[str, int], int]:
    """What the sources call these (source, seq) transactions; the log is read once per source."""
    by_source: dict[str, list[int]] = {}
    for source, seq in places:
        by_source.setdefault(source, []).append(seq)
    return {
        (source, row["seq"]): row["tx"]
        for source, seqs in by_source.items()
        for row in log.transactions(source, min(seqs), max(seqs)).to_pylist()
    }
