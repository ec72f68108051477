"""A `Status` as a table for people, or as one line for a log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.table import Table
from rich.text import Text

from steadyview.cli.tables import table
from steadyview.cli.values import iso_time
from steadyview.runtime.byte_sizes import bytes_said

if TYPE_CHECKING:
    from steadyview.runtime.status import HoldStatus, SourceStatus, Status, ViewStatus

_GOOD = frozenset({"active", "capturing", "idle"})


def status_table(status: Status) -> Group:
    """Headline, sources, views, and below them what is wrong with any of them."""
    tables = (_headline(status), _sources(status), _views(status))
    told = (*_deferred(status), *_gates(status), *_readers(status), *_holds(status))
    told = (*told, *_building(status))
    return Group(*tables, *told, *_unaudited(status), *_unwritten(status), *_errors(status))


def status_line(status: Status) -> str:
    """The same in one line, for where nobody watches.

    Only what moves is told: the cn, each source's lag and each view's cn.
    """
    sources = ", ".join(f"{s.name} lag {_seconds(s.lag_seconds)}" for s in status.sources)
    views = ", ".join(f"{v.name} cn {_known(v.cn)} ({_how(v)})" for v in status.views)
    line = f"cn {_known(status.cn)} | {sources or 'no sources'} | {views or 'no views'}"
    faults = [status.error, *(s.error for s in status.sources), *held_back(status)]
    faults += [f"{v.name}: {text}" for v in status.views for text in _wrong(v)]
    return " | ".join([line, *(fault.splitlines()[0] for fault in faults if fault)])


def view_errors(status: Status) -> list[str]:
    """What is wrong with views, in full: code or reason, and what to do about it."""
    return [f"{v.name} ({v.state}): {text}" for v in status.views for text in _wrong(v)]


def source_errors(status: Status) -> list[str]:
    """What is wrong with sources, in full."""
    return [f"{s.name}: {s.error}" for s in status.sources if s.error]


def _headline(status: Status) -> Text:
    text = Text.assemble((status.project, "bold"), f"  cn {_known(status.cn)}")
    if status.time is not None:
        text.append(f"  {iso_time(status.time)}", style="dim")
    if holder := status.holder:
        text.append("  {command} is process {pid} on {host}".format(**holder), style="dim")
    return text


def _sources(status: Status) -> Table:
    rows = [
        (
            s.name,
            s.family,
            _state(s),
            _known(s.position),
            s.seq,
            Text(_seconds(s.lag_seconds)),
            Text(_ago(s.contact_seconds)),
        )
        for s in status.sources
    ]
    return table(("source", "type", "state", "position", "transactions", "lag", "contact"), rows)


def _views(status: Status) -> Table:
    rows = [
        (
            v.name,
            v.kind,
            _known(v.level),
            _state(v),
            _number(v.cn),
            Text(_seconds(v.age_seconds)),
            _rate(v),
        )
        for v in status.views
    ]
    return table(("view", "kind", "level", "state", "cn", "age", "changes/s"), rows)


def _deferred(status: Status) -> list[Text]:
    """When deferred views are refreshed."""
    found = []
    for view in status.views:
        if (refresh := view.refresh) is not None:
            zone = f" ({refresh.zone})" if refresh.zone else ""
            parts = [refresh.policy, f"{refresh.schedule}{zone}"]
            parts += [f"next {iso_time(refresh.due)}"] if refresh.due else []
            if refresh.propagated is not None and refresh.propagated > (view.cn or 0):
                parts.append(f"propagated to cn {refresh.propagated}")
            parts += [f"as of {iso_time(refresh.bound)}"] if refresh.bound else []
            parts += [f"not exact for {name}: {why}" for name, why in refresh.told.items()]
            if view.valid is not None and view.valid.end_cn is not None:
                parts.append(f"valid up to before cn {view.valid.end_cn}")
            found.append(Text(f"{view.name}: {', '.join(parts)}", style="dim"))
    return found


def _gates(status: Status) -> list[Text]:
    """Times that wait for sources."""
    found = []
    for gate in status.gates:
        names = ", ".join(gate.sources if gate.missing is None else gate.missing)
        waits = f"its gate waits for {names}" if names else "its gate is being closed"
        found.append(Text(f"{iso_time(gate.time)}: {waits}", style="yellow"))
    return found


def _readers(status: Status) -> list[Text]:
    """For whom changes are kept that are not acknowledged."""
    late = [(v, r) for v in status.views for r in v.readers if r.behind]
    return [
        Text(
            f"{v.name}: changes after cn {r.cn} are kept for subscription {r.name}, {r.behind:,}"
            " commits behind",
            style="dim",
        )
        for v, r in late
    ]


def _holds(status: Status) -> list[Text]:
    """For whom is kept what the retention would let go."""
    return [Text(_hold(h), style="yellow" if h.too_much else "dim") for h in status.holds]


def _hold(hold: HoldStatus) -> str:
    who, size = f"{hold.kind} {hold.name}", bytes_said(hold.bytes)
    fact = f"for {who} {size} after cn {hold.cn} are kept beyond the retention"
    return f"{fact}: more than hold_back; to let go: {hold.release}" if hold.too_much else fact


def held_back(status: Status) -> list[str]:
    """Who has more kept than hold_back allows, and what to do about it."""
    return [_hold(hold) for hold in status.holds if hold.too_much]


def _building(status: Status) -> list[Text]:
    building = [v for v in status.views if v.build_seconds is not None]
    return [Text(f"{v.name}: {_progress(v)}", style="yellow") for v in building]


def _progress(view: ViewStatus) -> str:
    what = "first state" if view.state == "building" else "a new state beside"
    parts = (what, view.progress, f"for {_seconds(view.build_seconds)}")
    return ", ".join(part for part in parts if part)


def _wrong(view: ViewStatus) -> list[str]:
    """What is wrong with a view: with its rows, with its file as it is now, with neither."""
    found = [view.error] if view.error else []
    if view.paused_seconds is not None:
        fact = f"its file is gone since {_seconds(view.paused_seconds)}: it is not kept any more"
        way = f"put its file back, or run: steadyview view drop {view.name}"
        found.append(f"{fact}\nhint: {way}")
    if view.refusal:
        fact = f"its file does not take its place ({view.refusal.code}), it goes on as it was"
        found.append(f"{fact}: {view.refusal.error}")
    return found


def _unaudited(status: Status) -> list[Text]:
    return [Text(text, style="yellow") for s in status.sources for text in s.unaudited]


def _unwritten(status: Status) -> list[Text]:
    tables = ((v.name, v.table) for v in status.views if v.table is not None)
    return [Text(f"{name}, its table: {t.error}", style="yellow") for name, t in tables if t.error]


def _how(view: ViewStatus) -> str:
    building = view.build_seconds is not None
    return f"{view.state}, {_progress(view)}" if building else str(view.state)


def _errors(status: Status) -> list[Text]:
    whole = [Text(status.error, style="bold red")] if status.error else []
    wrong: list[tuple[SourceStatus | ViewStatus, str]]
    wrong = [(s, s.error) for s in status.sources if s.error]
    wrong += [(v, text) for v in status.views for text in _wrong(v)]
    return whole + [
        Text.assemble((f"{part.name}: ", "bold red"), text, (_since(part), "dim"))
        for part, text in wrong
    ]


def _since(part: SourceStatus | ViewStatus) -> str:
    """How old a source's error is."""
    seconds = getattr(part, "error_seconds", None)
    return "" if seconds is None else f"  (found {_ago(seconds)})"


def _ago(seconds: float | None) -> str:
    return "-" if seconds is None else f"{_seconds(seconds)} ago"


def _state(part: SourceStatus | ViewStatus) -> Text:
    if part.error or getattr(part, "refusal", None):
        return Text(part.state, style="bold red")
    return Text(part.state, style="green" if part.state in _GOOD else "yellow")


def _rate(view: ViewStatus) -> Text:
    rate = view.rows_per_second
    return Text("-" if rate is None else f"{rate:,.0f}")


def _seconds(seconds: float | None) -> str:
    """A duration as a person says it.

    >>> _seconds(0.25), _seconds(75), _seconds(7200), _seconds(None)
    ('0.2 s', '75 s', '2 h', '-')
    """
    if seconds is None:
        return "-"
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.0f} h"


def _number(value: int | None) -> int | Text:
    return Text("-") if value is None else value


def _known(value: object) -> str:
    return "-" if value is None else str(value)
