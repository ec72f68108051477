"""`steadyview refresh [VIEW...]`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from steadyview.cli.completion import view_names
from steadyview.cli.opening import opened
from steadyview.cli.options import (
    HERE,
    DebugOption,
    JsonOption,
    ProjectOption,
    parse_at,
    parse_time,
)
from steadyview.cli.reporting import reporting
from steadyview.cli.tables import note, print_json
from steadyview.cli.values import iso_time

if TYPE_CHECKING:
    from steadyview.runtime.refreshing import ShownAt


def command(  # noqa: PLR0913 - the options of a command
    views: Annotated[
        list[str] | None,
        typer.Argument(metavar="[VIEW]...", help="Which views.", autocompletion=view_names),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="All views; with an earlier --to, the deferred ones.")
    ] = False,
    to: Annotated[
        str,
        typer.Option(metavar="CN, TIME or now", help="A commit number, an ISO time, or now."),
    ] = "now",
    wait: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="Wait so long for a moment to come, say 30s."),
    ] = None,
    project: ProjectOption = HERE,
    json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Bring views to one moment, and show all of them there together, or none.

    For views with a policy: [bold]ipda[/], [bold]dpda[/] or [bold]snapshot[/] in their files. What
    they read, and is behind, is taken along. By default to all that was committed at their sources
    when the command began. A running [bold]steadyview run[/] does it between two batches.

    [bold]Examples[/]

        steadyview refresh monthly_revenue daily_revenue

        steadyview refresh --all --to 2026-11-16T00:00:00Z
    """
    moment = None if to == "now" else parse_at(to)
    seconds = parse_time(wait)
    with reporting(as_json=json, debug=debug), opened(project) as warehouse:
        done = warehouse.refresh(views or [], moment, everything=everything, wait=seconds)
        if json:
            print_json(_facts(done))
            return
        for name in done.views:
            print(f'"{name}" shows cn {done.cn}, {iso_time(done.time)}')
        if done.along:
            note(f"taken along, for they are read: {', '.join(done.along)}")
        _tell(done)


def _tell(done: ShownAt) -> None:
    """What the time that was asked for meant."""
    # imported late: --help needs no catalog
    from steadyview.runtime.bound_times import doubts, meaning

    if done.target is not None and done.target.meant is not None:
        note(meaning(done.target.meant))
        for doubt in doubts(done.target.time or done.time, done.target.meant.told):
            note(f"warning: {doubt}")


def _facts(done: ShownAt) -> dict[str, Any]:
    """For JSON; where a time was asked for, what it meant."""
    facts = {"cn": done.cn, "views": done.views, "along": done.along, "time": iso_time(done.time)}
    target = done.target
    if target is None or target.time is None or target.meant is None:
        return facts
    meant = {"bound": target.meant.bound, "told": dict(target.meant.told)}
    return {**facts, "to": {"time": iso_time(target.time), **meant}}
