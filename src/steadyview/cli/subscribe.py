"""`steadyview subscribe VIEW --as NAME`."""

from __future__ import annotations

import os
import stat
import sys
import threading
from typing import TYPE_CHECKING, Annotated

import typer

from steadyview.cli.change_lines import ChangeFormat, Lines, lines
from steadyview.cli.opening import opened
from steadyview.cli.options import HERE, DebugOption, ProjectOption, ViewArgument, parse_start
from steadyview.cli.reporting import reporting
from steadyview.cli.stopping import run_until_signalled
from steadyview.crash_points import crash_point

if TYPE_CHECKING:
    from steadyview.runtime.subscribing import Delivery, Start
    from steadyview.runtime.warehouse import Warehouse


def command(  # noqa: PLR0913 - the options of a command
    view: ViewArgument,
    name: Annotated[
        str, typer.Option("--as", metavar="NAME", help="The subscription's name; keeps its place.")
    ],
    start: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="CN, start or now",
            help="Where a new one begins: a commit number, the oldest state, or now (the default).",
        ),
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", help="Go on with what comes, until Ctrl-C.")
    ] = False,
    format: Annotated[
        ChangeFormat, typer.Option(help="How changes are printed.")
    ] = ChangeFormat.json,
    limit: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="End after N commits; a state counts as one."),
    ] = None,
    changes_only: Annotated[
        bool, typer.Option("--changes-only", help="A new one: without the rows it begins with.")
    ] = False,
    ack: Annotated[
        str,
        typer.Option(
            metavar="auto or manual",
            help="A new one: who moves its position, this command or subscription ack.",
        ),
    ] = "auto",
    project: ProjectOption = HERE,
    debug: DebugOption = False,
) -> None:
    """Print what changed in a view, commit by commit, and remember how far NAME has come.

    A new NAME first gets the view's rows, marked as its state. Each commit ends with a line of its
    own. NAME moves on after lines were written; after a crash some come again, and none is lost.
    Without --follow it ends when it has caught up. Works whether [bold]steadyview run[/] is up or
    not.

    [bold]Examples[/]

        steadyview subscribe revenue_by_region --as cache --follow

        steadyview subscribe revenue_by_region --as export --from start --format csv

        steadyview subscribe revenue_by_region --as pipe --ack manual --follow
    """
    with reporting(debug=debug), opened(project) as warehouse:
        from steadyview.runtime.subscribing import Start

        if ack not in ("auto", "manual"):
            raise typer.BadParameter(f'--ack is auto or manual, not "{ack}"')
        said = start is not None or changes_only or ack != "auto"
        begin = Start(parse_start(start or "now"), changes_only, ack == "manual") if said else None
        reading = _Reading(warehouse, view, name, begin)
        if follow:
            run_until_signalled(
                lambda stop: reading.print(format, limit, stop, follow=True),
                "stopping after these changes",
            )
        else:
            reading.print(format, limit, threading.Event(), follow=False)


class _Reading:
    """What one command reads."""

    def __init__(self, warehouse: Warehouse, view: str, name: str, start: Start | None) -> None:
        self._warehouse = warehouse
        self._asked = (view, name, start)

    def print(
        self, format: ChangeFormat, limit: int | None, stop: threading.Event, *, follow: bool
    ) -> None:
        """Print until nothing is left, `limit` is reached or `stop` is set."""
        view, name, start = self._asked
        with self._warehouse.subscribe(view, name, start) as reader:
            shaped = lines(format, view, reader.columns)
            left = limit
            while not stop.is_set() and left != 0:
                delivery = reader.next(left)
                if delivery is None:
                    if not follow:
                        return
                    reader.wait(stop)
                    continue
                _write(delivery, shaped)
                crash_point("changes-handed-out")
                if not reader.manual:
                    reader.acknowledge()
                left = None if left is None else left - delivery.commits


def _write(delivery: Delivery, shaped: Lines) -> None:
    """Print it; when this returns, a file has it on the disk, a pipe has taken it."""
    for line in shaped(delivery):
        sys.stdout.write(line)
    sys.stdout.flush()
    try:
        out = sys.stdout.fileno()
    except OSError:
        # somebody's own stream
        return
    if stat.S_ISREG(os.fstat(out).st_mode):
        os.fsync(out)
