"""`steadyview serve status`, `rebuild VIEW` and `verify [VIEW...]`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from steadyview.cli.completion import view_names
from steadyview.cli.opening import opened
from steadyview.cli.options import HERE, DebugOption, JsonOption, ProjectOption, ViewArgument
from steadyview.cli.reporting import ExitCode, reporting
from steadyview.cli.tables import note, print_json, show, table
from steadyview.cli.values import json_value

if TYPE_CHECKING:
    from steadyview.query.verify import Verification
    from steadyview.runtime.store_checks import ServedStatus

app = typer.Typer(no_args_is_help=True, help="Served views: status, rebuild, verify.")
_COLOURS = {"serving": "green", "stopped": "bold red", "away": "bold red"}


@app.command("status")
def status(
    project: ProjectOption = HERE, json: JsonOption = False, debug: DebugOption = False
) -> None:
    """Show which views are served from which stores, and how far each store is.

    Behind is what the view shows and the store does not have yet. What is shown is what the stores
    say, whether steadyview run is up or not.

    [bold]Example[/]

        steadyview serve status
    """
    with reporting(as_json=json, debug=debug), opened(project) as warehouse:
        found = warehouse.served()
        if json:
            print_json([one.to_dict() for one in found])
        elif found:
            headings = ("view", "store", "state", "cn", "behind", "records", "tombstones", "key")
            show(table(headings, map(_row, found)), *_errors(found))
        else:
            note("no view is served; name a store in its file: 'steadyview.serve' = '...'")


@app.command("rebuild")
def rebuild(
    view: ViewArgument,
    project: ProjectOption = HERE,
    json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Have the records of a view written anew, also where it stands still.

    Readers have the old records until all new ones are there. If steadyview run is up it does so
    within a second or two; otherwise this command does.

    [bold]Example[/]

        steadyview serve rebuild revenue_by_region
    """
    with reporting(as_json=json, debug=debug), opened(project) as warehouse:
        warehouse.rebuild_served(view)
        if json:
            print_json({"rebuild": view})
        else:
            print(f'the records of "{view}" are written anew')


@app.command("verify")
def verify(
    views: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[VIEW]...", help="Which views; all if none.", autocompletion=view_names
        ),
    ] = None,
    project: ProjectOption = HERE,
    json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Compare the records in stores with the views, row by row, at the commit each store shows.

    Exit code 1 if any differ.

    [bold]Example[/]

        steadyview serve verify
    """
    with reporting(as_json=json, debug=debug), opened(project) as warehouse:
        verdicts = warehouse.verify_served(views or None)
        if json:
            print_json([asdict(verdict) for verdict in verdicts])
        else:
            headings = ("view", "compared", "cn", "verdict", "missing", "extra", "seconds")
            show(table(headings, map(_verdict, verdicts)), *_examples(verdicts))
        if not all(verdict.equal for verdict in verdicts):
            raise typer.Exit(ExitCode.ANSWER_IS_NO)


def _row(one: ServedStatus) -> tuple[Any, ...]:
    behind = "-" if one.behind is None else str(one.behind)
    if one.behind_seconds is not None:
        behind += f" ({one.behind_seconds:,.1f} s)"
    known = (one.records, one.tombstones)
    records, tombstones = ("-" if number is None else number for number in known)
    state = Text(one.state, style=_COLOURS.get(one.state, "yellow"))
    cn = "-" if one.cn is None else one.cn
    return one.view, one.store, state, cn, behind, records, tombstones, ", ".join(one.key)


def _errors(found: list[ServedStatus]) -> list[Text]:
    return [Text(f"{one.view}: {one.error}") for one in found if one.error]


def _verdict(verdict: Verification) -> tuple[Any, ...]:
    word = Text("equal", style="green") if verdict.equal else Text("differs", style="bold red")
    numbers = (verdict.cn, word, verdict.missing, verdict.extra)
    return verdict.view, verdict.part, *numbers, Text(f"{verdict.seconds:.1f}")


def _examples(verdicts: list[Verification]) -> list[Text]:
    return [
        Text(f"{verdict.view}: {told}")
        for verdict in verdicts
        for told in map(json_value, verdict.examples)
    ]
