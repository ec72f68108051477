"""What `status` and the live display show: plain values."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import Any

from steadyview.catalog import Build, Catalog, Deferred, Hold, SourceState, ViewRow, from_us
from steadyview.errors import OutsideRetention, SteadyviewError
from steadyview.timing.schedules import schedule
from steadyview.warehouse.table_mark import TABLES, read_mark, table_folder

_REFRESH_TIMES = ("due", "bound")
SILENT_SECONDS = 30.0
"""A run writes contact with its sources down more often than this."""


@dataclass(frozen=True)
class SourceStatus:
    """A source: `seq` transactions captured, `lag_seconds` behind (None where we do not capture).

    `contact_seconds` ago a run was in contact with it; `error_seconds` ago its error was found.
    `unaudited`: what of it the last audits could not look into, and why.
    """

    name: str
    family: str
    position: str | None
    seq: int
    lag_seconds: float | None
    state: str
    error: str | None
    contact_seconds: float | None = None
    error_seconds: float | None = None
    unaudited: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class TableStatus:
    """A view's table for other programs: at `path`, with the rows of `cn`.

    `error`: why it could not be written lately.
    """

    path: str
    cn: int | None
    error: str | None = None


@dataclass(frozen=True)
class Refusal:
    """Why a view's file does not take its place."""

    code: str
    error: str


@dataclass(frozen=True)
class RefreshStatus:
    """How a deferred view is refreshed: by which policy and schedule, in which zone; when next.

    `propagated`: up to which cn its changes are at hand already. `bound`: the latest of the times
    that gates have bound to what it shows, and `told` the sources that this is not exact for.
    """

    policy: str
    schedule: str
    zone: str | None
    due: datetime | None
    propagated: int | None
    bound: datetime | None = None
    told: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class GateStatus:
    """A time that has come and is not bound to a commit yet: its gate is open for these sources.

    `missing`: those of them that are waited for; None: only the process that captures knows.
    """

    time: datetime
    sources: list[str]
    missing: list[str] | None


@dataclass(frozen=True)
class ValidStatus:
    """The cns at which the view has just the rows that it shows, as far as commits alone tell.

    From `first_cn` up to, and without, `end_cn`, the first commit of a source that it reads; None:
    until now. A query looks at the view's changes, and may know more of them.
    """

    first_cn: int
    end_cn: int | None
    until: datetime | None


@dataclass(frozen=True)
class ReaderStatus:
    """A reader of a view's changes: all after `cn` is kept for it, of `behind` commits by now."""

    name: str
    cn: int
    behind: int


@dataclass(frozen=True)
class ViewStatus:
    """A view at `cn`; `age_seconds` since the first commit that it does not show (0: none).

    `code`: of the reason why it is refused. `refusal`: why its file, as it is now, does not take
    its place; until then it goes on as it was. `paused_seconds` ago its file was found gone.
    `progress`: how far a state is that is being built for it, since `build_seconds`, for people.
    `table`: None if it has none. A refused view has no level. `refresh`: None if it is immediate.
    `readers`: the subscriptions to its changes. `valid`: None of a view without rows.
    """

    name: str
    kind: str
    level: str | None
    state: str
    cn: int | None
    time: datetime | None
    age_seconds: float | None
    rows_per_second: float | None
    error: str | None
    progress: str | None = None
    table: TableStatus | None = None
    code: str | None = None
    refusal: Refusal | None = None
    paused_seconds: float | None = None
    build_seconds: float | None = None
    refresh: RefreshStatus | None = None
    readers: list[ReaderStatus] = field(default_factory=list)
    valid: ValidStatus | None = None


@dataclass(frozen=True)
class HoldStatus:
    """For whom is kept what the retention alone would let go: all after `cn`, `bytes` of it.

    `kind`: subscription, view, build or audit. `too_much`: more than `[project] hold_back`.
    `release`: what to do about it.
    """

    kind: str
    name: str
    cn: int
    bytes: int
    too_much: bool
    release: str


@dataclass(frozen=True)
class Status:
    """The warehouse at one glance. `holds`: as housekeeping found them last."""

    project: str
    cn: int
    time: datetime | None
    holder: dict[str, Any] | None
    sources: list[SourceStatus]
    views: list[ViewStatus]
    error: str | None = None
    gates: list[GateStatus] = field(default_factory=list)
    holds: list[HoldStatus] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """For JSON; times in ISO format."""
        found = asdict(self)
        timed = [(part, "time") for part in (found, *found["views"], *found["gates"])]
        timed += [(v["refresh"], k) for v in found["views"] if v["refresh"] for k in _REFRESH_TIMES]
        timed += [(v["valid"], "until") for v in found["views"] if v["valid"]]
        for part, key in timed:
            part[key] = part[key].isoformat(timespec="microseconds") if part[key] else None
        return found


@dataclass(frozen=True)
class RunSummary:
    """What `run --once` did."""

    transactions: int
    changes: int
    batches: int
    lookups: int
    cn: int
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def time_of(catalog: Catalog, cn: int | None) -> datetime | None:
    """The commit time of a cn, UTC; None also where it is forgotten, as a stopped view's may be."""
    found = None if cn is None else _known_time(catalog, cn)
    return None if found is None else from_us(found)


def _known_time(catalog: Catalog, cn: int) -> int | None:
    try:
        return catalog.commits.time_of(cn)
    except OutsideRetention:
        return None


def view_status(
    catalog: Catalog,
    row: ViewRow,
    last: int,
    now: int,
    rate: float | None,
    building: Progress | None = None,
) -> ViewStatus:
    """One view's line. Age: how long ago the first commit was that the view does not show."""
    age = None
    if row.cn is not None:
        oldest = catalog.commits.oldest_cn()
        first_missing = _known_time(catalog, max(row.cn + 1, oldest)) if row.cn < last else now
        age = max((now - (first_missing or now)) / 1_000_000, 0.0)
    return ViewStatus(
        row.name,
        row.kind,
        row.level or None,
        row.state,
        row.cn,
        time_of(catalog, row.cn),
        age,
        rate,
        row.error,
        None if building is None else building.text,
        code=row.code if row.state == "refused" else None,
        refusal=Refusal(row.refusal_code, row.refusal or "") if row.refusal_code else None,
        paused_seconds=_seconds_since(row.paused, now),
        build_seconds=None if building is None else _seconds_since(building.begun, now),
    )


def refresh_status(
    row: ViewRow, known: Deferred | None, now: int, zone: str
) -> RefreshStatus | None:
    """How the view is refreshed; None: it shows every commit by itself."""
    refresh = json.loads(row.definition or "{}").get("refresh") or {}
    policy = refresh.get("steadyview.policy", "immediate")
    if policy == "immediate":
        return None
    found = schedule(refresh.get("steadyview.schedule"), zone)
    due = found.next(now)
    return RefreshStatus(
        policy,
        found.text,
        found.zone,
        None if due is None else from_us(due),
        row.cn if known is None or row.cn is None else max(row.cn, known.propagated),
    )


def hold_status(catalog: Catalog, limit: int | None) -> list[HoldStatus]:
    """Who still has more kept than the retention asks for; who has gone on since is left out."""
    rows = {row.name: row for row in catalog.views.all()}
    at: dict[str, dict[str, int | None]] = {
        "subscription": {one.name: one.position for one in catalog.subscriptions.all()},
        "view": {name: row.cn for name, row in rows.items()},
    }
    found = []
    for hold in catalog.holds.all():
        now = at[hold.kind].get(hold.name) if hold.kind in at else hold.cn
        if now is not None and now <= hold.cn:
            row = rows.get(hold.name) if hold.kind == "view" else None
            too_much = limit is not None and hold.bytes > limit
            found.append(HoldStatus(**asdict(hold), too_much=too_much, release=_release(hold, row)))
    return found


def _release(hold: Hold, row: ViewRow | None) -> str:
    """What ends it."""
    if hold.kind == "subscription":
        return f"steadyview subscription drop {hold.name}"
    if hold.kind == "audit":
        return f'audit = "off" in [sources.{hold.name}]'
    if hold.kind == "build":
        return f"steadyview view drop {hold.name}"
    rebuilt = f"steadyview view rebuild {hold.name}"
    return f"steadyview refresh {hold.name}, or {rebuilt}" if row and _deferred(row) else rebuilt


def _deferred(row: ViewRow) -> bool:
    refresh: dict[str, str] = _definition(row).get("refresh") or {}
    return refresh.get("steadyview.policy", "immediate") != "immediate"


def valid_status(
    catalog: Catalog, row: ViewRow, rows: Mapping[int, ViewRow]
) -> ValidStatus | None:
    """Since when and until when the view's rows are surely what it shows."""
    if row.cn is None:
        return None
    made_of = (rows[i] for i in _with_inputs(row, rows))
    read = {r["source"] for part in made_of for r in _definition(part).get("relations", ())}
    after = (catalog.commits.first_after(source, row.cn) for source in read)
    end = min((cn for cn in after if cn is not None), default=None)
    return ValidStatus(row.cn, end, time_of(catalog, end))


def _definition(row: ViewRow) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(row.definition or "{}")
    return found


def table_status(
    root: Path, view: str, error: SteadyviewError | None = None
) -> TableStatus | None:
    """Where the view's table is, and what it holds."""
    folder = table_folder(root, TABLES, view)
    mark = read_mark(folder)
    if mark is None and error is None:
        return None
    cn = None if mark is None else mark.cn
    return TableStatus(str(folder), cn, None if error is None else str(error))


@dataclass(frozen=True)
class Progress:
    """How far a state is that is being built, for people; since when it is, in microseconds."""

    text: str
    begun: int


def build_progress(catalog: Catalog) -> dict[str, Progress]:
    """How far the states are that are being built, by view: of new views, and beside others."""
    rows = {r.id: r for r in (*catalog.views.all(), *catalog.views.replacements())}
    reading = {i: text for b in catalog.builds.all() for i in b.views if (text := _read_so_far(b))}
    last = catalog.commits.last_cn()
    found = {}
    for row in rows.values():
        if row.state != "building":
            continue
        texts = [reading[i] for i in _with_inputs(row, rows) if i in reading]
        if row.cn is not None:
            texts = [f"built, at cn {row.cn} of {last}"]
        found[row.name] = Progress(", ".join(dict.fromkeys(texts)), row.begun)
    return found


def _with_inputs(row: ViewRow, rows: Mapping[int, ViewRow]) -> list[int]:
    """The ids of a row and of all that it is made of."""
    inputs = json.loads(row.definition or "{}").get("inputs", {}).values()
    below = [i for n in inputs if n in rows for i in _with_inputs(rows[n], rows)]
    return [row.id, *below]


def _read_so_far(build: Build) -> str:
    reading = []
    for name, group in groupby(build.spans, lambda s: s.relation):
        spans = list(group)
        read = sum(s.rows or 0 for s in spans)
        about = read + sum(s.about for s in spans if s.rows is None)
        if about > read:
            reading.append(f"{name}: {read:,} of about {about:,} rows read")
    return ", ".join(reading) or "all rows read"


def unaudited(catalog: Catalog, source: str) -> list[str]:
    """What the last audits of a source's relations could not look into."""
    audits = catalog.audits.last(source)
    return [a.error for _, a in sorted(audits.items()) if a.error is not None]


def source_status(
    state: SourceState,
    lag: float | None,
    error: str | None,
    now: int,
    *,
    held: bool,
    not_audited: Sequence[str] = (),
) -> SourceStatus:
    """One source's line; `lag` and `error` are ours, if it is we who capture.

    Otherwise what the last run knew is told; `held`: it is still running.
    """
    error = error or (state.error if lag is None else None)
    contact = _seconds_since(state.heard, now)
    if error is not None:
        word = "error"
    elif lag is None and not held:
        word = "idle"
    else:
        silent = lag is None and (contact is None or contact > SILENT_SECONDS)
        word = "silent" if silent else "capturing"
    since = _seconds_since(state.since, now) if error == state.error else None
    known = (state.name, state.family, state.position, state.last_seq)
    return SourceStatus(*known, lag, word, error, contact, since, list(not_audited))


def _seconds_since(time: int | None, now: int) -> float | None:
    return None if time is None else max((now - time) / 1_000_000, 0.0)
