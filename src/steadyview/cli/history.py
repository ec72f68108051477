"""`steadyview history VIEW`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from steadyview.cli.opening import opened
from steadyview.cli.options import HERE, DebugOption, JsonOption, ProjectOption, ViewArgument
from steadyview.cli.reporting import reporting
from steadyview.cli.tables import note, print_json, show, table

if TYPE_CHECKING:
    from steadyview.runtime.serving import Commit

_COLUMNS = ("cn", "time", "source", "transaction", "added", "removed", "since", "commits")
_OF_RANGES = ("since", "commits")
"""Columns that are shown where something is in them."""


def command(
    view: ViewArgument,
    limit: Annotated[int, typer.Option(min=1, help="How many commits, newest first.")] = 20,
    project: ProjectOption = HERE,
    json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Show the commits that changed a view: cn, time, source transaction, rows added and removed.

    [bold]Example[/]

        steadyview history revenue_by_region --limit 5
    """
    with reporting(as_json=json, debug=debug), opened(project) as warehouse:
        commits = [_facts(commit) for commit in warehouse.view(view).history(limit)]
        if json:
            print_json(commits)
        elif commits:
            empty = {n for n in _OF_RANGES if all(commit[n] is None for commit in commits)}
            columns = [name for name in _COLUMNS if name not in empty]
            show(table(columns, [tuple(commit[name] for name in columns) for commit in commits]))
        else:
            note(f'no commit has changed "{view}" since it was made')


def _facts(commit: Commit) -> dict[str, Any]:
    facts = asdict(commit)
    return {name: facts[name] for name in _COLUMNS}
