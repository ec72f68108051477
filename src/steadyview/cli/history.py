"""`steadyview history VIEW`."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from steadyview.cli.opening import opened
from steadyview.cli.options import HERE, DebugOption, JsonOption, ProjectOption, ViewArgument
from steadyview.cli.reporting import reporting
from steadyview.cli.tables import note, print_json, show, table
from steadyview.cli.values import iso_time

if TYPE_CHECKING:
    from steadyview.runtime.serving import Commit

_COLUMNS = ("cn", "time", "source", "transaction", "added", "removed")
_MORE = ("since", "commits", "bound")
"""Columns that are shown where something is in them."""


def command(
    view: ViewArgument,
    limit: Annotated[int, typer.Option(min=1, help="How many commits, newest first.")] = 20,
    project: ProjectOption = HERE,
    json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Show the commits that changed a view: cn, time, source transaction, rows added and removed.

    Where gates have bound times to what it showed then, these too: see docs/time.md.

    [bold]Example[/]

        steadyview history revenue_by_region --limit 5
    """
    with reporting(as_json=json, debug=debug), opened(project) as warehouse:
        commits = [_facts(commit) for commit in warehouse.view(view).history(limit)]
        if json:
            print_json(commits)
        elif commits:
            more = [name for name in _MORE if any(c[name] for c in commits)]
            columns = (*_COLUMNS, *more)
            shown = [{**commit, "bound": _bound(commit["bound"])} for commit in commits]
            show(table(columns, [tuple(commit[name] for name in columns) for commit in shown]))
        else:
            note(f'no commit has changed "{view}" since it was made')


def _facts(commit: Commit) -> dict[str, Any]:
    facts = {**asdict(commit), "bound": [shown.to_dict() for shown in commit.bound]}
    return {name: facts[name] for name in (*_COLUMNS, *_MORE)}


def _bound(times: list[dict[str, Any]]) -> str | None:
    """The times that gates have bound, each with the sources that it is not exact for."""
    texts = []
    for found in times:
        told = ", ".join(f"{source}: {why}" for source, why in found["told"].items())
        time = iso_time(datetime.fromisoformat(found["time"]))
        texts.append(f"{time} ({told})" if told else time)
    return "\n".join(texts) or None
