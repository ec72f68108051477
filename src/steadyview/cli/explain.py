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
    """Show how a view is maintained: relations, join order, lookups, algorithm, level.

    [bold]Example[/]

        steadyview explain revenue_by_region
    """
    with reporting(as_json=json, debug=debug), opened(project) as warehouse:
        explanation = warehouse.explain(view)
        if json:
            print_json(explanation.to_dict())
        else:
            print(explanation.text)
