"""`steadyview verify [VIEW...]`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from steadyview.cli.completion import view_names
from steadyview.cli.opening import opened
from steadyview.cli.options import HERE, DebugOption, JsonOption, ProjectOption, parse_at
from steadyview.cli.reporting import ExitCode, reporting
from steadyview.cli.tables import print_json, show, table
from steadyview.cli.values import json_value

if TYPE_CHECKING:
    from steadyview.query.verify import Verification

_HEADINGS = ("view", "cn", "verdict", "missing", "extra", "log rows used", "seconds")


def command(
    views: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[VIEW]...", help="Which views; all if none.", autocompletion=view_names
        ),
    ] = None,
    nodes: Annotated[
        bool,
        typer.Option("--nodes", help="Hidden nodes too, and the state that views and nodes keep."),
    ] = False,
    at: Annotated[
        str | None,
        typer.Option(metavar="CN or TIME", help="A commit number or an ISO time (UTC if no zone)."),
    ] = None,
    project: ProjectOption = HERE,
    json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Recompute views from their SQL over the sources as of one commit, and compare row by row.

    The sources are read anew and rolled back to that commit by the update log.
    Exit code 1 if any view differs.

    [bold]Examples[/]

        steadyview verify

        steadyview verify revenue_by_region --at 42

        steadyview verify --nodes
    """
    moment = parse_at(at)
    with reporting(as_json=json, debug=debug), opened(project) as warehouse:
        verdicts = warehouse.verify(views or None, moment, nodes=nodes)
        if json:
            print_json([asdict(verdict) for verdict in verdicts])
        else:
            show(table(_HEADINGS, map(_row, verdicts)), *_examples(verdicts))
        if not all(verdict.equal or verdict.no_state for verdict in verdicts):
            raise typer.Exit(ExitCode.ANSWER_IS_NO)


def _row(verdict: Verification) -> tuple[Any, ...]:
    word = Text("equal", style="green") if verdict.equal else Text("differs", style="bold red")
    if verdict.error is not None:
        word = Text("not compared", style="bold red")
    if verdict.no_state:
        word = Text("no state", style="yellow")
    return (
        _name(verdict),
        verdict.cn,
        word,
        verdict.missing,
        verdict.extra,
        verdict.compensated,
        Text(f"{verdict.seconds:.1f}"),
    )


def _name(verdict: Verification) -> str:
    return verdict.view if verdict.part == "rows" else f"{verdict.view} ({verdict.part})"


def _examples(verdicts: list[Verification]) -> list[Text]:
    return [
        Text(f"{_name(verdict)}: {told}")
        for verdict in verdicts
        for told in [*map(json_value, verdict.examples), *filter(None, [verdict.error])]
    ]
