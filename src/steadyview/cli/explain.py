"""`steadyview explain VIEW`."""

from __future__ import annotations

from steadyview.cli.opening import opened
from steadyview.cli.options import HERE, DebugOption, JsonOption, ProjectOption, ViewArgument
from steadyview.cli.reporting import reporting
from steadyview.cli.tables import print_json


def command(
    view: ViewArgument,
    project: ProjectOption = HERE,
    json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Show how a view is kept: the tree of its plan, what it keeps and why, its lookups, its level.

    It is told from the catalog: no source need answer.

    [bold]Example[/]

        steadyview explain revenue_by_region
    """
    with reporting(as_json=json, debug=debug), opened(project) as warehouse:
        explanation = warehouse.explain(view)
        if json:
            print_json(explanation.to_dict())
        else:
            print(explanation.text)
