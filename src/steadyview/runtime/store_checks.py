"""What there is to know of served views, and whether a store has what its views have."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steadyview.catalog import Catalog, ViewRow
from steadyview.errors import ConfigError, SteadyviewError, StoreUnavailable
from steadyview.runtime.managers.record_view import LOG_LEVEL, LOG_WAY
from steadyview.runtime.project import ProjectConfig
from steadyview.runtime.served_rows import (
    LEVEL,
    WAY,
    layout_of,
    open_project_store,
    served_views,
    store_of,
)
from steadyview.serving.contract import RecordStore, ServedView
from steadyview.serving.layout import CHANGES, Records

if TYPE_CHECKING:
    import pyarrow as pa

    from steadyview.query.verify import Verification
    from steadyview.runtime.parts import Parts

_TRIES = 20
_MOVED_ON = 0.5
"""Seconds until records that moved on are looked at again."""


@dataclass(frozen=True)
class ServedStatus:
    """A view in a store: everything up to `cn` is in it, `behind` commits less than the view shows.

    `state`: serving, stopped (see `error`), not built yet, or away: the store does not answer.
    `behind_seconds`: since the first commit that the view shows and the store does not. `rebuilt`:
    why its records were written anew last. Of a view that is served from the log, `streams` are the
    registered positions, `managers` how many have streams of it, and `behind` counts transactions.
    """

    view: str
    store: str
    family: str
    state: str
    key: list[str]
    way: str
    level: str
    cn: int | None = None
    behind: int | None = None
    behind_seconds: float | None = None
    records: int | None = None
    tombstones: int | None = None
    floor: int | None = None
    rebuilt: str | None = None
    error: str | None = None
    streams: Mapping[str, int] = field(default_factory=dict)
    managers: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def all_served(project: ProjectConfig, catalog: Catalog, now: int) -> list[ServedStatus]:
    """Where every served view stands, as the stores say it."""
    found = []
    rows = served_views(catalog)
    for name in dict.fromkeys(str(store_of(row)) for row in rows):
        mine = [row for row in rows if store_of(row) == name]
        found += _of_store(project, catalog, name, mine, now)
    return sorted(found, key=lambda status: status.view)


def _of_store(
    project: ProjectConfig, catalog: Catalog, name: str, rows: Sequence[ViewRow], now: int
) -> list[ServedStatus]:
    family = str(project.stores[name]["type"]) if name in project.stores else "unknown"
    try:
        with open_project_store(project, name) as store:
            known = {view.view: view for view in store.views()}
            return [_stands(catalog, store, family, r, known.get(r.name), now) for r in rows]
    except SteadyviewError as error:
        return [_status(row, family, "away", error=str(error)) for row in rows]


def _status(row: ViewRow, family: str, state: str, **facts: Any) -> ServedStatus:
    key = list(layout_of(row).key)
    return ServedStatus(row.name, str(store_of(row)), family, state, key, WAY, LEVEL, **facts)


def _stands(  # noqa: PLR0913 - all that is known of it
    catalog: Catalog,
    store: RecordStore,
    family: str,
    row: ViewRow,
    known: ServedView | None,
    now: int,
) -> ServedStatus:
    if known is None or known.records is None:
        error = None if known is None else known.error
        return _status(row, family, "stopped" if error else "not built yet", error=error)
    records = known.records
    if records.layout.sums:
        return _from_log(catalog, store, family, row, known, records)
    position, counts = store.position(records, CHANGES), store.counts(records)
    shown = row.cn or 0
    behind = max(shown - position.entry, 0)
    since = None
    if behind and position.entry + 1 >= catalog.commits.oldest_cn():
        since = max(now - catalog.commits.time_of(position.entry + 1), 0) / 1_000_000
    return _status(
        row,
        family,
        "stopped" if known.error else "serving",
        cn=position.entry,
        behind=behind,
        behind_seconds=since,
        records=counts.records,
        tombstones=counts.tombstones,
        floor=position.floor,
        rebuilt=known.rebuilt,
        error=known.error,
    )


def _from_log(  # noqa: PLR0913 - all that is known of it
    catalog: Catalog,
    store: RecordStore,
    family: str,
    row: ViewRow,
    known: ServedView,
    records: Records,
) -> ServedStatus:
    counts = store.counts(records)
    streams = {s: p.entry for s, p in store.positions(records).items() if "/" in s}
    last = {state.name: state.last_seq for state in catalog.sources.states()}
    behind = [last.get(s.rsplit("/", 3)[0], at) - at for s, at in streams.items()]
    leases = catalog.leases.all()
    managers = {m for name, m in leases.items() if name.startswith(f"{store.name} {records.name} ")}
    found = _status(
        row,
        family,
        "stopped" if known.error else "serving",
        behind=max(behind, default=0),
        records=counts.records,
        tombstones=counts.tombstones,
        rebuilt=known.rebuilt,
        error=known.error,
        streams=streams,
        managers=len(managers),
    )
    return replace(found, way=LOG_WAY, level=LOG_LEVEL)


def verify_served(parts: Parts, row: ViewRow, store_name: str) -> Verification:
    """Compare a store's rows at its watermark with the view's at that cn, row by row."""
    with open_project_store(parts.project, store_name) as store:
        for tried in range(1, _TRIES + 1):
            known = store.find(row.name)
            if known is None or known.records is None:
                raise ConfigError(
                    f'store "{store_name}" serves no view "{row.name}" yet',
                    hint="steadyview run fills it",
                )
            try:
                return _compared(parts, row, store, known.records)
            except StoreUnavailable:
                # they moved on, or another incarnation took their place
                if tried == _TRIES:
                    raise
        raise AssertionError


@contextmanager
def _rows_at(
    parts: Parts, row: ViewRow, store: RecordStore, records: Records
) -> Iterator[tuple[int, Iterator[pa.Table]]]:
    """The records as of a cn, and which that is.

    Those that are kept from the log are as of one only while nothing is on its way: all streams of
    a source are at one position, and no record is ahead of it. StoreUnavailable if it is not so.
    """
    if not records.layout.sums:
        with store.rows(records) as found:
            yield found
        return
    cn = parts.catalog.views.row(row.id).cn or 0
    with store.settled(records) as (positions, pieces):
        streams = {s: p.entry for s, p in (positions or {}).items() if "/" in s}
        commits = parts.catalog.commits
        at = {s: commits.seq_upto(s.rsplit("/", 3)[0], cn) for s in streams}
        if not streams or streams != at:
            time.sleep(_MOVED_ON)
            raise StoreUnavailable(
                f'records of "{row.name}" are not of one commit now',
                detail="entries of the update log are being applied to them",
                hint="verify it again when less is being written",
            )
        yield cn, pieces


def _compared(
    parts: Parts, row: ViewRow, store: RecordStore, records: Records
) -> Verification:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from steadyview.changes import arrow_type
    from steadyview.engine.frames import Frames
    from steadyview.engine.session import beside
    from steadyview.query.verify import Verification, difference
    from steadyview.runtime.serving import rows_at
    from steadyview.warehouse.view_store import ddl

    begun = time.monotonic()
    columns = records.layout.columns
    with parts.work_folder("served") as work:
        path: Path = work / "records.parquet"
        schema = pa.schema([(name, arrow_type(type_)) for name, type_ in columns])
        with (
            _rows_at(parts, row, store, records) as (cn, pieces),
            pq.ParquetWriter(path, schema) as sink,
        ):
            for piece in pieces:
                sink.write_table(piece)
        spark = beside(parts.spark)
        frames = Frames(spark)
        try:
            stored = spark.table(frames.parquet("records", [str(path)], ddl(columns)))
            different = difference(frames, stored, rows_at(parts, spark, row.name, cn))
        finally:
            frames.drop()
    equal = not (different.missing or different.extra)
    return Verification(
        row.name,
        cn,
        equal,
        different.missing,
        different.extra,
        0,
        time.monotonic() - begun,
        different.examples,
        part=f"records in {store.name}",
    )
