"""`steadyview graph`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from steadyview.cli.opening import opened
from steadyview.cli.options import HERE, DebugOption, ProjectOption
from steadyview.cli.reporting import reporting


class GraphFormat(StrEnum):
    """How the graph is written."""

    text = "text"
    dot = "dot"
    mermaid = "mermaid"
    json = "json"


def command(
    project: ProjectOption = HERE,
    format: Annotated[
        GraphFormat, typer.Option("--format", "-f", help="How to write it.")
    ] = GraphFormat.text,
    debug: DebugOption = False,
) -> None:
    """Show the whole project: tables of sources, hidden nodes, views, and who reads whom.

    [bold]Examples[/]

        steadyview graph

        steadyview graph --format dot | dot -Tsvg > views.svg
    """
    with reporting(as_json=format is GraphFormat.json, debug=debug), opened(project) as warehouse:
        print(warehouse.graph().written(format.value))
