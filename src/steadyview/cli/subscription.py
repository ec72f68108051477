"""`steadyview subscription list`, `drop NAME`, `reset NAME` and `ack NAME CN`."""

from __future__ import annotations

from typing import Annotated

import typer

from steadyview.cli.completion import subscription_names
from steadyview.cli.opening import opened
from steadyview.cli.options import HERE, DebugOption, JsonOption, ProjectOption, parse_start
from steadyview.cli.reporting import reporting
from steadyview.cli.tables import note, print_json, show, table

app = typer.Typer(no_args_is_help=True, help="Readers of changes: list, drop, reset, acknowledge.")

NameArgument = Annotated[
    str,
    typer.Argument(
        metavar="NAME", help="The subscription's name.", autocompletion=subscription_names
    ),
]


@app.command("list")
def list_subscriptions(
    project: ProjectOption = HERE, json: JsonOption = False, debug: DebugOption = False
) -> None:
    """List who reads the changes of which view, and how far each is.

    What a reader has not acknowledged is kept for it, however long that takes: behind is the
    number of commits, and how long ago the first of them was.

    [bold]Example[/]

        steadyview subscription list
    """
    with reporting(as_json=json, debug=debug), opened(project) as warehouse:
        found = warehouse.subscriptions()
        if json:
            print_json([s.to_dict() for s in found])
        elif found:
            headings = ("name", "view", "cn", "handed out", "behind", "since", "ack", "state")
            rows = [
                (
                    s.name,
                    s.view,
                    s.cn,
                    s.offered,
                    s.behind,
                    "-" if s.behind_seconds is None else f"{s.behind_seconds:,.0f} s",
                    s.ack,
                    s.state,
                )
                for s in found
            ]
            show(table(headings, rows))
        else:
            note("there are no subscriptions; begin one: steadyview subscribe VIEW --as NAME")


@app.command("drop")
def drop(
    name: NameArgument,
    project: ProjectOption = HERE,
    json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Forget a subscription: nothing is kept for it any more.

    [bold]Example[/]

        steadyview subscription drop cache
    """
    with reporting(as_json=json, debug=debug), opened(project) as warehouse:
        warehouse.drop_subscription(name)
        if json:
            print_json({"dropped": name})
        else:
            print(f'dropped "{name}"')


@app.command("reset")
def reset(
    name: NameArgument,
    start: Annotated[
        str,
        typer.Option("--from", metavar="CN, start or now", help="At which state it begins again."),
    ] = "now",
    project: ProjectOption = HERE,
    json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Have a subscription begin again: it is told to forget what it has, and gets a state.

    [bold]Example[/]

        steadyview subscription reset cache --from start
    """
    at = parse_start(start)
    with reporting(as_json=json, debug=debug), opened(project) as warehouse:
        cn = warehouse.reset_subscription(name, at)
        if json:
            print_json({"name": name, "cn": cn})
        else:
            print(f'"{name}" begins again at cn {cn}')


@app.command("ack")
def acknowledge(  # noqa: PLR0913 - the options of a command
    name: NameArgument,
    cn: Annotated[int, typer.Argument(metavar="CN", help="The last commit that was received.")],
    epoch: Annotated[
        int | None,
        typer.Option(metavar="N", help="As the reset line told it; one of an older is ignored."),
    ] = None,
    project: ProjectOption = HERE,
    json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Say that all changes up to a commit have been received and kept.

    For a subscription with [bold]--ack manual[/], whose receiver stands behind a pipe. Said twice,
    or of an earlier commit, it changes nothing.

    [bold]Example[/]

        steadyview subscription ack pipe 42
    """
    with reporting(as_json=json, debug=debug), opened(project) as warehouse:
        moved = warehouse.acknowledge(name, cn, epoch)
        if json:
            print_json({"name": name, "cn": cn, "moved": moved})
        elif moved:
            print(f'"{name}" is at cn {cn}')
        else:
            note(f'"{name}" was further already')
