"""`steadyview view list`, `drop VIEW`, `rename VIEW NEW` and `rebuild VIEW`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from steadyview.cli.opening import opened
from steadyview.cli.options import HERE, DebugOption, JsonOption, ProjectOption, ViewArgument
from steadyview.cli.reporting import reporting
from steadyview.cli.tables import note, print_json, show, table
from steadyview.errors import ConfigError

app = typer.Typer(no_args_is_help=True, help="List views; drop, rename or rebuild one.")

NewName = Annotated[str, typer.Argument(metavar="NEW", help="The name it is to have.")]
YesOption = Annotated[bool, typer.Option("--yes", help="Do not ask whether to drop it.")]
CascadeOption = Annotated[bool, typer.Option("--cascade", help="Drop the views that read it, too.")]


@app.command("list")
def list_views(
    project: ProjectOption = HERE, json: JsonOption = False, debug: DebugOption = False
) -> None:
    """List the project's views: state, file, and which other views each reads.

    A view whose file is new is [bold]new[/] until a run has seen it; one whose file is gone is
    [bold]paused[/].

    [bold]Example[/]

        steadyview view list
    """
    with reporting(as_json=json, debug=debug), opened(project) as warehouse:
        views = warehouse.views()
        if json:
            print_json([v.to_dict() for v in views])
        elif views:
            headings = ("view", "kind", "level", "state", "cn", "file", "reads")
            rows = [
                (v.name, v.kind or "-", v.level or "-", v.state, _known(v.cn), v.path or "-")
                for v in views
            ]
            reads = [", ".join(v.reads) or "-" for v in views]
            show(table(headings, [(*row, r) for row, r in zip(rows, reads, strict=True)]))
        else:
            note("the project has no views; put a view's SQL into a file of views/")


@app.command("drop")
def drop(
    name: ViewArgument,
    yes: YesOption = False,
    cascade: CascadeOption = False,
    project: ProjectOption = HERE,
    json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Drop a view: its rows and its file.

    Refused while other views read it, unless they are dropped with it. A running
    [bold]steadyview run[/] does it between two batches.

    [bold]Example[/]

        steadyview view drop revenue_by_region --yes
    """
    with reporting(as_json=json, debug=debug), opened(project) as warehouse:
        if not yes:
            others = " and all that read it" if cascade else ""
            _confirm(f'drop view "{name}"{others}, file and all?')
        dropped = warehouse.drop(name, cascade=cascade)
        if json:
            print_json({"dropped": dropped})
            return
        for view in dropped:
            print(f'dropped "{view}"')


@app.command("rename")
def rename(
    name: ViewArgument,
    new: NewName,
    project: ProjectOption = HERE,
    json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Call a view otherwise: in the warehouse, its file's name, and the name behind CREATE.

    Its rows and its past stay. Views that read it go on, and are listed with the places in their
    files that are to be changed. A running [bold]steadyview run[/] does it between two batches.

    [bold]Example[/]

        steadyview view rename revenue_by_region revenue
    """
    with reporting(as_json=json, debug=debug), opened(project) as warehouse:
        places = warehouse.rename(name, new)
        if json:
            print_json({"view": new, "was": name, "change": [p.to_dict() for p in places]})
            return
        print(f'"{name}" is called "{new}" now')
        for place in places:
            print(f"change {place.path}:{place.line}:{place.column}: it still reads {name}")


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


def _confirm(question: str) -> None:
    if not sys.stdin.isatty():
        raise ConfigError("nobody is there to be asked", hint="say --yes to drop without asking")
    if not typer.confirm(question, err=True):
        raise typer.Exit(1)


def _known(cn: int | None) -> object:
    return "-" if cn is None else cn
