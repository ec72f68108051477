"""`steadyview compress VIEW`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from steadyview.cli.opening import opened
from steadyview.cli.options import (
    HERE,
    DebugOption,
    JsonOption,
    ProjectOption,
    ViewArgument,
    parse_at,
)
from steadyview.cli.reporting import reporting
from steadyview.cli.tables import note, print_json
from steadyview.runtime.byte_sizes import bytes_said


class Period(StrEnum):
    """The periods whose ends may be kept."""

    HOUR = "hour"
    DAY = "day"


def command(  # noqa: PLR0913 - the options of a command
    view: ViewArgument,
    until: Annotated[
        str | None,
        typer.Option(metavar="CN or TIME", help="Up to there; without it, all that it shows."),
    ] = None,
    keep: Annotated[
        Period | None, typer.Option(help="The moments at the end of each stay.")
    ] = None,
    project: ProjectOption = HERE,
    json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Replace ranges of a view's changes by their net effect: less to keep, read and apply.

    A range ends wherever a reader, another view or a table stands, so nobody is disturbed; only
    moments within it cannot be asked for any more. A running [bold]steadyview run[/] does it
    between two batches. [bold]'steadyview.compress' = 'hour after 1 day'[/] in a view's file has it
    done all the time.

    [bold]Examples[/]

        steadyview compress revenue_by_region --until 2026-11-01

        steadyview compress revenue_by_region --keep day
    """
    moment = parse_at(until)
    with reporting(as_json=json, debug=debug), opened(project) as warehouse:
        done = warehouse.compress(view, moment, None if keep is None else keep.value)
        if json:
            print_json(done.to_dict())
        elif done.ranges:
            commits = sum(found.commits for found in done.ranges)
            print(
                f'"{done.view}": {commits:,} commits up to cn {done.until} are {len(done.ranges):,}'
                f" now; {bytes_said(done.bytes_before)} of changes became"
                f" {bytes_said(done.bytes_after)}"
            )
        else:
            note(f'"{done.view}": there is nothing to compress up to cn {done.until}')
