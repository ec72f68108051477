"""`steadyview view rebuild NAME`."""

from __future__ import annotations

import typer

from steadyview.cli.opening import opened
from steadyview.cli.options import HERE, DebugOption, JsonOption, ProjectOption, ViewArgument
from steadyview.cli.reporting import reporting
from steadyview.cli.tables import print_json

app = typer.Typer(no_args_is_help=True, help="Work on a single view.")


@app.callback()
def view() -> None:
    """Work on a single view."""


@app.command("rebuild")
def rebuild(
    name: ViewArgument,
    project: ProjectOption = HERE,
    json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Build a view anew from its sources, beside what it shows; then put it in its place.

    Brings a stopped view back. A running [bold]steadyview run[/] does it at once; otherwise the
    next one does.

    [bold]Example[/]

        steadyview view rebuild revenue_by_region
    """
    with reporting(as_json=json, debug=debug), opened(project) as warehouse:
        warehouse.rebuild(name)
        if json:
            print_json({"view": name})
        else:
            print(f'"{name}" is built anew; until then it shows what it has')
