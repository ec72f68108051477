"""`steadyview source list`, `remove NAME` and `resnapshot NAME`."""

from __future__ import annotations

import typer

from steadyview.cli.opening import opened
from steadyview.cli.options import HERE, DebugOption, JsonOption, ProjectOption, SourceArgument
from steadyview.cli.reporting import reporting
from steadyview.cli.tables import note, print_json, show, table

app = typer.Typer(no_args_is_help=True, help="List sources, or remove what we set up at one.")


@app.command("list")
def list_sources(
    project: ProjectOption = HERE, json: JsonOption = False, debug: DebugOption = False
) -> None:
    """List the project's sources, and what is set up at each.

    [bold]Example[/]

        steadyview source list
    """
    with reporting(as_json=json, debug=debug), opened(project) as warehouse:
        sources = warehouse.sources()
        if json:
            print_json(sources)
        elif sources:
            headings = list(sources[0])
            show(table(headings, [[_shown(s[h]) for h in headings] for s in sources]))
        else:
            note("steadyview.toml names no sources")


@app.command("remove")
def remove_source(
    name: SourceArgument,
    project: ProjectOption = HERE,
    json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Remove everything set up at a source: slot, publication, triggers, log table.

    Views over it start anew at the next run, if it is still in steadyview.toml.

    [bold]Example[/]

        steadyview source remove sales
    """
    with reporting(as_json=json, debug=debug), opened(project) as warehouse:
        removed = warehouse.remove_source(name)
        if json:
            print_json({"source": name, "removed": removed})
            return
        for thing in removed:
            print(f"removed {thing}")
        if not removed:
            note(f'nothing was set up at "{name}"')


@app.command("resnapshot")
def resnapshot(
    name: SourceArgument,
    project: ProjectOption = HERE,
    json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Begin with a source anew: its views are built from what it holds now.

    For a source that was restored, replaced or not captured without a gap. Other views go on.
    Until a view's new state is there, readers see its old one, with a warning. A running
    [bold]steadyview run[/] does it at once; otherwise the next one builds the views.

    [bold]Example[/]

        steadyview source resnapshot sales
    """
    with reporting(as_json=json, debug=debug), opened(project) as warehouse:
        done = warehouse.resnapshot(name)
        if json:
            print_json({"source": name, "done": done})
            return
        for thing in done:
            print(thing)


def _shown(value: object) -> object:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else value
